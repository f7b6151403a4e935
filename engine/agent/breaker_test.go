package agent_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
)

// flaky is a provider that is down until a moment.
type flaky struct {
	mu    sync.Mutex
	asked int
	back  time.Time
	err   error
}

func (m *flaky) Name() string { return "flaky" }

func (m *flaky) Reply(ctx context.Context, _ agent.Transcript, _ []agent.Tool, _ func(string)) (agent.Turn, error) {
	m.mu.Lock()
	m.asked++
	err := m.err
	if err == nil && time.Now().Before(m.back) {
		err = unavailable()
	}
	m.mu.Unlock()
	return agent.Turn{Message: agent.Message{Text: "done"}, Stop: agent.EndTurn}, errors.Join(err, ctx.Err())
}

func TestAFleetDoesNotBeatOnAProviderThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &flaky{back: time.Now().Add(2 * time.Minute)}
		b := &agent.Breaker{Model: m}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				a := agent.Agent{Model: b, Budget: agent.Budget{Retry: 10 * time.Minute}}
				if end, err := a.Run(t.Context(), hello()); err != nil || end.Text != "done" {
					t.Errorf("%q, %v", end.Text, err)
				}
			})
		}
		all.Wait()
		// Alone, each of the 50 would have asked eight times or so.
		if m.asked > 50+50+20 {
			t.Errorf("asked %d times", m.asked)
		}
	})
}

func TestWhatIsNoOutageOpensNoBreaker(t *testing.T) {
	m := &flaky{err: engine.Errorf(engine.Invalid, "no such tool")}
	b := &agent.Breaker{Model: m}
	for range 20 {
		if _, err := b.Reply(t.Context(), hello(), nil, nil); !errors.Is(err, engine.Invalid) {
			t.Fatal(err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m.err = unavailable()
	for range 20 {
		_, _ = b.Reply(gone, hello(), nil, nil) // nobody waits for the answer
	}
	if m.err = nil; m.asked != 40 {
		t.Fatalf("asked %d times", m.asked)
	}
	if _, err := b.Reply(t.Context(), hello(), nil, nil); err != nil {
		t.Error(err)
	}
}

func TestOneRequestAtATimeFindsOutWhetherItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &flaky{back: time.Now().Add(time.Hour)}
		b := &agent.Breaker{Model: m}
		for range 20 {
			_, err := b.Reply(t.Context(), hello(), nil, nil)
			var e *engine.Error
			if !errors.Is(err, engine.Unavailable) {
				t.Fatal(err)
			}
			if m.asked == 5 && errors.As(err, &e) && e.RetryAfter < 0 {
				t.Error("it doesn't say when to come back")
			}
		}
		if m.asked != 5 {
			t.Errorf("asked %d times in a row", m.asked)
		}
		time.Sleep(2 * time.Second) // in a bubble
		for range 20 {
			_, _ = b.Reply(t.Context(), hello(), nil, nil)
		}
		if m.asked != 6 {
			t.Errorf("asked %d times after the pause", m.asked)
		}
		time.Sleep(time.Hour)
		if _, err := b.Reply(t.Context(), hello(), nil, nil); err != nil {
			t.Error(err)
		}
	})
}
