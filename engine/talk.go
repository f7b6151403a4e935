package engine

import (
	"context"
	"errors"
	"iter"
)

// Chat says something about a sandbox and returns the message, whose turn
// [FollowTurn] follows.
func Chat(ctx context.Context, e Engine, body Say) (Receipt, error) {
	return e.Do(ctx, NewAction(body))
}

// FollowTurn yields the messages of a turn, each whenever it changed, until
// the turn is over. After a cut of the line it goes on where it was; where the
// journal has moved on, it yields each message as it is now.
func FollowTurn(ctx context.Context, e Engine, sandbox SandboxID, turn MessageID) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			over, err := followTurn(ctx, e, sandbox, turn, yield)
			if over {
				return
			}
			if err != nil && !errors.Is(err, Compacted) {
				yield(Message{}, err)
				return
			}
		}
	}
}

func followTurn(ctx context.Context, e Engine, sandbox SandboxID, turn MessageID, yield func(Message, error) bool) (over bool, err error) {
	snap, err := e.Snapshot(ctx) // before the read, so that no change slips between
	if err != nil {
		return false, err
	}
	list, err := e.Messages(ctx, MessageQuery{Sandbox: sandbox})
	if err != nil {
		return false, err
	}
	var said Message
	for _, m := range list {
		switch {
		case m.ID == turn:
			said = m
		case m.Turn == turn && !yield(m, nil):
			return true, nil
		}
	}
	if said.ID == "" {
		return false, Errorf(NotFound, "no message %s in the chat", turn)
	}
	if !yield(said, nil) || said.State.Over() {
		return true, nil
	}
	for ev, err := range e.Events(ctx, snap.Position) {
		if err != nil {
			return false, err
		}
		switch b := ev.Body.(type) {
		case SandboxRemoved:
			if b.ID == sandbox {
				return false, Errorf(NotFound, "the sandbox was removed")
			}
		case ChatMessaged:
			if m := b.Message; m.Turn == turn && (!yield(m, nil) || m.ID == turn && m.State.Over()) {
				return true, nil
			}
		}
	}
	return false, ctx.Err()
}
