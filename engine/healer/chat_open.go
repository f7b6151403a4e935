package healer

import (
	"time"

	"sbx/engine"
	"sbx/store"
)

// Talk writes what a person said about a sandbox, for the healer's chats to
// answer. From then on the sandbox is the chat's: no heal begins until the turn
// is over, and one that is open is a Conflict unless it is to be taken over.
func Talk(tx *store.Tx, b engine.Say, said engine.Message) (engine.Message, error) {
	sb, err := tx.Sandbox(b.Sandbox)
	if err != nil {
		return said, err
	}
	last, any, err := tx.LastSaid(sb.ID)
	if err != nil {
		return said, err
	}
	if any && !last.State.Over() {
		return said, engine.Errorf(engine.Conflict, "%s is being talked about already: %s asked %s ago, and is being answered",
			sb.Name, last.By, tx.Now.Sub(last.Started).Round(time.Second)).
			WithHint("wait until it is over, or stop it with: sbx chat --stop %s", sb.Name)
	}
	if err := takeOver(tx, sb, b.TakeOver, said.By); err != nil {
		return said, err
	}
	said.ID = engine.MessageID(engine.NewID(engine.MessagePrefix))
	said.Turn, said.Sandbox, said.Kind, said.State, said.Started = said.ID, sb.ID, engine.MessageSaid, engine.MessageWaiting, tx.Now
	said.Fresh, said.Ask = b.Fresh, last.Ask && !b.Fresh
	if b.Ask != nil {
		said.Ask = *b.Ask
	}
	if err := tx.PutMessage(&said); err != nil {
		return said, err
	}
	if sb, err = tx.Sandbox(sb.ID); err != nil { // taking over changed it
		return said, err
	}
	sb.Chat = said.ID
	return said, tx.PutSandbox(&sb)
}

// beingTalked is the Conflict of a sandbox that is a chat's, and names its owner.
func beingTalked(tx *store.Tx, sb engine.Sandbox) error {
	said, err := tx.Message(sb.Chat)
	if err != nil {
		return err
	}
	return engine.Errorf(engine.Conflict, "%s is being worked on in a chat: %s asked %s ago", sb.Name, said.By,
		tx.Now.Sub(said.Started).Round(time.Second)).WithHint("wait until it is answered, or stop it with: sbx chat --stop %s", sb.Name)
}

// takeOver ends the open run of a sandbox, if somebody may.
func takeOver(tx *store.Tx, sb engine.Sandbox, may bool, by engine.Actor) error {
	run, open, err := tx.OpenRun(sb.ID)
	if err != nil || !open {
		return err
	}
	if !may {
		return engine.Errorf(engine.Conflict, "%s is being healed: run %s, opened %s ago by %s (%s)",
			sb.Name, engine.Short(run.ID), tx.Now.Sub(run.Started).Round(time.Second), run.By, run.Cause).
			WithHint("watch it with: sbx logs --healer %s; or take over, which ends the run and undoes it: sbx chat --take-over %s", sb.Name, sb.Name)
	}
	return Cancel(tx, sb.ID, by)
}

// stoppedPrefix begins why a turn ends that an operator stopped.
const stoppedPrefix = "stopped by "

// Hush has the turn under way end. Whoever answers sees it in the row, ends
// what it does, and then the turn.
func Hush(tx *store.Tx, id engine.SandboxID, by engine.Actor) (engine.MessageID, error) {
	sb, err := tx.Sandbox(id)
	if err != nil {
		return "", err
	}
	said, any, err := tx.LastSaid(id)
	switch {
	case err != nil:
		return "", err
	case !any || said.State.Over():
		return "", engine.Errorf(engine.Conflict, "nobody is being answered about %s", sb.Name).
			WithHint("see what was said with: sbx chat --history %s", sb.Name)
	case said.Why != "":
		return said.ID, nil // being stopped already
	}
	said.Why = stoppedPrefix + by.String()
	return said.ID, tx.PutMessage(&said)
}

// Approve answers a call that waits to be approved.
func Approve(tx *store.Tx, b engine.AnswerApproval, by engine.Actor) (engine.Message, error) {
	m, err := tx.Message(b.Message)
	if err != nil {
		return m, err
	}
	switch b.Answer {
	case engine.AnswerOnce, engine.AnswerChat, engine.AnswerNo:
	default:
		return m, engine.Errorf(engine.Invalid, "%q is no answer", b.Answer).WithHint("answer once, chat or no")
	}
	switch {
	case m.Answer != "":
		return m, engine.Errorf(engine.Conflict, "it was answered already: %s, by %s", m.Answer, m.AnsweredBy)
	case m.State != engine.MessageAsking:
		return m, engine.Errorf(engine.Conflict, "message %s asks nothing (it is %s)", m.ID, m.State)
	case !tx.Now.Before(m.AskUntil):
		return m, engine.Errorf(engine.Conflict, "the question has expired, which counts as a no")
	}
	m.Answer, m.AnsweredBy, m.State = b.Answer, by, engine.MessageRunning
	if err := tx.PutMessage(&m); err != nil || b.Answer != engine.AnswerChat {
		return m, err
	}
	said, err := tx.Message(m.Turn)
	if err != nil {
		return m, err
	}
	said.Ask = false
	return m, tx.PutMessage(&said)
}
