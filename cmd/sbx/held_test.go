package main

import (
	"context"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
)

// stuck is an engine in which a sandbox's run stays as it is.
type stuck struct {
	engine.Engine
	run engine.HealRun
	// later is what the run becomes after a while; zero: nothing.
	later engine.HealRun
	after time.Duration
}

func (s *stuck) Snapshot(context.Context) (*engine.Snapshot, error) {
	snap := engine.NewSnapshot(engine.Position{})
	snap.Sandboxes["sb-1"] = engine.Sandbox{ID: "sb-1", Name: "api", Wanted: engine.Up, State: engine.Waiting, Health: engine.Healing}
	snap.Runs["sb-1"] = s.run
	return snap, nil
}

func (s *stuck) Events(ctx context.Context, _ engine.Position) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		if s.later.ID != "" {
			select {
			case <-time.After(s.after):
				if !yield(engine.Event{Seq: 1, Body: engine.HealChanged{Run: s.later}}, nil) {
					return
				}
			case <-ctx.Done():
			}
		}
		<-ctx.Done()
		yield(engine.Event{}, ctx.Err())
	}
}

func TestAWaitForAHeldSandboxIsAnswered(t *testing.T) {
	held := engine.HealRun{
		ID: "ru-1", Sandbox: "sb-1", Incident: "in-abcdefghij", State: engine.RunQueued, Held: "held by incident abcd: web is healed first",
	}
	free := held
	free.Held, free.State = "", engine.RunModel
	cases := map[string]struct {
		e     *stuck
		code  engine.Code
		words string
		took  time.Duration
	}{
		"held":             {&stuck{run: held}, engine.Conflict, "held by incident abcd: web is healed first", heldWithin},
		"freed in time":    {&stuck{run: held, later: free, after: heldWithin / 2}, engine.Unavailable, "api is still healing", settleWithin},
		"held by and by":   {&stuck{run: free, later: held, after: heldWithin}, engine.Conflict, "held by incident", 2 * heldWithin},
		"healed by itself": {&stuck{run: free}, engine.Unavailable, "api is still healing", settleWithin},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := (&cli{out: io.Discard, err: io.Discard}).untilSettled(t.Context(), c.e, engine.Sandbox{ID: "sb-1", Name: "api"})
				if engine.AsCode(err) != c.code || !strings.Contains(err.Error(), c.words) {
					t.Errorf("%v, want %s with %q", err, c.code, c.words)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("answered after %s, want %s", took, c.took)
				}
			})
		})
	}
}
