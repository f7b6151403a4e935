package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent"
)

func mustRun(t *testing.T, a agent.Agent) agent.End {
	t.Helper()
	end, err := a.Run(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestCallsOfATurnRunInOrderAndTheirResultsGoBack(t *testing.T) {
	var e echo
	m := script(calls(call("a", "read", `{"path":"x"}`), call("b", "write", `{}`), call("c", "read", `{"path":"y"}`)), says("done"))
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read"), e.tool("write")}})

	if diff := cmp.Diff([]string{`read{"path":"x"}`, `write{}`, `read{"path":"y"}`}, e.got); diff != "" {
		t.Error(diff)
	}
	want := []agent.Result{{ID: "a", Text: `read {"path":"x"} #1`}, {ID: "b", Text: `write {} #2`}, {ID: "c", Text: `read {"path":"y"} #3`}}
	if diff := cmp.Diff(want, m.results(2)); diff != "" {
		t.Error(diff)
	}
	if end.Reason != agent.Done || end.Text != "done" || end.Spent.Steps != 3 {
		t.Errorf("end is %+v", end)
	}
}

func TestStepsAreToldBeforeAndAfterEachCall(t *testing.T) {
	var rec recorder
	var e echo
	boom := tool{name: "boom", do: func(context.Context, string) (string, error) { return "half", errBoom }}
	m := script(stops(agent.ToolUse, "let me look", call("a", "read", `{"path":"a\nb"}`), call("b", "boom", `{}`)), says("done"))
	mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read"), boom}, Record: rec.record})

	want := []string{"1 thought ok", "2 tool running", "2 tool ok", "3 tool running", "3 tool failed", "4 thought ok"}
	if diff := cmp.Diff(want, rec.states); diff != "" {
		t.Error(diff)
	}
	if s := rec.steps[1]; s.Name != "read" || s.Argument != "a b" || s.Started.IsZero() || s.Ended.IsZero() {
		t.Errorf("step of the call is %+v", s)
	}
	if s := rec.steps[2]; s.Text != "half\nerror: boom" {
		t.Errorf("failed step says %q", s.Text)
	}
}

func TestAroundSeesEachCallAndItsDiffIsKept(t *testing.T) {
	var rec recorder
	var e echo
	around := func(_ context.Context, c agent.Call, do func() (string, error)) (string, string, error) {
		text, err := do()
		return strings.ToUpper(text), "-a\n+b\n", err
	}
	m := script(calls(call("a", "edit", `{}`)), says("done"))
	mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("edit")}, Record: rec.record, Around: around})
	if rec.steps[0].Diff != "-a\n+b\n" || m.results(2)[0].Text != "EDIT {} #1" {
		t.Errorf("step %+v, result %+v", rec.steps[0], m.results(2))
	}
}

