package local

import (
	"context"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// slowly is a driver whose boots wait until they are let go.
type slowly struct {
	driver.Driver
	hold chan struct{} // each boot takes one
}

func (d slowly) Boot(ctx context.Context, b driver.Boot) (driver.Box, error) {
	select {
	case <-d.hold:
		return d.Driver.Boot(ctx, b)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestARestartWhileASandboxComesUpLeavesItsStartAlone(t *testing.T) {
	cfg := config(t, t.TempDir(), "")
	hold := make(chan struct{}, 1)
	cfg.Driver = slowly{cfg.Driver, hold}
	e := open(t, cfg)
	hold <- struct{}{}
	sb := ready(t, e, engine.CreateSandbox{Name: "web", Origin: source(t), Keep: true})
	if _, err := engine.StopAll(t.Context(), e, sb.ID); err != nil {
		t.Fatal(err)
	}
	until(t, e, sb.ID, "be cold", func(sb engine.Sandbox) bool { return sb.State == engine.Cold })
	if _, err := e.Do(t.Context(), engine.NewAction(engine.StartSandbox{Sandbox: sb.ID})); err != nil {
		t.Fatal(err)
	}
	_, err := engine.RestartProcess(t.Context(), e, sb.ID, "")
	if engine.AsCode(err) != engine.Conflict {
		t.Errorf("a restart while it comes up gave %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := e.restartAndWait(ctx, sb.ID); engine.AsCode(err) != engine.Conflict {
		t.Errorf("the healer's restart while it comes up gave %v", err)
	}
	close(hold)
	until(t, e, sb.ID, "come up", func(sb engine.Sandbox) bool { return sb.Health == engine.Ready })
}
