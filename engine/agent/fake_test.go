package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sbx/engine"
	"sbx/engine/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is one reply of a scripted model.
type answer struct {
	turn  agent.Turn
	err   error
	words []string // told before it
	then  func(ctx context.Context)
}

// scripted is a model that answers from a list; the last answer repeats.
type scripted struct {
	answers []answer
	asked   []agent.Transcript
}

func (m *scripted) Name() string { return "scripted" }

func (m *scripted) Reply(ctx context.Context, t agent.Transcript, _ []agent.Tool, partial func(string)) (agent.Turn, error) {
	t.Messages = slices.Clone(t.Messages)
	m.asked = append(m.asked, t)
	a := m.answers[min(len(m.asked), len(m.answers))-1]
	for _, w := range a.words {
		partial(w)
	}
	if a.then != nil {
		a.then(ctx)
	}
	return a.turn, a.err
}

func script(answers ...answer) *scripted { return &scripted{answers: answers} }

func says(text string) answer {
	return answer{turn: agent.Turn{Message: agent.Message{Text: text}, Stop: agent.EndTurn}}
}

func stops(stop agent.StopReason, text string, calls ...agent.Call) answer {
	return answer{turn: agent.Turn{Message: agent.Message{Text: text, Calls: calls}, Stop: stop}}
}

func calls(calls ...agent.Call) answer { return stops(agent.ToolUse, "", calls...) }

func fails(err error) answer { return answer{err: err} }

func call(id, name, input string) agent.Call {
	return agent.Call{ID: id, Name: name, Input: json.RawMessage(input)}
}

// tool is a tool made of a function.
type tool struct {
	name   string
	schema string
	do     func(ctx context.Context, input string) (string, error)
}

func (t tool) Name() string        { return t.name }
func (t tool) Description() string { return "does " + t.name }
func (t tool) Schema() json.RawMessage {
	if t.schema == "" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return json.RawMessage(t.schema)
}

func (t tool) Call(ctx context.Context, input json.RawMessage) (string, error) {
	return t.do(ctx, string(input))
}

// echo answers with its input and remembers it.
type echo struct{ got []string }

func (e *echo) tool(name string) tool {
	return tool{name: name, do: func(_ context.Context, in string) (string, error) {
		e.got = append(e.got, name+in)
		return fmt.Sprintf("%s %s #%d", name, in, len(e.got)), nil
	}}
}

// recorder keeps steps as a store would: it numbers them and knows the latest
// of each.
type recorder struct {
	mu     sync.Mutex
	states []string // "1 tool running", …
	steps  []engine.Step
	fail   error
}

func (r *recorder) record(_ context.Context, s engine.Step) (engine.Step, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return s, r.fail
	}
	if s.Number == 0 {
		s.Number = len(r.steps) + 1
		r.steps = append(r.steps, s)
	}
	r.steps[s.Number-1] = s
	r.states = append(r.states, fmt.Sprintf("%d %s %s", s.Number, s.Kind, s.State))
	return s, nil
}

func hello() agent.Transcript {
	return agent.Transcript{System: "mend it", Messages: []agent.Message{{Role: agent.User, Text: "it is broken"}}}
}

// results are what the model was told in the last message of its n-th request.
func (m *scripted) results(n int) []agent.Result {
	t := m.asked[n-1].Messages
	return t[len(t)-1].Results
}

var errBoom = errors.New("boom")
