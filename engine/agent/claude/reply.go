package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"sbx/engine/agent"
)

// Reply asks for the next turn. See agent.Model for its errors.
func (m *Model) Reply(ctx context.Context, t agent.Transcript, tools []agent.Tool, partial func(string)) (agent.Turn, error) {
	if err := ctx.Err(); err != nil {
		return agent.Turn{}, err
	}
	params, err := m.params(t, tools)
	if err != nil {
		return agent.Turn{}, err
	}
	w := watch(ctx, m.config.IdleTimeout, m.config.TurnTimeout)
	defer w.stop()
	stream := m.client.Messages.NewStreaming(w.ctx, params, option.WithMiddleware(w.guard))
	defer stream.Close() // what is left of it is of no interest

	a := assembly{partial: partial, inputs: map[int64]*strings.Builder{}}
	for !a.whole && stream.Next() {
		if err = a.take(stream.Current()); err != nil {
			break
		}
	}
	if err == nil {
		err = stream.Err()
	}
	spent := m.price.spent(a.message.Usage)
	switch {
	case ctx.Err() != nil:
		return agent.Turn{Spent: spent}, ctx.Err()
	case w.cause() != nil:
		err = w.cause()
	case err == nil:
		err = a.check()
	}
	if err != nil {
		return agent.Turn{Spent: spent}, m.classify(err)
	}
	turn := a.turn()
	turn.Spent = spent
	return turn, nil
}

// errGarbled is a stream that isn't one of the Messages API.
var errGarbled = errors.New("the model's answer was garbled")

// errCut is a stream that ended too early.
var errCut = errors.New("the model's answer was cut off")

// assembly puts a turn together from a stream's events.
type assembly struct {
	message anthropic.Message
	partial func(string)
	// inputs are the tools' inputs as they came: the SDK puts {} for one that
	// is broken, and a broken call must not become one with defaults.
	inputs map[int64]*strings.Builder
	open   int // blocks that have begun and not ended
	begun  bool
	whole  bool
	texts  int // blocks of text so far
}

// take adds one event.
func (a *assembly) take(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		if a.begun {
			return fmt.Errorf("%w: it began twice", errGarbled)
		}
		a.begun = true
	case "content_block_start":
		a.open++
	case "content_block_stop":
		a.open--
	case "message_stop":
		a.whole = true
	}
	if !a.begun {
		return fmt.Errorf("%w: it has no beginning", errGarbled)
	}
	if err := a.message.Accumulate(e); err != nil {
		return fmt.Errorf("%w: %w", errGarbled, err)
	}
	a.tell(e)
	return nil
}

// tell passes words on and keeps inputs.
func (a *assembly) tell(e anthropic.MessageStreamEventUnion) {
	switch {
	case e.Type == "content_block_start" && e.ContentBlock.Type == "text":
		if a.texts++; a.texts > 1 {
			a.say(between)
		}
		a.say(e.ContentBlock.Text)
	case e.Type == "content_block_delta" && e.Delta.Type == "text_delta":
		a.say(e.Delta.Text)
	case e.Type == "content_block_delta" && e.Delta.Type == "input_json_delta":
		b := a.inputs[e.Index]
		if b == nil {
			b = &strings.Builder{}
			a.inputs[e.Index] = b
		}
		b.WriteString(e.Delta.PartialJSON)
	}
}

func (a *assembly) say(words string) {
	if a.partial != nil && words != "" {
		a.partial(words)
	}
}

// check says why a stream that ended without an error isn't a whole turn.
func (a *assembly) check() error {
	switch {
	case !a.begun:
		return fmt.Errorf("%w before it began", errCut)
	case !a.whole, a.message.StopReason == "":
		return errCut
	case a.open != 0:
		return fmt.Errorf("%w: a part of it never ended", errGarbled)
	}
	return nil
}

// between separates a turn's blocks of text.
const between = "\n\n"

// turn is the whole turn.
func (a *assembly) turn() agent.Turn {
	msg := agent.Message{Role: agent.Assistant}
	var texts []string
	var blocks []anthropic.ContentBlockParamUnion
	for i, b := range a.message.Content {
		switch b.Type {
		case "text":
			texts = append(texts, b.Text)
			if valid(b.Text) == "" {
				continue // the API refuses to have it back
			}
		case "thinking":
			if b.Signature == "" {
				continue // so is a thought that nobody signed
			}
		case "tool_use":
			msg.Calls = append(msg.Calls, agent.Call{ID: b.ID, Name: b.Name, Input: a.input(i, b)})
		}
		blocks = append(blocks, b.ToParam())
	}
	msg.Text = strings.Join(texts, between)
	if len(blocks) > 0 {
		// An error leaves Raw empty: the turn is then put together anew.
		msg.Raw, _ = json.Marshal(blocks)
	}
	return agent.Turn{Message: msg, Stop: agent.StopReason(a.message.StopReason)}
}

func (a *assembly) input(i int, b anthropic.ContentBlockUnion) json.RawMessage {
	if streamed := a.inputs[int64(i)]; streamed != nil && strings.TrimSpace(streamed.String()) != "" {
		return json.RawMessage(streamed.String())
	}
	if len(b.Input) == 0 {
		return json.RawMessage("{}")
	}
	return b.Input
}
