package claude_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/agent/agenttest"
	"sbx/engine/agent/claude"
)

// status is a turn that fails by status.
func status(code int, kind, message string, headers ...string) agenttest.Turn {
	f := &agenttest.Failure{Kind: agenttest.Status, Status: code, Type: kind, Message: message, Headers: map[string]string{}}
	for i := 0; i+1 < len(headers); i += 2 {
		f.Headers[headers[i]] = headers[i+1]
	}
	return agenttest.Turn{Fail: f}
}

func page(code int, kind, body string) agenttest.Turn {
	return agenttest.Turn{Fail: &agenttest.Failure{Kind: agenttest.Status, Status: code, Body: body, Headers: map[string]string{"Content-Type": kind}}}
}

func broken(kind agenttest.FailureKind, after int) agenttest.Turn {
	return agenttest.Turn{Text: "I will read it", Calls: []agenttest.Call{read("a")}, Fail: &agenttest.Failure{Kind: kind, After: after}}
}

func TestEveryFailureHasItsCodeAndWords(t *testing.T) {
	midstream := func(kind string) agenttest.Turn {
		turn := broken(agenttest.Error, 3)
		turn.Fail.Type = kind
		return turn
	}
	for _, c := range []struct {
		name  string
		turn  agenttest.Turn
		code  engine.Code
		words string
	}{
		{"wrong key", status(401, "authentication_error", "invalid "+key), engine.Unauthorized, "refused the key"},
		{"no permission", status(403, "permission_error", "no"), engine.Forbidden, "may not use claude-sonnet-5-5"},
		{"unknown model", status(404, "not_found_error", "model: x"), engine.NotFound, "no model claude-sonnet-5-5"},
		{"unknown path", page(404, "text/plain", "404 page not found"), engine.NotFound, "nothing answers"},
		{"bad request", status(400, "invalid_request_error", "messages: too odd"), engine.Invalid, "too odd"},
		{"no credit", status(400, "invalid_request_error", "Your credit balance is too low"), engine.Exhausted, "credit balance"},
		{"unpaid", status(402, "billing_error", "pay"), engine.Exhausted, "spend limit"},
		{"too large", status(413, "request_too_large", "33 MB"), engine.Invalid, "prompt is too long"},
		{"too long", status(400, "invalid_request_error", "prompt is too long: 210000 tokens"), engine.Invalid, "prompt is too long"},
		{"rate", status(429, "rate_limit_error", "slow down", "Retry-After", "7"), engine.Unavailable, "rate limit"},
		{"spend limit", status(429, "rate_limit_error", "no more"), engine.Exhausted, "spend limit"},
		{"spend limit with a time", status(429, "rate_limit_error", "enforced_spend_limit_reached", "Retry-After", "7"), engine.Exhausted, "spend limit"},
		{"overloaded", status(529, "overloaded_error", "busy"), engine.Unavailable, "overloaded"},
		{"broken inside", status(500, "api_error", "oops"), engine.Unavailable, "oops"},
		{"proxy's page", page(502, "text/html", "<html><h1>Bad Gateway</h1>"), engine.Unavailable, "502 with a page"},
		{"login page", page(200, "text/html", "<html>sign in"), engine.Unavailable, "a page of HTML"},
		{"plain JSON", page(200, "application/json", "{}"), engine.Unavailable, "application/json"},
		{"redirect", agenttest.Turn{Fail: &agenttest.Failure{Kind: agenttest.Status, Status: 307, Headers: map[string]string{"Location": "http://127.0.0.1:1/"}}}, engine.Invalid, "redirects"},
		{"overloaded in mid-stream", midstream("overloaded_error"), engine.Unavailable, "overloaded"},
		{"api error in mid-stream", midstream("api_error"), engine.Unavailable, "scripted failure"},
		{"rate in mid-stream", midstream("rate_limit_error"), engine.Unavailable, "rate limit"},
		{"bad request in mid-stream", midstream("invalid_request_error"), engine.Invalid, "scripted failure"},
		{"garbage", broken(agenttest.Garbage, 4), engine.Unavailable, "garbled"},
		{"cut", broken(agenttest.Cut, 4), engine.Unavailable, "cut off"},
		{"reset", broken(agenttest.Reset, 4), engine.Unavailable, "cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{c.turn}})
			_, err := m.Reply(t.Context(), hello(), nil, nil)
			if !errors.Is(err, c.code) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v: %v; want %s with %q", engine.AsError(err).Code, err, c.code, c.words)
			}
			if err != nil && strings.Contains(err.Error()+engine.Hint(err), key) {
				t.Errorf("the key is in %q", err)
			}
			if n := len(server.Requests()); n != 1 {
				t.Errorf("%d requests: the loop owns retries", n)
			}
		})
	}
}

func TestWrongKeySaysWhatToSet(t *testing.T) {
	m, _ := dial(t, agenttest.Script{Key: "another", Turns: []agenttest.Turn{{Text: "hi"}}})
	_, err := m.Reply(t.Context(), hello(), nil, nil)
	if err == nil || err.Error() != "the model refused the key" || engine.Hint(err) != "set ANTHROPIC_API_KEY or model.key" {
		t.Errorf("%v: %s", err, engine.Hint(err))
	}
}

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", "1e12", 24 * time.Hour},
		{"Retry-After", "-5", 0},
		{"Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
	} {
		m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{status(429, "rate_limit_error", "x", c.name, c.value)}})
		_, err := m.Reply(t.Context(), hello(), nil, nil)
		if e := engine.AsError(err); e.Code != engine.Unavailable || e.RetryAfter.D() != c.want {
			t.Errorf("%s: %s: %v after %v", c.name, c.value, err, e.RetryAfter)
		}
	}
}

