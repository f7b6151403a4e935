package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sbx/engine"
	"sbx/engine/agent"
)

// restless is a model that calls a tool for ever, each time differently.
type restless struct {
	requests int
	spent    engine.Spent
	each     int // calls in a turn
}

func (m *restless) Name() string { return "restless" }

func (m *restless) Reply(context.Context, agent.Transcript, []agent.Tool, func(string)) (agent.Turn, error) {
	m.requests++
	t := agent.Turn{Stop: agent.ToolUse, Spent: m.spent}
	for i := range max(1, m.each) {
		t.Message.Calls = append(t.Message.Calls, call(fmt.Sprintf("c%d_%d", m.requests, i), "read", fmt.Sprintf(`{"n":%d}`, m.requests)))
	}
	return t, nil
}

func TestStepsAreBounded(t *testing.T) {
	var e echo
	m := &restless{}
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}, Budget: agent.Budget{Steps: 100}})
	if end.Reason != agent.OutOfSteps || len(e.got) != 100 || m.requests != 100 || end.Spent.Steps != 100 {
		t.Errorf("%s after %d calls and %d requests", end.Reason, len(e.got), m.requests)
	}
}

func TestStepsAreBoundedWithinATurn(t *testing.T) {
	var e echo
	m := &restless{each: 10}
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}, Budget: agent.Budget{Steps: 3}})
	if end.Reason != agent.OutOfSteps || len(e.got) != 3 || m.requests != 1 {
		t.Errorf("%s after %d calls and %d requests", end.Reason, len(e.got), m.requests)
	}
	fitToSend(t, end.Transcript)
}

func TestNothingIsSentOrDoneOverBudget(t *testing.T) {
	for name, b := range map[string]agent.Budget{"tokens": {Tokens: 100}, "dollars": {Dollars: 1}} {
		t.Run(name, func(t *testing.T) {
			var e echo
			m := &restless{spent: engine.Spent{InputTokens: 60, Dollars: 0.6}}
			end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}, Budget: b})
			if end.Reason != agent.OverBudget || m.requests != 2 || len(e.got) != 1 {
				t.Errorf("%s after %d requests and %d calls", end.Reason, m.requests, len(e.got))
			}
			fitToSend(t, end.Transcript)
		})
	}
}

func TestSameCallThreeTimesWithTheSameResultIsALoop(t *testing.T) {
	made := 0
	same := tool{name: "run", do: func(context.Context, string) (string, error) { made++; return "same", nil }}
	m := script(calls(call("a", "run", `{"command":"ls"}`)), calls(call("b", "run", `{ "command": "ls" }`)), calls(call("c", "run", `{"command":"ls"}`)))
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{same}})
	if end.Reason != agent.Looping || made != 3 {
		t.Errorf("%s after %d calls", end.Reason, made)
	}
	fitToSend(t, end.Transcript)
}

func TestSameCallWithAnotherResultOrAnEffectIsNoLoop(t *testing.T) {
	n := 0
	tools := []agent.Tool{tool{name: "run", do: func(context.Context, string) (string, error) { n++; return "same", nil }}}
	around := func(_ context.Context, _ agent.Call, do func() (string, error)) (string, string, error) {
		text, err := do()
		return text, fmt.Sprintf("+%d", n), err
	}
	m := script(calls(call("a", "run", `{}`)))
	end := mustRun(t, agent.Agent{Model: m, Tools: tools, Around: around, Budget: agent.Budget{Steps: 9}})
	if end.Reason != agent.OutOfSteps {
		t.Errorf("with effects: %s", end.Reason)
	}
	var e echo // counts in its result
	m = script(calls(call("a", "run", `{}`)))
	end = mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("run")}, Budget: agent.Budget{Steps: 9}})
	if end.Reason != agent.OutOfSteps {
		t.Errorf("with other results: %s", end.Reason)
	}
}

func TestTurnCutAtTheTokenLimitDoesNothing(t *testing.T) {
	var e echo
	m := script(stops(agent.MaxTokens, "", call("a", "read", `{"path":"x"}`)), says("done"))
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}})
	if len(e.got) != 0 || end.Reason != agent.Done || !strings.Contains(m.results(2)[0].Text, "token limit") {
		t.Errorf("calls %v, told %+v", e.got, m.results(2))
	}
	fitToSend(t, end.Transcript)

	m = script(stops(agent.MaxTokens, "on and on"))
	if end = mustRun(t, agent.Agent{Model: m}); end.Reason != agent.CutShort || len(m.asked) != 3 {
		t.Errorf("%s after %d requests", end.Reason, len(m.asked))
	}
}

