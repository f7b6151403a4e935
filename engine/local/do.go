package local

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"sbx/engine"
	"sbx/store"
)

// effect is what an action does in the transaction that accepts it. It fills
// in the receipt.
type effect func(tx *store.Tx, r *engine.Receipt) error

// Do decides an action. What can be checked or must be done outside of the
// database comes first; then effect, receipt and audit entry are committed
// together. An action whose ID was done before gets its first receipt.
func (e *Engine) Do(ctx context.Context, a engine.Action) (engine.Receipt, error) {
	if a.By.Kind == "" {
		a.By = e.cfg.Actor
	}
	if a.ID == "" || len(a.ID) > 128 {
		return engine.Receipt{}, engine.Errorf(engine.Invalid, "an action needs an id of 1 to 128 characters")
	}
	if r, done, err := e.receipt(ctx, a.ID); done || err != nil {
		return r, err
	}
	r, err := e.act(ctx, a)
	if err != nil {
		return engine.Receipt{}, errors.Join(err, e.auditRefusal(ctx, a, err))
	}
	if r.Notice != "" {
		e.notifier.poke() // its row is committed now, and no event tells of it
	}
	r.Position.Epoch, err = e.epoch(ctx)
	return r, err
}

func (e *Engine) act(ctx context.Context, a engine.Action) (engine.Receipt, error) {
	if changesFiles(a.Body) { // until what it kept is written down: the healer collects what no row names
		defer e.changing.lock(engine.SandboxID(a.Body.Subject()))()
	}
	do, err := e.prepare(ctx, a)
	if err != nil {
		return engine.Receipt{}, err
	}
	var r engine.Receipt
	err = e.store.Update(ctx, func(tx *store.Tx) error {
		tx.By, tx.Action = a.By, a.ID
		before, done, err := tx.Receipt(a.ID) // somebody may have been faster with the same id
		if done || err != nil {
			r = before
			return err
		}
		r = engine.Receipt{Action: a.ID}
		subject, err := e.admit(tx, a)
		if err != nil {
			return err
		}
		if err := do(tx, &r); err != nil {
			return err
		}
		r.Position.Seq = tx.Seq()
		if err := tx.AppendAudit(auditEntry(tx, a, subject, r)); err != nil {
			return err
		}
		kept := r
		kept.Secret = "" // it is shown once, and kept nowhere
		return tx.PutReceipt(kept)
	})
	return r, err
}

// prepare is what an action needs outside of the database, and its effect.
func (e *Engine) prepare(ctx context.Context, a engine.Action) (effect, error) {
	if changesFiles(a.Body) {
		return e.changeFiles(ctx, a)
	}
	switch b := a.Body.(type) {
	case engine.CreateSandbox:
		return e.create(ctx, b)
	case engine.ApplySpec:
		return e.applySpec(b)
	case engine.StartSandbox:
		return startSandbox(b), nil
	case engine.StopSandbox:
		return stopSandbox(a.By, b), nil
	case engine.RestartApp:
		return restartApp(b), nil
	case engine.RemoveSandbox:
		return removeSandbox(a.By, b), nil
	case engine.KeepSandbox:
		return keepSandbox(b), nil
	case engine.SetMaintenance:
		return setMaintenance(a.By, b), nil
	case engine.StartHeal:
		return e.startHeal(a.By, b), nil
	case engine.ApplyPlan:
		return e.applyPlan(ctx, a.By, b)
	case engine.NoteHeal:
		return e.noteHeal(a.By, b), nil
	case engine.WatchIncident:
		return watchIncident(a.By, b), nil
	case engine.CancelHeal:
		return cancelHeal(a.By, b), nil
	case engine.Spawn:
		return spawn(a.By, b)
	case engine.OpenTerminal:
		return openTerminal(a.By, b)
	case engine.KillProcess:
		return killProcess(b), nil
	case engine.SaveArchive, engine.RestoreArchive, engine.RemoveArchive:
		return e.archiveAction(ctx, a)
	case engine.CreateSession, engine.ExecSession, engine.PauseSession, engine.ResumeSession, engine.EndSession:
		return e.prepareSession(ctx, a.By, b)
	}
	return e.prepareOutward(a)
}

