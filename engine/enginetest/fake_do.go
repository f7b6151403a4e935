package enginetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"sbx/engine"
)

// Do decides an action.
func (f *Fake) Do(ctx context.Context, a engine.Action) (engine.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return engine.Receipt{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.gone(); err != nil {
		return engine.Receipt{}, err
	}
	if r, done := f.receipts[a.ID]; done {
		return r, nil
	}
	if a.By.Kind == "" {
		a.By = engine.Actor{Kind: engine.ActorOperator, From: "embedded"}
	}
	r := engine.Receipt{Action: a.ID}
	err := f.decide(a, &r)
	f.note(a, r, err)
	if err != nil {
		return engine.Receipt{}, err
	}
	r.Position = f.snap.Position
	f.receipts[a.ID] = r
	return r, nil
}

// note writes the audit entry.
func (f *Fake) note(a engine.Action, r engine.Receipt, err error) {
	e := engine.EntryOf(a.Body)
	entry := engine.AuditEntry{
		ID: int64(len(f.audit)) + 1, At: now(), By: a.By, Action: a.ID, Kind: e.Kind,
		Subject: a.Body.Subject(), Words: e.Verb, Result: "ok",
	}
	if entry.Subject == "" {
		entry.Subject = string(r.Sandbox)
	}
	if err != nil {
		entry.Result = err.Error()
	}
	f.audit = append(f.audit, entry)
}

// decide does what can be done at once, and begins the rest.
func (f *Fake) decide(a engine.Action, r *engine.Receipt) error {
	by := author{a.By, a.ID}
	switch b := a.Body.(type) {
	case engine.CreateSandbox:
		return f.create(by, b, r)
	case engine.KillProcess:
		return f.kill(b.Process, r)
	case engine.WatchIncident:
		return f.watch(by, b, r)
	case engine.AnswerApproval:
		return f.answerApproval(by, b, r)
	case engine.RevokeKey:
		return f.revokeKey(by, b, r)
	case engine.TestNotify:
		f.testNotify(r)
		return nil
	case engine.CreateSession, engine.ExecSession, engine.PauseSession, engine.ResumeSession, engine.EndSession:
		return f.session(by, a.Body, r)
	}
	r.Sandbox = engine.SandboxID(a.Body.Subject())
	sb, err := f.sandbox(r.Sandbox)
	if err != nil {
		return err
	}
	if a.IfSeq != 0 && a.IfSeq != sb.Seq {
		return engine.Errorf(engine.Conflict, "%s has changed since you looked", sb.Name).WithHint("look again, then decide again")
	}
	switch b := a.Body.(type) {
	case engine.Spawn:
		return f.spawn(by, sb, b, r)
	case engine.OpenTerminal:
		return f.openTerminal(by, sb, b, r)
	case engine.WriteFile, engine.PlaceFile, engine.MakeDir, engine.RenameFile, engine.RemoveFile,
		engine.SaveCheckpoint, engine.RestoreCheckpoint, engine.RollBack, engine.Undo:
		return f.changeFiles(a, sb.ID, r)
	case engine.SaveArchive, engine.RestoreArchive, engine.RemoveArchive:
		return f.archiveAction(sb, a.Body)
	case engine.RemoveSandbox:
		f.stopApp(by, sb)
		f.append(by, engine.SandboxRemoved{ID: sb.ID, Name: sb.Name})
		return os.RemoveAll(f.workspace(sb.ID))
	case engine.StartHeal:
		return f.heal(by, sb, b, r)
	case engine.ApplyPlan:
		return engine.Errorf(engine.NotFound, "no plan was made")
	case engine.NoteHeal:
		return f.noteHeal(by, b)
	case engine.Say:
		return f.say(by, sb, b, r)
	case engine.StopChat:
		return f.stopChat(by, sb, r)
	case engine.IssueKey:
		f.issueKey(by, b, r)
		return nil
	case engine.CancelHeal:
		return engine.Errorf(engine.Conflict, "no heal run is open")
	}
	return f.change(by, sb, a.Body)
}

// change is the actions that change a sandbox's row.
func (f *Fake) change(by author, sb engine.Sandbox, body engine.ActionBody) error {
	switch b := body.(type) {
	case engine.ApplySpec:
		sb.Spec.App.Command = commandOf(b.SpecTOML)
		f.append(by, engine.SandboxChanged{Sandbox: sb})
		f.startApp(by, sb)
	case engine.StartSandbox:
		f.startApp(by, sb)
	case engine.StopSandbox:
		f.stopApp(by, sb)
	case engine.RestartApp:
		if !sb.State.Live() {
			return engine.Errorf(engine.Conflict, "%s is %s", sb.Name, sb.State)
		}
		if b.Process != "" && b.Process != engine.AppName {
			return engine.Errorf(engine.NotFound, "no supervised process %q", b.Process)
		}
		f.startApp(by, sb)
	case engine.KeepSandbox:
		sb.Keep = b.Keep
		f.append(by, engine.SandboxChanged{Sandbox: sb})
	case engine.SetMaintenance:
		sb.Maintenance = engine.Maintenance{On: b.On, Reason: b.Reason}
		if b.On && b.For > 0 {
			sb.Maintenance.Until = now().Add(b.For.D())
		}
		f.append(by, engine.SandboxChanged{Sandbox: sb})
	default:
		return engine.Errorf(engine.Invalid, "this engine does not know the action %T", body)
	}
	return nil
}

func commandOf(toml string) string {
	_, rest, _ := strings.Cut(toml, "command")
	_, rest, _ = strings.Cut(rest, `"`)
	command, _, _ := strings.Cut(rest, `"`)
	return command
}

func (f *Fake) create(by author, b engine.CreateSandbox, r *engine.Receipt) error {
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	if b.Name == "" {
		b.Name = "made-up-" + strings.TrimPrefix(string(id), engine.SandboxPrefix)
	}
	if err := engine.CheckName(b.Name); err != nil {
		return err
	}
	for _, sb := range f.snap.Sandboxes {
		if sb.Name == b.Name {
			return engine.Errorf(engine.Conflict, "the name %q is taken", b.Name)
		}
	}
	if err := os.MkdirAll(f.workspace(id), 0o755); err != nil {
		return err
	}
	at := now()
	sb := engine.Sandbox{
		ID: id, Name: b.Name, Owner: b.Owner, Labels: b.Labels, Keep: b.Keep, Origin: b.Origin,
		Wanted: engine.Up, State: engine.Warming, Health: engine.Starting, Reason: "starting",
		Created: at, StateChanged: at, HealthChanged: at, Active: at,
	}
	sb.Spec.App.Command = "app"
	f.append(by, engine.SandboxChanged{Sandbox: sb})
	f.startApp(by, f.snap.Sandboxes[id])
	r.Sandbox = id
	return nil
}

// startApp has the app up, ready or crashing, by the next look.
func (f *Fake) startApp(by author, sb engine.Sandbox) {
	p := f.snap.App(sb.ID)
	if p.ID == "" {
		p = engine.Process{ID: engine.ProcessID(engine.NewID(engine.ProcessPrefix)), Sandbox: sb.ID, Name: engine.AppName, Kind: engine.Supervised}
		f.procs[p.ID] = &proc{born: len(f.procs)}
	}
	log := &f.procs[p.ID].out
	p.Command.Shell = sb.Spec.App.Command
	p.Wanted, p.State, p.PID, p.Started = engine.WantRunning, engine.ProcessRunning, 4711, now()
	p.Starts++
	p.LogStart = int64(log.end())
	log.write("started\n")
	sb = f.snap.Sandboxes[sb.ID]
	sb.Wanted, sb.State, sb.Health, sb.Reason = engine.Up, engine.Waiting, engine.Ready, ""
	if strings.Contains(p.Command.Shell, "exit 1") {
		f.crash(by, sb, p)
		return
	}
	f.append(by, engine.ProcessChanged{Process: p}, engine.SandboxChanged{Sandbox: sb})
}

func (f *Fake) crash(by author, sb engine.Sandbox, p engine.Process) {
	exit := engine.Exit{Code: 1, At: now()}
	p.State, p.PID, p.Exit, p.Exits = engine.ProcessFailed, 0, &exit, append(p.Exits, exit)
	sig := engine.Signal{
		ID: engine.SignalID(f.snap.Position.Seq + 2), Sandbox: sb.ID, Process: p.ID,
		Kind: engine.ExitSignal, Observed: "exit 1", Exit: &exit, At: now(),
	}
	f.append(by, engine.ProcessChanged{Process: p}, engine.SignalRaised{Signal: sig})
	sig.Verdict = &engine.Verdict{Action: engine.Repair, Reason: "it crashed", At: now()}
	f.append(itself, engine.SignalJudged{Signal: sig})
	f.giveUp(itself, sb, "exit 1")
}

// giveUp is a heal run that could do nothing.
func (f *Fake) giveUp(by author, sb engine.Sandbox, cause string) engine.RunID {
	run := engine.HealRun{
		ID: engine.RunID(engine.NewID(engine.RunPrefix)), Sandbox: sb.ID, Cause: cause, By: by.by,
		State: engine.RunPlaybooks, Started: now(),
	}
	sb.Health, sb.Reason, sb.Run = engine.Healing, cause, run.ID
	f.append(by, engine.HealStarted{Run: run}, engine.SandboxChanged{Sandbox: sb})
	run.State, run.Outcome, run.Ended, run.Summary = engine.RunEnded, engine.NotHealed, now(), "a fake heals nothing"
	sb.Health = engine.Broken
	f.append(itself, engine.HealFinished{Run: run}, engine.SandboxChanged{Sandbox: sb})
	return run.ID
}

func (f *Fake) heal(by author, sb engine.Sandbox, b engine.StartHeal, r *engine.Receipt) error {
	if sb.Health == engine.Ready {
		r.Note = "already healthy"
		return nil
	}
	if !sb.State.Live() {
		return engine.Errorf(engine.Conflict, "%s is %s: there is nothing to heal", sb.Name, sb.State)
	}
	if b.Plan {
		run := engine.HealRun{
			ID: engine.RunID(engine.NewID(engine.RunPrefix)), Sandbox: sb.ID, Plan: true, Cause: "asked for", By: by.by,
			State: engine.RunPlaybooks, Started: now(),
		}
		f.append(by, engine.HealStarted{Run: run})
		run.State, run.Outcome, run.Ended, run.Summary = engine.RunEnded, engine.NotHealed, now(), "a fake plans nothing"
		f.append(itself, engine.HealFinished{Run: run})
		r.Run = run.ID
		return nil
	}
	r.Run = f.giveUp(by, sb, "asked for")
	return nil
}

func (f *Fake) stopApp(by author, sb engine.Sandbox) {
	for _, p := range f.snap.Of(sb.ID) {
		if p.Kind == engine.Spawned {
			f.procs[p.ID].stop()
			continue
		}
		p.Wanted, p.State, p.PID = engine.WantStopped, engine.ProcessStopped, 0
		f.append(by, engine.ProcessChanged{Process: p})
	}
	sb.Wanted, sb.State, sb.Health, sb.Reason = engine.Down, engine.Cold, engine.Unknown, "stopped"
	f.append(by, engine.SandboxChanged{Sandbox: sb})
}

func (f *Fake) writeFile(root *os.Root, name string, replaces engine.Version, overwrite bool, data []byte, r *engine.Receipt) error {
	var has engine.Version
	switch old, err := root.ReadFile(name); {
	case err == nil:
		has = versionOf(old)
	case !errors.Is(err, fs.ErrNotExist):
		return fileError(name, err)
	}
	if has != replaces && !overwrite {
		return engine.Errorf(engine.Conflict, "%s has changed since it was read", name)
	}
	if replaces == "" {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return fileError(name, err)
		}
	}
	if err := root.WriteFile(name, data, 0o644); err != nil {
		return fileError(name, err)
	}
	r.Version = versionOf(data)
	return nil
}