// TestStreamCutAfterEveryEventDoesNothing ends the stream of a turn with two
// calls before each of its events, in each way that a stream can end.
func TestStreamCutAfterEveryEventDoesNothing(t *testing.T) {
	turn := agenttest.Turn{Thinking: "hm, let me think of that", Text: "I will read both files", Calls: []agenttest.Call{read("a.txt"), read("b.txt")}}
	events := turn.Events()
	if events < 15 {
		t.Fatalf("the turn has %d events only", events)
	}
	for _, kind := range []agenttest.FailureKind{agenttest.Cut, agenttest.Reset, agenttest.Garbage, agenttest.Error} {
		for after := range events {
			t.Run(fmt.Sprint(kind, after), func(t *testing.T) {
				cut := turn
				cut.Fail = &agenttest.Failure{Kind: kind, After: after}
				m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{cut}})
				var got []string
				_, err := agent.Agent{Model: m, Tools: []agent.Tool{tool{&got}}}.Run(t.Context(), hello())
				if !errors.Is(err, engine.Unavailable) || len(got) != 0 {
					t.Errorf("%v; calls made %v", err, got)
				}
			})
		}
	}
}

func TestBrokenTurnIsAskedForAgainFromTheLastWholeOne(t *testing.T) {
	m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{
		{Calls: []agenttest.Call{read("a.txt")}},
		broken(agenttest.Reset, 6),
		{Last: "contents of", Text: "done"},
	}})
	var got []string
	end, err := agent.Agent{Model: m, Tools: []agent.Tool{tool{&got}}, Budget: agent.Budget{Retry: time.Minute}}.Run(t.Context(), hello())
	if err != nil || end.Text != "done" || len(got) != 1 {
		t.Fatalf("%+v, %v, calls %v", end, err, got)
	}
	r := server.Requests()
	if string(r[1].Body) != string(r[2].Body) {
		t.Error("the request made again is another one")
	}
	if end.Spent.InputTokens != 300 {
		t.Errorf("%d input tokens: the broken turn must be paid for, too", end.Spent.InputTokens)
	}
}

func TestSilentModelIsGivenUp(t *testing.T) {
	for _, after := range []int{0, 6} {
		m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{broken(agenttest.Silence, after)}}, func(c *claude.Config) { c.IdleTimeout = 50 * time.Millisecond })
		_, err := m.Reply(t.Context(), hello(), nil, nil)
		if !errors.Is(err, engine.Unavailable) || !strings.Contains(err.Error(), "silent for 50ms") {
			t.Errorf("after %d events: %v", after, err)
		}
	}
	m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{{Text: "late", Delay: engine.Duration(time.Minute)}}}, func(c *claude.Config) { c.IdleTimeout = 50 * time.Millisecond })
	if _, err := m.Reply(t.Context(), hello(), nil, nil); err == nil || !strings.Contains(err.Error(), "silent") {
		t.Errorf("without a head: %v", err)
	}
}

func TestSlowModelIsWaitedForAndPingsAreNotForEver(t *testing.T) {
	with := func(c *claude.Config) { c.IdleTimeout, c.TurnTimeout = 2*time.Second, 300*time.Millisecond }
	m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{broken(agenttest.Pings, 2)}}, with)
	_, err := m.Reply(t.Context(), hello(), nil, nil)
	if !errors.Is(err, engine.Unavailable) || !strings.Contains(err.Error(), "longer than 300ms") {
		t.Errorf("pings for ever: %v", err)
	}
	slow := agenttest.Turn{Text: "a few words that come slowly", Pace: engine.Duration(40 * time.Millisecond)}
	m, _ = dial(t, agenttest.Script{Turns: []agenttest.Turn{slow}}, func(c *claude.Config) { c.IdleTimeout = 250 * time.Millisecond })
	if turn, err := m.Reply(t.Context(), hello(), nil, nil); err != nil || turn.Message.Text != slow.Text {
		t.Errorf("a slow turn: %v", err)
	}
}

func TestCancelIsNotTheModelsFault(t *testing.T) {
	m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{broken(agenttest.Silence, 4)}})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := m.Reply(ctx, hello(), nil, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) || errors.Is(err, engine.Unavailable) {
		t.Errorf("error is %v", err)
	}
}

func TestEndlessAnswerIsBounded(t *testing.T) {
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n")
		fmt.Fprintf(w, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n")
		chunk := strings.Repeat("y", 64<<10)
		for r.Context().Err() == nil {
			if _, err := fmt.Fprintf(w, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", chunk); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	m := newModel(t, claude.Config{BaseURL: endless.URL, Key: key})
	_, err := m.Reply(t.Context(), hello(), nil, nil)
	if !errors.Is(err, engine.Invalid) || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error is %v", err)
	}
}

func TestUnreachableServerSaysWhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	m := newModel(t, claude.Config{BaseURL: "http://" + addr, Key: key})
	_, err = m.Reply(t.Context(), hello(), nil, nil)
	if !errors.Is(err, engine.Unavailable) || !strings.Contains(err.Error(), addr+": connection refused") || engine.Hint(err) == "" {
		t.Errorf("error is %v", err)
	}

	tls := httptest.NewTLSServer(http.NotFoundHandler())
	tls.Config.ErrorLog = nil
	defer tls.Close()
	m = newModel(t, claude.Config{BaseURL: tls.URL, Key: key})
	_, err = m.Reply(t.Context(), hello(), nil, nil)
	if !errors.Is(err, engine.Unavailable) || !strings.Contains(engine.Hint(err), "SSL_CERT_FILE") {
		t.Errorf("error is %v (%s)", err, engine.Hint(err))
	}
}