// prepareOutward is prepare for chats, keys and notices.
func (e *Engine) prepareOutward(a engine.Action) (effect, error) {
	switch b := a.Body.(type) {
	case engine.Say:
		return e.say(a.By, b)
	case engine.StopChat:
		return stopChat(a.By, b), nil
	case engine.AnswerApproval:
		return answerApproval(a.By, b), nil
	case engine.IssueKey:
		return issueKey(a.By, b)
	case engine.RevokeKey:
		return revokeKey(b), nil
	case engine.TestNotify:
		return e.testNotify(a.By), nil
	}
	return nil, engine.Errorf(engine.Invalid, "this engine does not know the action %T", a.Body).
		WithHint("the engine is older than its client: upgrade it")
}

// admit checks that the subject is there and, with IfSeq, unchanged. It
// returns the subject's name for the audit log.
func (e *Engine) admit(tx *store.Tx, a engine.Action) (string, error) {
	subject := a.Body.Subject()
	switch {
	case subject == "":
		return "", nil
	case engine.EntryOf(a.Body).Kind == engine.EntryOf(engine.KillProcess{}).Kind:
		_, err := tx.Process(engine.ProcessID(subject))
		return subject, err
	case engine.EntryOf(a.Body).Kind == engine.EntryOf(engine.WatchIncident{}).Kind:
		_, err := tx.Incident(engine.IncidentID(subject))
		return subject, err
	case strings.HasPrefix(engine.EntryOf(a.Body).Kind, "session."):
		s, err := tx.Session(engine.SessionID(subject))
		return cmp.Or(s.Name, subject), err
	}
	switch b := a.Body.(type) {
	case engine.AnswerApproval:
		_, err := tx.Message(b.Message)
		return subject, err
	case engine.RevokeKey:
		_, err := tx.Key(b.Key)
		return subject, err
	}
	sb, err := tx.Sandbox(engine.SandboxID(subject))
	if _, ok := a.Body.(engine.RemoveArchive); ok && engine.AsCode(err) == engine.NotFound {
		return subject, nil // an archive outlives its sandbox
	}
	if err != nil {
		return "", err
	}
	if a.IfSeq != 0 && sb.Seq != a.IfSeq {
		return "", engine.Errorf(engine.Conflict, "%s has changed since you looked (#%d, now #%d)", sb.Name, a.IfSeq, sb.Seq).
			WithHint("look again, then decide again")
	}
	if sb.Wanted == engine.Removed {
		return "", engine.Errorf(engine.Conflict, "%s is being removed", sb.Name)
	}
	return sb.Name, nil
}

func (e *Engine) receipt(ctx context.Context, id engine.ActionID) (r engine.Receipt, done bool, err error) {
	err = e.store.View(ctx, func(tx *store.Tx) error {
		r, done, err = tx.Receipt(id)
		return err
	})
	if done && err == nil {
		r.Position.Epoch, err = e.epoch(ctx)
	}
	return r, done, err
}

func (e *Engine) epoch(ctx context.Context) (uint64, error) {
	pos, err := e.store.Position(ctx)
	return pos.Epoch, err
}

func auditEntry(tx *store.Tx, a engine.Action, name string, r engine.Receipt) engine.AuditEntry {
	entry := engine.EntryOf(a.Body)
	subject := a.Body.Subject()
	if subject == "" {
		subject = string(r.Sandbox)
	}
	if c, ok := a.Body.(engine.CreateSandbox); ok && name == "" {
		name = c.Name
	}
	return engine.AuditEntry{
		At: tx.Now, By: a.By, Action: a.ID, Kind: entry.Kind, Subject: subject,
		Words: entry.Verb + " " + name, Result: "ok",
	}
}

// auditWithin bounds the recording of a refusal.
const auditWithin = 5 * time.Second

// auditRefusal records what somebody tried and was refused, also if they hang
// up: nobody chooses what is recorded of them. An action that ended with its
// caller was not refused.
func (e *Engine) auditRefusal(ctx context.Context, a engine.Action, cause error) error {
	if err := ctx.Err(); err != nil && errors.Is(cause, err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditWithin)
	defer cancel()
	entry := engine.EntryOf(a.Body)
	return e.store.Update(ctx, func(tx *store.Tx) error {
		return tx.AppendAudit(engine.AuditEntry{
			At: tx.Now, By: a.By, Action: a.ID, Kind: entry.Kind, Subject: a.Body.Subject(),
			Words: entry.Verb, Result: e.cfg.Redact(cause.Error()),
		})
	})
}
