package healer

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/healer/playbook"
	"sbx/store"
)

// byItself is FixedBy of a sandbox that was healthy again before anything was done.
const byItself = "itself"

// restartWithin bounds a restart beyond the app's own time to stop.
const restartWithin = time.Minute

// tryPlaybooks is attempt 0: each playbook that the evidence calls for, at most
// once, until one of them healed. It returns that one's name, or "".
func (h *heal) tryPlaybooks(ctx context.Context) (string, error) {
	tried := map[string]bool{}
	for {
		ev, err := h.gather(ctx)
		if err != nil {
			return "", err
		}
		if len(tried) == 0 && h.works(ev) {
			if why, err := h.verify(ctx, 0); err != nil || why == "" {
				return byItself, firstError(err, h.endAttemptIf(ctx, err, "", "it was healthy again before anything was done"))
			}
		}
		p, reason, ok := playbook.Next(ev, tried)
		if !ok {
			summary := "no playbook helped"
			if len(tried) == 0 {
				summary = "no playbook fits what was seen"
			}
			return "", h.endAttempt(ctx, engine.NotHealed, "", summary)
		}
		tried[p.Name()] = true
		why, err := h.apply(ctx, p, ev, reason)
		if err != nil {
			return "", err
		}
		tried["restart"] = tried["restart"] || h.restarts > 0 // it was part of that one
		if why == "" {
			return p.Name(), h.endAttempt(ctx, engine.Healed, reason, p.Name()+": "+reason)
		}
		h.seen = append(h.seen, fmt.Sprintf("%s (%s): %s", p.Name(), reason, line(why, maxCause)))
	}
}

// works reports whether the sandbox looks healthy already: the fault may have
// passed while the run was queued. An app that stalled or is short of memory
// answered its probes all the while, so for those it proves nothing.
func (h *heal) works(ev playbook.Evidence) bool {
	if h.sig.Kind == engine.StalledSignal || h.sig.Kind == engine.PressureSignal {
		return false
	}
	return ev.Process.State == engine.ProcessRunning && (h.sb.Spec.App.Health == "" || ev.Probe.OK)
}

func (h *heal) endAttemptIf(ctx context.Context, err error, why, summary string) error {
	if err != nil {
		return nil
	}
	return h.endAttempt(ctx, engine.Healed, why, summary)
}

