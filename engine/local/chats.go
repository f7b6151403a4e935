package local

import (
	"strings"

	"sbx/engine"
	"sbx/store"
)

// say writes what a person said; the healer's chats answer it.
func (e *Engine) say(by engine.Actor, b engine.Say) (effect, error) {
	switch {
	case strings.TrimSpace(b.Text) == "":
		return nil, engine.Errorf(engine.Invalid, "nothing was said").WithHint(`sbx chat SANDBOX "why is it broken?"`)
	case len(b.Text) > engine.MaxSaid:
		return nil, engine.Errorf(engine.Invalid, "what was said is longer than %d bytes", engine.MaxSaid).
			WithHint("put it in a file of the workspace, and say where")
	}
	return func(tx *store.Tx, r *engine.Receipt) error {
		r.Sandbox = b.Sandbox
		return engine.Errorf(engine.Unavailable, "no model is configured").WithHint("set ANTHROPIC_API_KEY (or model.key in config.toml)")
	}, nil
}

func stopChat(b engine.StopChat) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		return engine.Errorf(engine.Conflict, "nobody is being answered")
	}
}

func answerApproval(b engine.AnswerApproval) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		_, err := tx.Message(b.Message)
		return err
	}
}

func testNotify() effect {
	return func(*store.Tx, *engine.Receipt) error {
		return engine.Errorf(engine.Unavailable, "nothing is set to be notified").
			WithHint("set notify.webhook or notify.command in config.toml")
	}
}
