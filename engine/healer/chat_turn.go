package healer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

// chatTurn is one answer at work: the healer's tools over a sandbox, without a run.
// One goroutine owns it.
type chatTurn struct {
	*heal
	said engine.Message
	at   *talk
	kit  *kit
	// rows are the turn's messages by number; call and number are the tool call
	// under way; denied: it was not approved.
	rows   map[int]engine.Message
	call   agent.Call
	number int
	denied bool
	away   int // the number of the note that the provider is waited for
}

// work is a turn from the evidence to the last word.
func (t *chatTurn) work(ctx context.Context) (engine.MessageState, string, error) {
	if err := t.begin(ctx); err != nil {
		return "", "", err
	}
	script, err := t.transcript(ctx)
	if err != nil {
		return "", "", err
	}
	limited, cancel := context.WithTimeoutCause(ctx, t.p.Minutes, errMinutes)
	defer cancel()
	t.kit = newKit(t.heal)
	a := agent.Agent{
		Model:   &chatMeter{Model: t.Model, t: t},
		Tools:   t.kit.tools(),
		Budget:  agent.Budget{Steps: t.p.Steps, Tokens: t.p.Tokens, Dollars: t.p.Dollars, Retry: t.p.Retry},
		Record:  t.record,
		Around:  t.around,
		Waiting: t.waiting,
	}
	end, err := a.Run(limited, script)
	if limited.Err() != nil && ctx.Err() == nil {
		return engine.MessageFailed, fmt.Sprintf("over the budget: %s of a turn's time are spent; say go on to go on", t.p.Minutes), nil
	}
	if err != nil {
		return "", "", err
	}
	if end.Reason == agent.Done {
		return engine.MessageDone, "", nil
	}
	return engine.MessageFailed, t.whyEnded(end.Reason), nil
}

func (t *chatTurn) whyEnded(reason agent.EndReason) string {
	switch reason {
	case agent.OverBudget:
		return fmt.Sprintf("over the budget of a turn: %d tokens, $%.2f spent; say go on to go on", t.said.Spent.Tokens(), t.said.Spent.Dollars)
	case agent.OutOfSteps:
		return fmt.Sprintf("out of steps: a turn may make %d calls; say go on to go on", t.p.Steps)
	}
	return orElse(t.endWords(context.Background(), reason, nil), string(reason))
}

// begin reads what the turn works on.
func (t *chatTurn) begin(ctx context.Context) error {
	h := t.heal
	err := h.Store.View(ctx, func(tx *store.Tx) (err error) {
		if h.sb, err = tx.Sandbox(t.said.Sandbox); err != nil {
			return err
		}
		h.now = h.sb
		h.good, err = lastGood(tx, h.sb.ID)
		return err
	})
	if err != nil {
		return err
	}
	if h.box, err = h.Box(ctx, h.sb.ID); err != nil {
		return err
	}
	saving, cancel := context.WithTimeout(ctx, h.p.UndoTimeout)
	defer cancel()
	tree, err := h.box.Checkpoints().Save(saving, "before a chat's answer")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		h.noTry = err.Error() // nothing will be edited
	default:
		h.track = newTrack(h.box.Checkpoints(), tree)
	}
	return t.update(ctx, func(_ *store.Tx, said *engine.Message) error {
		said.State, said.Model = engine.MessageRunning, h.Model.Name()
		return nil
	})
}

// update changes the turn's row, if the turn still stands.
func (t *chatTurn) update(ctx context.Context, fn func(tx *store.Tx, said *engine.Message) error) error {
	var said engine.Message
	err := t.Store.Update(ctx, func(tx *store.Tx) (err error) {
		tx.By = actor
		if said, err = tx.Message(t.said.ID); err != nil {
			return err
		}
		switch {
		case said.State.Over():
			return &cutError{why: "the turn is over", gone: true}
		case said.Why != "":
			return &cutError{why: said.Why}
		}
		if err := fn(tx, &said); err != nil {
			return err
		}
		return tx.PutMessage(&said)
	})
	var cut *cutError
	switch {
	case err == nil:
		t.said = said
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &cut):
		return err
	case engine.AsCode(err) == engine.NotFound:
		return &cutError{why: "the sandbox was removed", gone: true}
	}
	return fmt.Errorf("%w: chat %s: %w", errStore, t.said.ID, err)
}

// put writes a message of the turn.
func (t *chatTurn) put(ctx context.Context, m *engine.Message) error {
	m.Sandbox, m.Turn = t.heal.sb.ID, t.said.ID
	m.Text, m.Argument = bound(clean(t.redact(m.Text)), maxStepText), line(t.redact(m.Argument), maxArgument)
	m.Diff = bound(t.redact(m.Diff), maxStepDiff)
	err := t.update(ctx, func(tx *store.Tx, _ *engine.Message) error {
		if m.ID == "" {
			m.ID = engine.MessageID(engine.NewID(engine.MessagePrefix))
		}
		if m.Started.IsZero() {
			m.Started = tx.Now
		}
		if m.State.Over() && m.Ended.IsZero() {
			m.Ended = tx.Now
		}
		return tx.PutMessage(m)
	})
	if err == nil {
		t.rows[m.Number] = *m
	}
	return err
}