// apply does one playbook and verifies it. It returns "" if that healed, else why not.
func (h *heal) apply(ctx context.Context, p playbook.Playbook, ev playbook.Evidence, reason string) (string, error) {
	st, err := h.record(ctx, engine.Step{
		Kind: engine.StepPlaybook, Name: p.Name(), Argument: reason, State: engine.StepRunning,
	})
	if err != nil {
		return "", err
	}
	h.acted = true
	do := func() error { return p.Apply(ctx, ev, &bench{h, ev.Lockfiles}) }
	var doErr error
	if p.Edits() && h.track != nil {
		st.Diff, doErr = h.track.around(ctx, "", do)
	} else {
		doErr = do()
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	st.State, st.Text = engine.StepOK, "done"
	if doErr != nil {
		st.State, st.Text = engine.StepFailed, doErr.Error()
	}
	if _, err := h.record(ctx, st); err != nil {
		return "", err
	}
	if doErr != nil {
		return doErr.Error(), nil
	}
	return h.verify(ctx, h.startPatience())
}

// startPatience is how long a start may take until it is healthy.
func (h *heal) startPatience() time.Duration {
	return h.p.patience(h.sb.Spec.App.StartTimeout.D(), engine.DefaultStartTimeout)
}

// bench is the playbooks' hold on a sandbox.
type bench struct {
	h         *heal
	lockfiles map[string]bool
}

var _ playbook.Workbench = (*bench)(nil)

func (b *bench) Restart(ctx context.Context) error {
	b.h.restarts++
	return b.h.start(ctx)
}

// start restarts the app, and whatever else of the spec is down.
func (h *heal) start(ctx context.Context) error {
	down := func(p engine.Process) bool {
		return p.Kind == engine.Supervised && p.Name != engine.AppName &&
			p.Wanted == engine.WantRunning && p.State == engine.ProcessFailed
	}
	err := h.Store.Update(ctx, func(tx *store.Tx) error {
		tx.By = actor
		all, err := tx.ProcessesOf(h.sb.ID)
		if err != nil {
			return err
		}
		for _, p := range all {
			if !down(p) {
				continue
			}
			p.Wanted = engine.WantRestart
			if err := tx.PutProcess(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.sb.Spec.App.StopGrace.D()+restartWithin)
	defer cancel()
	return h.Restart(ctx, h.sb.ID)
}

func (b *bench) Install(ctx context.Context) error {
	shell := playbook.CleanInstall(b.h.sb.Spec.App.Install, b.lockfiles)
	if shell != b.h.sb.Spec.App.Install {
		if err := b.h.note(ctx, "install", engine.StepOK, "installed with: "+shell+", since a plain install says that nothing is amiss"); err != nil {
			return err
		}
	}
	_, err := b.h.install(ctx, shell)
	return err
}

// install runs an install, which has the network, and returns its output.
func (h *heal) install(ctx context.Context, shell string) (string, error) {
	if shell == "" {
		return "", engine.Errorf(engine.Invalid, "the spec names no install command")
	}
	h.installed = true
	out, exit, err := h.exec(ctx, h.command(shell, driver.ProfileApp), h.p.InstallTimeout, maxOutput)
	if err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	if exit.Code != 0 {
		return "", fmt.Errorf("install: %s\n%s", exit, h.words(out))
	}
	return out, nil
}

func (b *bench) KillStrays(ctx context.Context) error {
	killed, err := b.h.box.KillStrays(ctx)
	if err != nil {
		return fmt.Errorf("kill strays: %w", err)
	}
	if len(killed) == 0 {
		return nil
	}
	return b.h.note(ctx, "killed", engine.StepOK, strings.Join(killed, "\n"))
}

// MovePort gives the app a port that is free on the host and in the fleet. The
// port is taken again under the transaction, so that no two get the same.
func (b *bench) MovePort(ctx context.Context) error {
	h := b.h
	var taken map[int]engine.ProcessID
	err := h.Store.View(ctx, func(tx *store.Tx) (err error) {
		taken, err = tx.Ports()
		return err
	})
	if err != nil {
		return err
	}
	port, err := h.box.FreePort(ctx, func(p int) bool { _, ok := taken[p]; return ok })
	if err != nil {
		return fmt.Errorf("find another port: %w", err)
	}
	return h.write(ctx, func(tx *store.Tx, _ *engine.HealRun) error {
		ports, err := tx.Ports()
		if err != nil {
			return err
		}
		if _, ok := ports[port]; ok {
			return engine.Errorf(engine.Conflict, "port %d was taken meanwhile", port)
		}
		app, ok, err := appOf(tx, h.sb.ID, engine.AppName)
		if err != nil || !ok {
			return err
		}
		app.Port = port
		return tx.PutProcess(app)
	})
}

// appOf is the supervised process called name.
func appOf(tx *store.Tx, id engine.SandboxID, name string) (engine.Process, bool, error) {
	all, err := tx.ProcessesOf(id)
	for _, p := range all {
		if p.Kind == engine.Supervised && p.Name == name {
			return p, true, err
		}
	}
	return engine.Process{}, false, err
}

// PutBack writes a missing file as its source has it. A file that is there by
// now is a Conflict of the write, never overwritten.
func (b *bench) PutBack(ctx context.Context, m playbook.Missing) error {
	if err := checkPath(m.Path, b.h.sb.Spec.Heal.Protected); err != nil && engine.AsCode(err) != engine.Forbidden {
		return err
	}
	if m.Tree != "" {
		if _, err := b.h.box.Files().ReadFile(ctx, m.Path, 0, 1); engine.AsCode(err) != engine.NotFound {
			return err // there by now, or it can't be told
		}
		return b.h.box.Checkpoints().Restore(ctx, m.Tree, []string{m.Path})
	}
	data, err := b.h.committed(ctx, m.Path)
	if err != nil {
		return err
	}
	_, err = b.h.box.Files().WriteFile(ctx, m.Path, "", data)
	return err
}

// committed is a file's content in the last commit. Git runs confined as the
// model's commands do: the repository may be hostile.
func (h *heal) committed(ctx context.Context, name string) ([]byte, error) {
	const git = "git --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null cat-file blob "
	cmd := h.command(git+quote("HEAD:./"+path.Clean(name)), driver.ProfileAgent)
	cmd.Env = map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
	out := newPipe(2 * engine.MaxFile)
	exit, err := h.execInto(ctx, cmd, h.p.UndoTimeout, out)
	if err != nil {
		return nil, fmt.Errorf("read %s from git: %w", name, err)
	}
	data, ok := out.whole()
	if exit.Code != 0 || !ok {
		return nil, fmt.Errorf("read %s from git: %s", name, exit)
	}
	return []byte(data), nil
}

// quote makes s one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
