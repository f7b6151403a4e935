package healer

import (
	"context"
	"errors"
	"time"

	"sbx/engine"
	"sbx/store"
)

// approveWithin is how long a call waits to be approved; then it is a no.
const approveWithin = 10 * time.Minute

var errDenied = errors.New("the operator did not approve this call, so it was not made")

// approve waits until the operator approves the call under way, if they wanted
// to be asked. The question is the call's own message: an answer to another
// one is no answer to this.
func (t *chatTurn) approve(ctx context.Context) error {
	if !t.said.Ask {
		return nil
	}
	within := max(time.Millisecond, time.Duration(float64(approveWithin)*t.p.Scale))
	m := t.rows[t.number]
	m.State, m.AskUntil, m.Input = engine.MessageAsking, time.Now().UTC().Truncate(time.Millisecond).Add(within), t.input()
	if err := t.put(ctx, &m); err != nil {
		return err
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	for over := false; ; {
		answered, err := t.answered(ctx, over)
		if err != nil {
			return err
		}
		switch answered {
		case engine.AnswerOnce, engine.AnswerChat:
			return nil
		case engine.AnswerNo:
			t.denied = true
			return errDenied
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.at.changed:
		case <-timer.C:
			over = true
		}
	}
}

// answered is the answer to the question under way, "" if there is none yet;
// when its time is over, that is a no.
func (t *chatTurn) answered(ctx context.Context, over bool) (engine.Answer, error) {
	var m engine.Message
	err := t.update(ctx, func(tx *store.Tx, _ *engine.Message) (err error) {
		if m, err = tx.Message(t.rows[t.number].ID); err != nil || m.Answer != "" || !over {
			return err
		}
		m.Answer, m.AnsweredBy, m.State = engine.AnswerNo, actor, engine.MessageRunning
		return tx.PutMessage(&m)
	})
	if err == nil {
		t.rows[t.number] = m
	}
	return m.Answer, err
}
