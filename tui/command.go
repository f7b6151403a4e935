package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// patience is how long an action may take to be accepted.
const patience = 30 * time.Second

// commands are the only way from the dashboard to the engine. Each returns a
// tea.Cmd; what it does ends with ctx, and wait waits for all of it.
type commands struct {
	engine engine.Engine
	ctx    context.Context //nolint:containedctx // the program's, which Run owns
	feed   *feed

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// actionMsg is how an action was received.
type actionMsg struct {
	words   string // "restart api"
	receipt engine.Receipt
	err     error
}

// bulkMsg is how many of several actions were accepted.
type bulkMsg struct {
	words      string
	done, all  int
	firstError error
}

// begin admits one more goroutine, unless wait was called.
func (c *commands) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Add(1)
	return true
}

// wait ends the admission and waits for what was admitted. The context must
// have ended.
func (c *commands) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}

// do is f as a tea.Cmd that wait knows of.
func (c *commands) do(f func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !c.begin() {
			return nil
		}
		defer c.wg.Done()
		return caught(func() tea.Msg { return f(c.ctx) })
	}
}

// caught is f's message, or that it panicked.
func caught(f func() tea.Msg) (msg tea.Msg) {
	defer func() {
		if v := recover(); v != nil {
			msg = crashMsg{crashOf(v)}
		}
	}()
	return f()
}

// act sends one action.
func (c *commands) act(words string, body engine.ActionBody) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		r, err := c.engine.Do(ctx, engine.NewAction(body))
		return actionMsg{words: words, receipt: r, err: err}
	})
}

// actAll sends one action after another and says how many were accepted.
func (c *commands) actAll(words string, bodies []engine.ActionBody) tea.Cmd {
	if len(bodies) == 1 {
		return c.act(words, bodies[0])
	}
	return c.do(func(ctx context.Context) tea.Msg {
		msg := bulkMsg{words: words, all: len(bodies)}
		for _, body := range bodies {
			one, cancel := context.WithTimeout(ctx, patience)
			_, err := c.engine.Do(one, engine.NewAction(body))
			cancel()
			if err == nil {
				msg.done++
			} else if msg.firstError == nil {
				msg.firstError = err
			}
		}
		return msg
	})
}

// retry tries to reach the engine at once.
func (c *commands) retry() tea.Cmd {
	return c.do(func(context.Context) tea.Msg {
		if c.feed != nil {
			c.feed.retry()
		}
		return nil
	})
}

// healsMsg is a part of the healer's history.
type healsMsg struct {
	query   engine.HealQuery
	records []engine.HealRecord
	err     error
}

// heals reads the healer's history.
func (c *commands) heals(q engine.HealQuery) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		msg := healsMsg{query: q}
		for rec, err := range c.engine.Heals(ctx, q) {
			if err != nil {
				msg.err = err
				break
			}
			msg.records = append(msg.records, rec)
		}
		return msg
	})
}

// checkpointsMsg are the checkpoints of a sandbox.
type checkpointsMsg struct {
	id   engine.SandboxID
	list []engine.Checkpoint
	err  error
}

func (c *commands) checkpoints(id engine.SandboxID) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		list, err := c.engine.Checkpoints(ctx, id)
		return checkpointsMsg{id: id, list: list, err: err}
	})
}