// record is the agent's: a step is a message.
func (t *chatTurn) record(ctx context.Context, st engine.Step) (engine.Step, error) {
	m := t.rows[st.Number]
	if st.Number == 0 {
		m.Kind, m.Tool, m.Started = engine.MessageTool, st.Name, st.Started.Truncate(time.Millisecond)
		if st.Kind == engine.StepThought {
			m.Kind = engine.MessageAnswer
		}
		t.call, t.denied = agent.Call{}, false
	}
	m.Argument, m.Text, m.Diff = st.Argument, st.Text, st.Diff
	switch st.State {
	case engine.StepRunning:
		m.State = engine.MessageRunning
	case engine.StepOK:
		m.State = engine.MessageDone
	default:
		m.State = engine.MessageFailed
		if t.denied {
			m.State = engine.MessageDenied
		}
	}
	if m.Kind == engine.MessageTool && m.State.Over() {
		m.Input = t.input()
	}
	err := t.put(ctx, &m)
	st.Number, t.number = m.Number, m.Number
	return st, err
}

// maxInput is how much of a call's input is kept, to be told again in later
// turns.
const maxInput = 16 << 10

func (t *chatTurn) input() json.RawMessage {
	kept := json.RawMessage(t.redact(string(t.call.Input)))
	if len(kept) == 0 || len(kept) > maxInput || !json.Valid(kept) {
		return nil
	}
	return kept
}

// note writes words of sbx into the chat.
func (t *chatTurn) note(ctx context.Context, state engine.MessageState, text string) (int, error) {
	m := engine.Message{Kind: engine.MessageNote, State: state, Text: text}
	err := t.put(ctx, &m)
	return m.Number, err
}

// waiting shows that the provider is away, and that it is back.
func (t *chatTurn) waiting(ctx context.Context, why string) {
	var err error
	if m := t.rows[t.away]; t.away != 0 {
		m.State = engine.MessageDone
		if why != "" {
			m.State, m.Text = engine.MessageRunning, "waiting for the model: "+why
		} else {
			t.away = 0
		}
		err = t.put(ctx, &m)
	} else if why != "" {
		t.away, err = t.note(ctx, engine.MessageRunning, "waiting for the model: "+why)
	}
	if err != nil && ctx.Err() == nil {
		t.Log.Debug("showing that a chat waits", "message", t.said.ID, "err", err) // the next message says what is wrong
	}
}

// around is the kit's, with what a chat asks before: an approval, if the
// operator wanted to be asked, and a checkpoint before the first edit.
func (t *chatTurn) around(ctx context.Context, c agent.Call, do func() (string, error)) (text, diff string, err error) {
	t.call = c
	tl := t.kit.named(c.Name)
	if tl.acts || tl.tracked {
		if err := t.approve(ctx); err != nil {
			return "", "", err
		}
	}
	if tl.tracked {
		if err := t.checkpoint(ctx); err != nil {
			return "", "", err
		}
	}
	return t.kit.around(ctx, c, do)
}

// checkpoint saves the workspace before the turn's first edit, so that the
// operator can undo it.
func (t *chatTurn) checkpoint(ctx context.Context) error {
	if t.said.Checkpoint != "" {
		return nil
	}
	if t.track == nil {
		return engine.Errorf(engine.Unavailable, "no checkpoint can be made (%s), so nothing is edited", t.noTry)
	}
	saving, cancel := context.WithTimeout(ctx, t.p.UndoTimeout)
	defer cancel()
	tree, err := t.box.Checkpoints().Save(saving, "before a chat's edit")
	if err != nil {
		return fmt.Errorf("no checkpoint could be made, so nothing is edited: %w", err)
	}
	cp := engine.Checkpoint{
		ID: engine.CheckpointID(engine.NewID(engine.CheckpointPrefix)), Sandbox: t.heal.sb.ID, Note: "before a chat's edit", Tree: tree,
	}
	return t.update(ctx, func(tx *store.Tx, said *engine.Message) error {
		cp.Created, said.Checkpoint = tx.Now, cp.ID
		return tx.PutCheckpoint(cp)
	})
}

// chatMeter is the model with what each answer costs written into the turn.
type chatMeter struct {
	agent.Model
	t *chatTurn
}

func (m *chatMeter) Reply(ctx context.Context, s agent.Transcript, tools []agent.Tool, partial func(string)) (agent.Turn, error) {
	if err := m.mayAsk(ctx); err != nil {
		return agent.Turn{}, err
	}
	turn, err := m.Model.Reply(ctx, s, tools, partial)
	if turn.Spent == (engine.Spent{}) {
		return turn, err
	}
	// What was spent is spent, also if the turn was stopped meanwhile.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	spendErr := m.t.Store.Update(saving, func(tx *store.Tx) error {
		tx.By = actor
		if err := tx.Use(m.t.said.Sandbox, engine.UseOf(turn.Spent)); err != nil {
			return err
		}
		said, err := tx.Message(m.t.said.ID)
		if err != nil || said.State.Over() {
			return ignoreGone(err)
		}
		said.Spent = said.Spent.Add(turn.Spent)
		m.t.said.Spent = said.Spent
		return tx.PutMessage(&said)
	})
	if spendErr != nil && err == nil {
		return turn, fmt.Errorf("%w: %w", errStore, spendErr)
	}
	return turn, err
}
