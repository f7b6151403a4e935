package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

const (
	// linesWaiting is how many lines wait to be drawn before the reader waits.
	linesWaiting = 2048
	// linesAtOnce is how many one message brings at most.
	linesAtOnce = 4096
)

// linesMsg is what a log wrote since the message before. end says that no more
// comes.
type linesMsg struct {
	stream *stream
	lines  []engine.LogLine
	end    bool
	err    error
}

// stream follows one log. Its goroutine begins with the first command and ends
// by stop or with the program; commands.wait waits for it.
type stream struct {
	query  engine.LogQuery
	lines  chan engine.LogLine
	err    error  // set before lines is closed
	fell   *crash // of the reader, likewise
	cancel context.CancelFunc
}

// follow opens a log. Nothing runs until the command does.
func (c *commands) follow(q engine.LogQuery) (*stream, tea.Cmd) {
	ctx, cancel := context.WithCancel(c.ctx)
	s := &stream{query: q, lines: make(chan engine.LogLine, linesWaiting), cancel: cancel}
	return s, c.do(func(context.Context) tea.Msg {
		if !c.begin() {
			return nil
		}
		go func() {
			defer c.wg.Done()
			defer close(s.lines)
			if fell, ok := caught(func() tea.Msg {
				s.err = s.read(ctx, c.engine)
				return nil
			}).(crashMsg); ok {
				s.fell = fell.crash
			}
		}()
		return s.next(ctx)
	})
}

// more waits for the next lines of a stream.
func (c *commands) more(s *stream) tea.Cmd {
	return c.do(s.next)
}

// stop ends a stream.
func (s *stream) stop() { s.cancel() }

func (s *stream) read(ctx context.Context, e engine.Processes) error {
	for line, err := range e.Logs(ctx, s.query) {
		if err != nil {
			return err
		}
		select {
		case s.lines <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// next is the lines that have come, at least one, at most twenty times a second.
func (s *stream) next(ctx context.Context) tea.Msg {
	msg := linesMsg{stream: s}
	line, ok := <-s.lines // closed when ctx ends
	for ok {
		msg.lines = append(msg.lines, line)
		if len(msg.lines) == linesAtOnce {
			return msg
		}
		select {
		case line, ok = <-s.lines:
			continue
		default:
		}
		timer := time.NewTimer(frameGap) // gather what comes meanwhile
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		return s.gather(msg)
	}
	if s.fell != nil {
		return crashMsg{s.fell}
	}
	msg.end, msg.err = true, s.err
	return msg
}

func (s *stream) gather(msg linesMsg) linesMsg {
	for len(msg.lines) < linesAtOnce {
		select {
		case line, ok := <-s.lines:
			if !ok {
				msg.end, msg.err = true, s.err
				return msg
			}
			msg.lines = append(msg.lines, line)
		default:
			return msg
		}
	}
	return msg
}
