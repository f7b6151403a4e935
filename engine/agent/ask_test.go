package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent"
)

func unavailable() error { return engine.Errorf(engine.Unavailable, "the model is overloaded") }

func TestUnavailableProviderIsWaitedForWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var at []time.Duration
		start := time.Now()
		m := script(fails(unavailable()), fails(unavailable()), fails(unavailable()), says("done"))
		end := mustRun(t, agent.Agent{
			Model: m, Budget: agent.Budget{Retry: time.Minute},
			Waiting: func(_ context.Context, why string) { told = append(told, why); at = append(at, time.Since(start)) },
		})
		const why = "the model is overloaded"
		if diff := cmp.Diff([]string{why, why, why, ""}, told); diff != "" || end.Reason != agent.Done {
			t.Error(diff, end.Reason)
		}
		for i, first := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
			if pause := at[i+1] - at[i]; pause < first/2 || pause > first {
				t.Errorf("pause %d is %v", i+1, pause)
			}
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		m := script(fails(engine.Errorf(engine.Unavailable, "rate limit").After(20*time.Second)), says("done"))
		mustRun(t, agent.Agent{Model: m, Budget: agent.Budget{Retry: time.Minute}})
		if took := time.Since(start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("came back after %v", took)
		}
	})
}

func TestWaitingEndsWithItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		m := script(fails(unavailable()))
		_, err := agent.Agent{Model: m, Budget: agent.Budget{Retry: 5 * time.Minute}}.Run(t.Context(), hello())
		if !errors.Is(err, engine.Unavailable) || !strings.Contains(err.Error(), "overloaded") {
			t.Errorf("error is %v", err)
		}
		if took := time.Since(start); took > 5*time.Minute || took < 3*time.Minute {
			t.Errorf("gave up after %v", took)
		}
		if len(m.asked) > 15 {
			t.Errorf("asked %d times", len(m.asked))
		}
	})
}

func TestWaitingBudgetCountsOverTheWholeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e echo
		slow := answer{err: unavailable(), then: func(ctx context.Context) {
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
			}
		}}
		down := answer{err: engine.Errorf(engine.Unavailable, "rate limit").After(20 * time.Second)}
		m := script(down, slow, calls(call("a", "read", `{}`)), down, says("done"))
		_, err := agent.Agent{Model: m, Tools: []agent.Tool{e.tool("read")}, Budget: agent.Budget{Retry: 50 * time.Second}}.Run(t.Context(), hello())
		if !errors.Is(err, engine.Unavailable) || len(e.got) != 1 {
			t.Errorf("error is %v after %d calls", err, len(e.got))
		}
	})
}

func TestWhatWaitingCannotMendIsNotRetried(t *testing.T) {
	for _, code := range []engine.Code{engine.Unauthorized, engine.Exhausted, engine.Invalid, engine.Forbidden, engine.NotFound} {
		m := script(fails(engine.Errorf(code, "no")))
		_, err := agent.Agent{Model: m, Budget: agent.Budget{Retry: time.Hour}}.Run(t.Context(), hello())
		if !errors.Is(err, code) || len(m.asked) != 1 {
			t.Errorf("%s: %v after %d requests", code, err, len(m.asked))
		}
	}
}

func TestWithoutARetryBudgetTheFirstFailureIsFinal(t *testing.T) {
	m := script(fails(unavailable()))
	_, err := agent.Agent{Model: m}.Run(t.Context(), hello())
	if !errors.Is(err, engine.Unavailable) || len(m.asked) != 1 {
		t.Errorf("%v after %d requests", err, len(m.asked))
	}
}

func TestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		m := script(fails(engine.Errorf(engine.Unavailable, "gone").After(time.Hour)))
		_, err := agent.Agent{Model: m, Budget: agent.Budget{Retry: 2 * time.Hour}}.Run(ctx, hello())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestFailedRequestsCostCounts(t *testing.T) {
	m := script(answer{turn: agent.Turn{Spent: engine.Spent{InputTokens: 7}}, err: unavailable()})
	end, err := agent.Agent{Model: m}.Run(t.Context(), hello())
	if err == nil || end.Spent.InputTokens != 7 {
		t.Errorf("spent %+v, error %v", end.Spent, err)
	}
}

func TestThoughtsGrowFourTimesASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		m := &talker{words: 100, every: 20 * time.Millisecond}
		mustRun(t, agent.Agent{Model: m, Record: rec.record})
		if n := len(rec.states); n < 7 || n > 10 {
			t.Errorf("2 s of words were recorded %d times: %v", n, rec.states)
		}
		if s := rec.steps[0]; s.State != engine.StepOK || s.Text != strings.TrimSpace(strings.Repeat("word ", 100)) {
			t.Errorf("the thought ends as %+v", s)
		}
	})
}

// talker says words one by one.
type talker struct {
	words int
	every time.Duration
}

func (m *talker) Name() string { return "talker" }

func (m *talker) Reply(ctx context.Context, _ agent.Transcript, _ []agent.Tool, partial func(string)) (agent.Turn, error) {
	for range m.words {
		partial("word ")
		time.Sleep(m.every) // in a bubble
	}
	return agent.Turn{Message: agent.Message{Text: strings.Repeat("word ", m.words)}, Stop: agent.EndTurn}, nil
}

func TestThoughtOfABrokenTurnIsClosedAsFailed(t *testing.T) {
	var rec recorder
	m := script(answer{words: []string{"I see the "}, err: unavailable()})
	agent.Agent{Model: m, Record: rec.record}.Run(t.Context(), hello())
	if s := rec.steps[0]; s.State != engine.StepFailed || !strings.HasPrefix(s.Text, "I see the") || !strings.Contains(s.Text, "overloaded") {
		t.Errorf("the thought ends as %+v", s)
	}
}

func TestThoughtThatCannotBeRecordedCutsTheRequest(t *testing.T) {
	rec := recorder{fail: errBoom}
	cut := false
	m := script(answer{words: []string{"hm"}, err: context.Canceled, then: func(ctx context.Context) { cut = ctx.Err() != nil }})
	_, err := agent.Agent{Model: m, Record: rec.record}.Run(t.Context(), hello())
	if !errors.Is(err, errBoom) || !cut {
		t.Errorf("error is %v, request cut: %v", err, cut)
	}
}

func TestPromptTooLongIsShortenedOnceAndThenFails(t *testing.T) {
	long := engine.Errorf(engine.Invalid, "%w: 210000 tokens", agent.ErrTooLong)
	page := strings.Repeat("log\n", 1000)
	big := tool{name: "read", do: func(context.Context, string) (string, error) { return page, nil }}
	m := script(calls(call("a", "read", `{"n":1}`)), calls(call("b", "read", `{"n":2}`)), fails(long), says("done"))
	end := mustRun(t, agent.Agent{Model: m, Tools: []agent.Tool{big}})
	if old := m.asked[3].Messages[2].Results[0].Text; end.Reason != agent.Done || len(old) > 400 {
		t.Errorf("%s; the oldest result has %d bytes", end.Reason, len(old))
	}
	if latest := m.results(4)[0].Text; latest != page {
		t.Errorf("the latest result has %d bytes", len(latest))
	}
	_, err := agent.Agent{Model: script(fails(long))}.Run(t.Context(), hello())
	if !errors.Is(err, engine.Invalid) || engine.Hint(err) == "" {
		t.Errorf("error is %v", err)
	}
	_, err = agent.Agent{Model: script(stops(agent.ContextFull, "…"))}.Run(t.Context(), hello())
	if !errors.Is(err, agent.ErrTooLong) {
		t.Errorf("error is %v", err)
	}
}
