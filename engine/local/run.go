package local

import (
	"context"
	"time"

	"sbx/engine"
)

// component is a part of the engine that runs until its context ends.
type component struct {
	name string
	run  func(context.Context) error
}

// start runs components as one stage: they end together, and leaving waits for
// them.
func (e *Engine) start(name string, within time.Duration, parts ...component) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.runAll(ctx, parts)
	}()
	e.stages.push(name, within, func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return engine.Errorf(engine.Internal, "%s did not end in %s", name, within)
		}
	})
}

func (e *Engine) runAll(ctx context.Context, parts []component) {
	ended := make(chan struct{})
	for _, c := range parts {
		go func() {
			defer func() { ended <- struct{}{} }()
			e.keepRunning(ctx, c)
		}()
	}
	for range parts {
		<-ended
	}
}

// keepRunning starts a component again when it ends by itself: a healer that
// died of a full disk must heal again when there is room.
func (e *Engine) keepRunning(ctx context.Context, c component) {
	wait := time.Second
	for {
		began := time.Now()
		err := c.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		e.cfg.Log.Error("a part of the engine ended and is started again", "part", c.name, "err", err, "in", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, 30*time.Second)
	}
}
