package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/tui/emu"
)

// termGap is the least time between two drawings of a terminal.
const termGap = 33 * time.Millisecond

// viewer is an attached terminal: what it prints is drawn onto screen, what is
// typed waits in input. Its goroutines end by stop, with the terminal, or with
// the program; commands.wait waits for them.
type viewer struct {
	id     engine.ProcessID
	screen *emu.Screen
	input  chan []byte
	size   chan engine.TermSize // the latest; capacity 1
	dirty  chan struct{}        // capacity 1
	done   chan struct{}        // closed when nothing more comes
	err    error                // set before done is closed
	cancel context.CancelFunc
}

// termMsg says that a terminal has something new to show, or that it ended.
type termMsg struct {
	viewer *viewer
	end    bool
}

// typedAhead is how many keys and pastes wait for a terminal that is slow.
const typedAhead = 1024

// attach opens a viewer. Nothing runs until the command does.
func (c *commands) attach(id engine.ProcessID, size engine.TermSize, watch bool) (*viewer, tea.Cmd) {
	ctx, cancel := context.WithCancel(c.ctx)
	v := &viewer{
		id: id, screen: emu.NewScreen(size.Cols, size.Rows), cancel: cancel,
		input: make(chan []byte, typedAhead), size: make(chan engine.TermSize, 1), dirty: make(chan struct{}, 1), done: make(chan struct{}),
	}
	return v, c.do(func(context.Context) tea.Msg {
		if !c.begin() {
			v.screen.Close()
			return nil
		}
		go func() {
			defer c.wg.Done()
			defer v.screen.Close()
			defer close(v.done)
			v.err = v.run(ctx, c.engine, engine.Attachment{From: engine.FromScreen, Live: true, Size: size, Watch: watch})
		}()
		return v.next(ctx)
	})
}

// run draws until the terminal ends. io.EOF is the end of its program.
func (v *viewer) run(ctx context.Context, e engine.Terminals, how engine.Attachment) error {
	t, err := e.AttachTerminal(ctx, v.id, how)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	typing := make(chan struct{})
	go func() { // ends with ctx
		defer close(typing)
		v.write(ctx, t)
	}()
	defer func() {
		cancel()
		_ = t.Close() // detaches; releases a write that waits
		<-typing
	}()
	stop := context.AfterFunc(ctx, func() { _ = t.Close() }) // releases a read that waits
	defer stop()
	buf := make([]byte, 64<<10)
	for {
		n, err := t.Read(buf)
		if n > 0 {
			v.screen.Write(buf[:n])
			v.mark()
		}
		if err != nil {
			return err
		}
	}
}

// write passes on what is typed, and the size.
func (v *viewer) write(ctx context.Context, t engine.Terminal) {
	for {
		select {
		case b := <-v.input:
			if _, err := t.Write(b); err != nil {
				return // Read tells why
			}
		case s := <-v.size:
			if err := t.Resize(s); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (v *viewer) mark() {
	select {
	case v.dirty <- struct{}{}:
	default: // it is marked already
	}
}

// resize says how large the pane is; only the latest counts.
func (v *viewer) resize(s engine.TermSize) {
	v.screen.Resize(s.Cols, s.Rows)
	for {
		select {
		case v.size <- s:
			return
		default:
		}
		select {
		case <-v.size: // an older one
		default:
		}
	}
}

// send types; false if the program reads nothing and too much waits already.
func (v *viewer) send(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	select {
	case v.input <- b:
		return true
	default:
		return false
	}
}

// more waits until there is something new to draw.
func (c *commands) moreOf(v *viewer) tea.Cmd { return c.do(v.next) }

func (v *viewer) next(ctx context.Context) tea.Msg {
	select {
	case <-v.dirty:
	case <-v.done:
		return termMsg{v, true}
	case <-ctx.Done():
		return nil
	}
	timer := time.NewTimer(termGap) // gather what comes meanwhile
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.done:
		return termMsg{v, true}
	case <-ctx.Done():
		return nil
	}
	return termMsg{v, false}
}

// stop detaches.
func (v *viewer) stop() { v.cancel() }

// ended reports whether the program on it ended, as against the viewing.
func (v *viewer) ended() bool { return errors.Is(v.err, io.EOF) }

// openedTermMsg is a terminal that was asked for.
type openedTermMsg struct {
	sandbox engine.SandboxID
	process engine.ProcessID
	err     error
}

func (c *commands) openTerminal(id engine.SandboxID, size engine.TermSize) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		r, err := c.engine.Do(ctx, engine.NewAction(engine.OpenTerminal{Sandbox: id, Size: size}))
		return openedTermMsg{id, r.Process, err}
	})
}
