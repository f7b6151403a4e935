package local

import (
	"cmp"
	"strings"

	"sbx/engine"
	"sbx/engine/healer"
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
		if _, err := tx.Sandbox(b.Sandbox); err != nil {
			return err
		}
		if err := e.canChat(); err != nil {
			return err
		}
		said, err := healer.Talk(tx, b, engine.Message{By: by, Text: e.cfg.Redact(b.Text)})
		if err != nil {
			return err
		}
		r.Message = said.ID
		sb, err := tx.Sandbox(b.Sandbox)
		if err != nil {
			return err
		}
		return awake(tx, sb) // a turn is activity, as a command is
	}, nil
}

// canChat is why no model answers, if none does.
func (e *Engine) canChat() error {
	switch {
	case e.cfg.Model == nil:
		return engine.Errorf(engine.Unavailable, "%s", cmp.Or(e.cfg.NoModel, "no model is configured")).
			WithHint("set ANTHROPIC_API_KEY (or model.key in config.toml)")
	case !e.cfg.Driver.Isolation().Confines && !e.cfg.Unconfined:
		return engine.Errorf(engine.Unavailable, "nothing confines a model's commands on this host, so none is asked").
			WithHint("see what is missing with: sbx doctor")
	}
	return nil
}

func stopChat(by engine.Actor, b engine.StopChat) effect {
	return func(tx *store.Tx, r *engine.Receipt) (err error) {
		r.Sandbox = b.Sandbox
		r.Message, err = healer.Hush(tx, b.Sandbox, by)
		return err
	}
}

func answerApproval(by engine.Actor, b engine.AnswerApproval) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		m, err := healer.Approve(tx, b, by)
		r.Message, r.Sandbox = m.ID, m.Sandbox
		return err
	}
}
