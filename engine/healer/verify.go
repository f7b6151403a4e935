package healer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// verify decides whether the sandbox works, and nothing else does: healthy so
// many probes in a row, no new exit meanwhile, and the spec's check passes.
// It returns "" or why not. patience is how long the app may take until its
// first healthy probe.
func (h *heal) verify(ctx context.Context, patience time.Duration) (string, error) {
	st, err := h.record(ctx, engine.Step{Kind: engine.StepVerify, Name: "verify", State: engine.StepRunning})
	if err != nil {
		return "", err
	}
	why, err := h.prove(ctx, patience)
	if err != nil {
		return "", err
	}
	st.State, st.Text = engine.StepOK, h.healthyWords()
	if why != "" {
		st.State, st.Text = engine.StepFailed, why
	}
	_, err = h.record(ctx, st)
	return why, err
}

func (h *heal) healthyWords() string {
	words := fmt.Sprintf("healthy: %d probes in a row over %s, no exit", h.p.Probes, h.p.VerifyFor)
	if h.sb.Spec.App.Health == "" {
		words = fmt.Sprintf("it ran for %s without an exit; there is nothing to probe", h.p.VerifyFor)
	}
	if h.sb.Spec.App.Check != "" && !h.run.Plan {
		words += "; the check passed"
	}
	return words
}

func (h *heal) prove(ctx context.Context, patience time.Duration) (string, error) {
	before, err := h.processes(ctx)
	if err != nil {
		return "", err
	}
	if why, err := h.awaitHealthy(ctx, before, patience); why != "" || err != nil {
		return why, err
	}
	for i := 1; i < h.p.Probes; i++ {
		if err := pause(ctx, h.p.VerifyFor/time.Duration(max(1, h.p.Probes-1))); err != nil {
			return "", err
		}
		why, err := h.lookOnce(ctx, before)
		if err != nil {
			return "", err
		}
		if why != "" {
			return "healthy at first, then " + why, nil
		}
	}
	if why, err := h.awaitProgress(ctx); why != "" || err != nil {
		return why, err
	}
	if h.run.Plan { // a check may write
		after, err := h.processes(ctx)
		return newExit(before, after), err
	}
	if why, err := h.check(ctx); why != "" || err != nil {
		return why, err
	}
	after, err := h.processes(ctx)
	return newExit(before, after), err
}

// awaitHealthy waits for the first healthy look. An exit ends it at once: while
// a sandbox is healing nobody but the healer restarts its app.
func (h *heal) awaitHealthy(ctx context.Context, before []engine.Process, patience time.Duration) (string, error) {
	until := time.Now().Add(patience)
	for {
		now, err := h.processes(ctx)
		if err != nil {
			return "", err
		}
		if why := newExit(before, now); why != "" {
			return why, nil
		}
		why := "the app is starting"
		if allRunning(now) {
			if why = h.unhealthy(ctx); why == "" {
				return "", nil
			}
		}
		if !time.Now().Before(until) {
			return fmt.Sprintf("not healthy within %s: %s", patience, why), nil
		}
		if err := pause(ctx, h.p.PollEvery); err != nil {
			return "", err
		}
	}
}

func (h *heal) lookOnce(ctx context.Context, before []engine.Process) (string, error) {
	now, err := h.processes(ctx)
	if err != nil {
		return "", err
	}
	if why := newExit(before, now); why != "" {
		return why, nil
	}
	return h.unhealthy(ctx), nil
}

// unhealthy is one probe: "" or what it found.
func (h *heal) unhealthy(ctx context.Context) string {
	if h.sb.Spec.App.Health == "" {
		return ""
	}
	p := h.Probe(ctx, h.now)
	if p.OK {
		return ""
	}
	return "GET " + h.sb.Spec.App.Health + ": " + line(p.Detail, maxCause)
}