func TestEmptyTurnIsAskedOnceMore(t *testing.T) {
	m := script(says(" \n"))
	end := mustRun(t, agent.Agent{Model: m})
	if end.Reason != agent.Done || end.Text != "" || len(m.asked) != 2 {
		t.Errorf("%+v after %d requests", end, len(m.asked))
	}
	fitToSend(t, end.Transcript)
	if n := len(m.asked[1].Messages); n != 1 {
		t.Errorf("second request has %d messages, want the first one with a reminder", n)
	}
}

func TestPausedTurnGoesOnFromWhereItIs(t *testing.T) {
	m := script(stops(agent.Paused, "thinking"), says("done"))
	end := mustRun(t, agent.Agent{Model: m})
	last := m.asked[1].Messages[1]
	if end.Text != "done" || last.Role != agent.Assistant || last.Text != "thinking" {
		t.Errorf("second request ends with %+v", last)
	}
	if end = mustRun(t, agent.Agent{Model: script(stops(agent.Paused, "zzz"))}); end.Reason != agent.CutShort {
		t.Errorf("a model that pauses for ever ends %s", end.Reason)
	}
}

func TestRefusalEndsTheRunAndIsNotSentBack(t *testing.T) {
	var e echo
	m := script(stops(agent.Refusal, "I won't", call("a", "read", `{}`)))
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}})
	if end.Reason != agent.Refused || end.Text != "I won't" || len(e.got) != 0 || len(end.Transcript.Messages) != 1 {
		t.Errorf("%+v, calls %v", end, e.got)
	}
}

func TestHugeOutputIsCutInTheMiddle(t *testing.T) {
	var rec recorder
	big := tool{name: "run", do: func(context.Context, string) (string, error) {
		return "begin\n" + strings.Repeat("y\n", 4<<20) + "end\x00\xff\xfe", nil
	}}
	m := script(calls(call("a", "run", `{}`)), says("done"))
	mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{big}, Record: rec.record})
	text := m.results(2)[0].Text
	if len(text) > agent.MaxResult || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		t.Errorf("result has %d bytes", len(text))
	}
	if !strings.HasPrefix(text, "begin\n") || !strings.Contains(text, "bytes left out …") || !strings.HasSuffix(text, "end\uFFFD\uFFFD") {
		t.Errorf("result is %.60q … %q", text, text[len(text)-20:])
	}
	if rec.steps[0].Text != text {
		t.Error("the step has another text than the model got")
	}
}

func TestOutputIsNeverEmpty(t *testing.T) {
	quiet := tool{name: "run", do: func(context.Context, string) (string, error) { return "", nil }}
	m := script(calls(call("a", "run", `{}`)), says("done"))
	mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{quiet}})
	if text := m.results(2)[0].Text; text != "(no output)" {
		t.Errorf("result is %q", text)
	}
}

func TestBoundKeepsAnyTextValidAndWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\x00\xff\xe2\x80\xa6é")), 0, 900).Draw(t, "text"))
		limit := rapid.IntRange(100, 400).Draw(t, "limit")
		got := agent.Bound(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Fatalf("%d bytes of %q", len(got), got)
		}
		if line := agent.OneLine(text, limit); len(line) > limit || !utf8.ValidString(line) || strings.Contains(line, "\n") {
			t.Fatalf("line is %q", line)
		}
	})
}

func TestLongConversationIsShortenedAtItsOldEnd(t *testing.T) {
	page := strings.Repeat("line of a log\n", 2000)
	big := tool{name: "read", do: func(context.Context, string) (string, error) { return page, nil }}
	m := &measured{restless: restless{}}
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{big}, Budget: agent.Budget{Steps: 60}})
	if m.most > 600<<10 || end.Reason != agent.OutOfSteps {
		t.Errorf("the largest request had %d bytes of results; %s", m.most, end.Reason)
	}
}

// measured notes how large requests get.
type measured struct {
	restless
	most int
}

func (m *measured) Reply(ctx context.Context, t agent.Transcript, tools []agent.Tool, partial func(string)) (agent.Turn, error) {
	n := 0
	for _, msg := range t.Messages {
		for _, r := range msg.Results {
			n += len(r.Text)
		}
	}
	m.most = max(m.most, n)
	return m.restless.Reply(ctx, t, tools, partial)
}