func TestBrokenCallsAreAnsweredAndNeverMade(t *testing.T) {
	strict := `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false}`
	for _, c := range []struct {
		name, says string
		call       agent.Call
	}{
		{"an unknown tool", "there is no tool called", call("a", "rm", `{}`)},
		{"a tool without a name", "named no tool", call("a", "", `{}`)},
		{"a name no tool can have", "named no tool", call("a", "../x", `{}`)},
		{"an input that is cut off", "not valid JSON", call("a", "read", `{"path": "x`)},
		{"no input", "has no input", call("a", "read", ``)},
		{"an input that is no object", "must be a JSON object", call("a", "read", `["x"]`)},
		{"null", "must be a JSON object", call("a", "read", `null`)},
		{"a missing key", `"path" is missing`, call("a", "read", `{}`)},
		{"a key that is null", `"path" is missing`, call("a", "read", `{"path":null}`)},
		{"a wrong type", `"path" must be of type string, not number`, call("a", "read", `{"path":1}`)},
		{"a fraction", `"n" must be of type integer`, call("a", "read", `{"path":"x","n":1.5}`)},
		{"a key too many", `there is no "mode"`, call("a", "read", `{"path":"x","mode":1}`)},
		{"no id", "no valid id", call("", "read", `{"path":"x"}`)},
		{"an id that is none", "no valid id", call("a b", "read", `{"path":"x"}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := tool{name: "read", schema: strict, do: func(context.Context, string) (string, error) {
				t.Error("the tool was called")
				return "", nil
			}}
			m := script(calls(c.call), says("done"))
			end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{read}})
			got := m.results(2)
			if len(got) != 1 || !got[0].Error || !strings.Contains(got[0].Text, c.says) {
				t.Errorf("the model is told %+v, want %q", got, c.says)
			}
			fitToSend(t, end.Transcript)
		})
	}
}

// fitToSend checks what the API demands of a conversation.
func fitToSend(t *testing.T, tr agent.Transcript) {
	t.Helper()
	ids := map[string]bool{}
	for i, m := range tr.Messages {
		for j, c := range m.Calls {
			if c.ID == "" || ids[c.ID] || !strings.HasPrefix(string(c.Input), "{") {
				t.Errorf("message %d has the call %+v", i, c)
			}
			ids[c.ID] = true
			if i+1 >= len(tr.Messages) || tr.Messages[i+1].Results[j].ID != c.ID {
				t.Errorf("call %s has no result", c.ID)
			}
		}
		if m.Text == "" && len(m.Calls)+len(m.Results) == 0 {
			t.Errorf("message %d is empty", i)
		}
	}
}

func TestTwoCallsWithOneIDMakeOnlyTheFirst(t *testing.T) {
	var e echo
	m := script(calls(call("a", "read", `{}`), call("a", "read", `{"x":1}`)), calls(call("a", "read", `{"x":2}`)), says("done"))
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}})
	// A server that counts anew in each turn is no fault of the call.
	if diff := cmp.Diff([]string{`read{}`, `read{"x":2}`}, e.got); diff != "" {
		t.Error(diff)
	}
	fitToSend(t, end.Transcript)
}

func TestToolsThatPanicAnswerWithAnError(t *testing.T) {
	bad := tool{name: "bad", do: func(context.Context, string) (string, error) { panic("nil map") }}
	m := script(calls(call("a", "bad", `{}`)), says("done"))
	mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{bad}})
	if r := m.results(2)[0]; !r.Error || !strings.Contains(r.Text, "nil map") {
		t.Errorf("the model is told %+v", r)
	}
}

func TestFatalErrorEndsTheRunWithEveryCallAnswered(t *testing.T) {
	var rec recorder
	gone := tool{name: "gone", do: func(context.Context, string) (string, error) { return "", agent.Fatal(errBoom) }}
	m := script(calls(call("a", "gone", `{}`), call("b", "gone", `{}`)))
	end, err := agent.Agent{Model: m, Tools: []agent.Tool{gone}, Record: rec.record}.Run(t.Context(), hello())
	if !errors.Is(err, errBoom) {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff([]string{"1 tool running", "1 tool failed"}, rec.states); diff != "" {
		t.Error(diff)
	}
	fitToSend(t, end.Transcript)
}

func TestRecordThatFailsEndsTheRunBeforeTheCallIsMade(t *testing.T) {
	var e echo
	rec := recorder{fail: errBoom}
	m := script(calls(call("a", "read", `{}`)))
	_, err := agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}, Record: rec.record}.Run(t.Context(), hello())
	if !errors.Is(err, errBoom) || len(e.got) != 0 {
		t.Errorf("error is %v, calls made %v", err, e.got)
	}
}

func TestCancelDuringACallClosesItsStepAndMakesNoOther(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var rec recorder
	slow := tool{name: "slow", do: func(ctx context.Context, _ string) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}}
	m := script(calls(call("a", "slow", `{}`), call("b", "slow", `{}`)))
	_, err := agent.Agent{Model: m, Tools: []agent.Tool{slow}, Record: rec.record}.Run(ctx, hello())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if diff := cmp.Diff([]string{"1 tool running", "1 tool failed"}, rec.states); diff != "" {
		t.Error(diff)
	}
	if len(m.asked) != 1 {
		t.Errorf("asked %d times", len(m.asked))
	}
}

func TestCallersTranscriptStaysTheirs(t *testing.T) {
	var e echo
	mine := hello()
	mine.Messages = append(make([]agent.Message, 0, 8), mine.Messages...)
	m := script(calls(call("a", "read", `{}`)), says("done"))
	if _, err := (agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}}).Run(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if got := mine.Messages[:2][1]; got.Role != "" {
		t.Errorf("a message was written behind the caller's: %+v", got)
	}
}

func TestSpentIsAddedUp(t *testing.T) {
	var e echo
	one := calls(call("a", "read", `{}`))
	one.turn.Spent = engine.Spent{InputTokens: 10, OutputTokens: 1, Dollars: 0.5}
	two := says("done")
	two.turn.Spent = engine.Spent{CacheReads: 10, OutputTokens: 2, Dollars: 0.25}
	end := mustRun(t, agent.Agent{Model: script(one, two), Tools: []agent.Tool{e.tool("read")}})
	want := engine.Spent{Steps: 1, InputTokens: 10, CacheReads: 10, OutputTokens: 3, Dollars: 0.75}
	if diff := cmp.Diff(want, end.Spent); diff != "" {
		t.Error(diff)
	}
}