// awaitProgress is what verification asks of an app that had stalled: its log
// must not stop there again. It has the time that a start has.
func (h *heal) awaitProgress(ctx context.Context) (string, error) {
	if h.Stuck == nil || h.sig.Kind != engine.StalledSignal {
		return "", nil
	}
	for until := time.Now().Add(h.p.RestartWait); ; {
		now, err := h.processes(ctx)
		if err != nil {
			return "", err
		}
		app := slices.IndexFunc(now, func(p engine.Process) bool { return p.Name == engine.AppName })
		if app < 0 {
			return "", nil
		}
		line := h.Stuck(now[app])
		switch {
		case line == "":
			return "", nil
		case !time.Now().Before(until):
			return fmt.Sprintf("it answers, and its log stops again: %q", h.redact(line)), nil
		}
		if err := pause(ctx, h.p.PollEvery); err != nil {
			return "", err
		}
	}
}

// processes are the supervised ones that should run, as their rows are now.
func (h *heal) processes(ctx context.Context) ([]engine.Process, error) {
	var list []engine.Process
	err := h.Store.View(ctx, func(tx *store.Tx) error {
		all, err := tx.ProcessesOf(h.sb.ID)
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.Kind == engine.Supervised && p.Wanted != engine.WantStopped {
				list = append(list, p)
			}
			if p.Kind == engine.Supervised && p.Name == engine.AppName {
				h.port = p.Port
			}
		}
		h.now, err = tx.Sandbox(h.sb.ID)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return list, err
}

func allRunning(list []engine.Process) bool {
	for _, p := range list {
		if p.State != engine.ProcessRunning && p.State != engine.ProcessStarting {
			return false
		}
	}
	return len(list) > 0
}

// newExit says which process is down or exited since before; "" if none did.
// Exits that were asked for are no exits here, nor is one that is starting.
func newExit(before, now []engine.Process) string {
	for _, p := range now {
		then := lastExit(p)
		for _, b := range before {
			if b.ID != p.ID {
				continue
			}
			if then.At.After(lastExit(b).At) {
				return fmt.Sprintf("%s exited again: %s after %s", p.Name, then, uptime(then))
			}
		}
		if p.State.Over() && p.Wanted == engine.WantRunning {
			return p.Name + " is down: " + downReason(p)
		}
	}
	return ""
}

func downReason(p engine.Process) string {
	switch {
	case p.Exit != nil && !p.Exit.Killed:
		return fmt.Sprintf("%s after %s", p.Exit, uptime(*p.Exit))
	case p.Reason != "":
		return p.Reason
	}
	return string(p.State)
}

func uptime(e engine.Exit) time.Duration { return e.Uptime.D().Round(100 * time.Millisecond) }

// lastExit is the last one that nobody asked for.
func lastExit(p engine.Process) engine.Exit {
	if n := len(p.Exits); n > 0 {
		return p.Exits[n-1]
	}
	if p.Exit != nil && !p.Exit.Killed {
		return *p.Exit
	}
	return engine.Exit{}
}

// check runs the spec's own check: "" if it passes or there is none.
func (h *heal) check(ctx context.Context) (string, error) {
	shell := h.sb.Spec.App.Check
	if shell == "" {
		return "", nil
	}
	out, exit, err := h.exec(ctx, h.command(shell, driver.ProfileApp), h.p.CheckTimeout, maxOutput/4)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "the check could not be run: " + err.Error(), nil
	}
	if exit.Code != 0 {
		return fmt.Sprintf("the check failed: %s\n%s", exit, out), nil
	}
	return "", nil
}

// command is a shell command in the sandbox's environment.
func (h *heal) command(shell string, profile driver.Profile) driver.Command {
	env := map[string]string{}
	if h.port != 0 {
		env["PORT"] = strconv.Itoa(h.port)
	}
	maps.Copy(env, h.sb.Spec.App.Env)
	return driver.Command{
		Command:   engine.Command{Shell: shell, Env: env},
		Profile:   profile,
		Protected: h.sb.Spec.Heal.Protected,
		Limits:    &h.sb.Spec.Limits,
	}
}

// pause waits, and returns why if it was cut.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
