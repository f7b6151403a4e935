package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
	"sbx/engine/gateway"
)

const realKey = "the-real-key"

// world is a gateway before a provider, with keys in memory: "key-N" is of
// sandbox N.
type world struct {
	t   *testing.T
	gw  *gateway.Gateway
	url string

	mu      sync.Mutex
	keys    map[string]engine.Key // by hash
	spent   map[engine.SandboxID]engine.Spent
	models  []string
	left    int64
	reports []gateway.Report
}

func newWorld(t *testing.T, anthropic, openai http.Handler) *world {
	t.Helper()
	w := &world{t: t, keys: map[string]engine.Key{}, spent: map[engine.SandboxID]engine.Spent{}, left: 1 << 40}
	w.gw = &gateway.Gateway{Find: w.find, Left: w.leftOf, Spend: w.spend, Report: w.report}
	for _, p := range []struct {
		h  http.Handler
		up *gateway.Upstream
	}{{anthropic, &w.gw.Anthropic}, {openai, &w.gw.OpenAI}} {
		if p.h != nil {
			srv := httptest.NewServer(p.h)
			t.Cleanup(srv.Close)
			*p.up = gateway.Upstream{URL: srv.URL, Key: realKey}
		}
	}
	front := httptest.NewServer(w.gw.Handler())
	t.Cleanup(front.Close)
	w.url = front.URL
	for n := range 3 {
		secret := fmt.Sprint("key-", n)
		w.keys[string(gateway.Hash(secret))] = engine.Key{ID: engine.KeyID("vk-" + secret), Sandbox: engine.SandboxID(fmt.Sprint("sb-", n))}
	}
	return w
}

func (w *world) find(_ context.Context, hash []byte) (engine.Key, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.keys[string(hash)]
	if !ok || !k.Valid(time.Now()) {
		return k, engine.Errorf(engine.Unauthorized, "no")
	}
	return k, nil
}

func (w *world) leftOf(_ context.Context, k engine.Key) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.spent[k.Sandbox]
	left := w.left - s.Tokens()
	if left <= 0 {
		return 0, engine.Errorf(engine.Exhausted, "spent").After(time.Hour)
	}
	return left, nil
}

func (w *world) spend(_ context.Context, k engine.Key, model string, s engine.Spent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spent[k.Sandbox] = w.spent[k.Sandbox].Add(s)
	w.models = append(w.models, model)
	return nil
}

func (w *world) report(_ context.Context, _ engine.Key, r gateway.Report) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
	return nil
}

// ask sends a request; headers are pairs.
func (w *world) ask(method, path, body string, headers ...string) (*http.Response, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp, string(b)
}

const (
	messages = "/api/gateway/anthropic/v1/messages"
	question = `{"model":"claude-sonnet-5-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

func provider(turns ...agenttest.Turn) *agenttest.Server {
	return agenttest.NewServer(agenttest.Script{Turns: turns, Key: realKey})
}

func TestAStreamPassesAndItsTokensAreCounted(t *testing.T) {
	w := newWorld(t, provider(agenttest.Turn{Text: "hello to you", Repeat: true, Usage: &agenttest.Usage{Input: 70, Output: 7, CacheReads: 5, CacheWrites: 3}}), nil)
	var all sync.WaitGroup
	for i := range 20 { // of three sandboxes, at once
		all.Go(func() {
			resp, body := w.ask("POST", messages, question, "X-Api-Key", fmt.Sprint("key-", i%3))
			if resp.StatusCode != 200 || !strings.Contains(body, "message_stop") || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	all.Wait()
	w.settled(20)
	for n, want := range []int64{7, 7, 6} {
		s := w.spent[engine.SandboxID(fmt.Sprint("sb-", n))]
		if s.InputTokens != 70*want || s.OutputTokens != 7*want || s.CacheReads != 5*want || s.CacheWrites != 3*want {
			t.Errorf("sandbox %d has used %+v, want %d times the turn's", n, s, want)
		}
	}
	if w.models[0] == "" {
		t.Error("the model is not told")
	}
}

// settled waits until so many requests are written down: that is after their
// answers have ended.
func (w *world) settled(n int) {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		w.mu.Lock()
		done := len(w.models) >= n
		w.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d requests were written down, want %d", len(w.models), n)
		}
	}
}

func TestOnlyWhatIsNamedPasses(t *testing.T) {
	var seen http.Header
	up := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		rw.Header().Set("Set-Cookie", "a=b")
		rw.Header().Set("Anthropic-Organization-Id", "org")
		io.WriteString(rw, `{"model":"m","usage":{"input_tokens":3,"output_tokens":2}}`)
	})
	w := newWorld(t, up, nil)
	for _, c := range []struct {
		name, method, path string
		status             int
		shape              string
		headers            []string
	}{
		{"no key", "POST", messages, 401, "authentication_error", nil},
		{"a wrong key", "POST", messages, 401, "authentication_error", []string{"X-Api-Key", "nope"}},
		{"another header", "POST", messages, 401, "authentication_error", []string{"Api-Key", "key-0", "Cookie", "key=key-0"}},
		{"a basic one", "POST", messages, 401, "authentication_error", []string{"Authorization", "Basic key-0"}},
		{"two that differ", "POST", messages, 401, "authentication_error", []string{"Authorization", "Bearer key-0", "X-Api-Key", "key-1"}},
		{"the real key", "POST", messages, 401, "authentication_error", []string{"X-Api-Key", realKey}},
		{"another path", "POST", "/api/gateway/anthropic/v1/files", 404, "not_found_error", []string{"X-Api-Key", "key-0"}},
		{"a way out", "POST", "/api/gateway/anthropic/v1/messages/%2e%2e/batches", 404, "not_found_error", []string{"X-Api-Key", "key-0"}},
		{"another method", "DELETE", messages, 405, "invalid_request_error", []string{"X-Api-Key", "key-0"}},
		{"no such provider", "POST", "/api/gateway/openai/v1/responses", 502, "api_error", []string{"Authorization", "Bearer key-0"}},
		{"a bearer", "POST", messages, 200, "input_tokens", []string{"Authorization", "Bearer key-0", "Cookie", "x=y", "X-Forwarded-For", "1.2.3.4", "Anthropic-Version", "2023-06-01"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen = nil
			resp, body := w.ask(c.method, c.path, `{}`, c.headers...)
			if resp.StatusCode != c.status || !strings.Contains(body, c.shape) {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, body, c.status, c.shape)
			}
			if c.status != 200 && seen != nil {
				t.Errorf("the provider was asked: %v", seen)
			}
			if strings.Contains(body, realKey) {
				t.Error("the real key is in the answer")
			}
			if c.status == 200 && (seen.Get("X-Api-Key") != realKey || seen.Get("Cookie")+seen.Get("X-Forwarded-For")+seen.Get("Authorization") != "" ||
				seen.Get("Anthropic-Version") == "" || resp.Header.Get("Set-Cookie")+resp.Header.Get("Anthropic-Organization-Id") != "") {
				t.Errorf("up went %v, down came %v", seen, resp.Header)
			}
		})
	}
}

func TestRedirectsAndTheRealKeysTroubleStayHere(t *testing.T) {
	answer := http.StatusTemporaryRedirect
	up := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		rw.WriteHeader(answer)
		io.WriteString(rw, "key "+realKey+" is wrong")
	})
	w := newWorld(t, up, nil)
	for _, answer = range []int{http.StatusTemporaryRedirect, http.StatusUnauthorized, http.StatusForbidden} {
		resp, body := w.ask("POST", messages, `{}`, "X-Api-Key", "key-0")
		if resp.StatusCode != 502 || resp.Header.Get("Location") != "" || strings.Contains(body, realKey) {
			t.Errorf("%d of the provider became %d %s", answer, resp.StatusCode, body)
		}
	}
}

func TestABudgetThatIsSpentIsRefusedAndCutsAStream(t *testing.T) {
	long := strings.Repeat("many words of an answer ", 400)
	w := newWorld(t, provider(agenttest.Turn{Text: long, Repeat: true, Usage: &agenttest.Usage{Input: 10, Output: 2000}}), nil)
	w.left = 100
	resp, body := w.ask("POST", messages, question, "X-Api-Key", "key-0")
	if resp.StatusCode != 200 || !strings.Contains(body, "rate_limit_error") || strings.Contains(body, "message_stop") || len(body) > len(long) {
		t.Errorf("%d, %d bytes, ends %q", resp.StatusCode, len(body), body[max(0, len(body)-200):])
	}
	w.settled(1)
	if s := w.spent["sb-0"]; s.Tokens() < 100 || s.Tokens() > 400 {
		t.Errorf("it was counted as %+v, want a little more than what was left", s)
	}
	resp, body = w.ask("POST", messages, question, "X-Api-Key", "key-0")
	if resp.StatusCode != 429 || !strings.Contains(body, "rate_limit_error") || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	if resp, _ := w.ask("POST", messages, question, "X-Api-Key", "key-1"); resp.StatusCode != 200 {
		t.Errorf("another sandbox gets %d", resp.StatusCode)
	}
}

func TestARevokedKeyEndsItsOpenStream(t *testing.T) {
	w := newWorld(t, provider(agenttest.Turn{Text: strings.Repeat("words ", 50), Fail: &agenttest.Failure{Kind: agenttest.Silence, After: 8}}), nil)
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.url+messages, strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "key-0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	w.gw.Cut("sb-0", "vk-key-0", "the key was revoked")
	rest, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(rest), "authentication_error") || !strings.Contains(string(rest), "revoked") {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
	w.settled(1)
	if w.spent["sb-0"].Tokens() == 0 {
		t.Error("what had streamed was not counted")
	}
}

func TestOpenAIsStreamIsCountedWithoutItsClientAsking(t *testing.T) {
	up := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+realKey || !strings.Contains(string(b), `"include_usage":true`) {
			rw.WriteHeader(400)
			return
		}
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: {\"model\":\"gpt\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"+
			"data: {\"model\":\"gpt\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n")
	})
	w := newWorld(t, nil, up)
	resp, body := w.ask("POST", "/api/gateway/openai/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[]}`, "Authorization", "Bearer key-2")
	if resp.StatusCode != 200 || !strings.Contains(body, "hi") || !strings.Contains(body, "[DONE]") || strings.Contains(body, "usage") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	w.settled(1)
	if s := w.spent["sb-2"]; s.InputTokens != 11 || s.OutputTokens != 4 {
		t.Errorf("counted as %+v", s)
	}
}

func TestAReportIsTakenOrRefused(t *testing.T) {
	w := newWorld(t, nil, nil)
	for _, c := range []struct {
		body, key string
		status    int
	}{
		{`{"status":"healing"}`, "key-0", 200},
		{`{"status":"broken","error":"no luck"}`, "key-0", 200},
		{`{"status":"ready"}`, "nope", 401},
		{`{"status":"fine"}`, "key-0", 400},
		{`{"status":"ready","by":"me"}`, "key-0", 400},
		{`{"status":"ready"} {}`, "key-0", 400},
		{`nonsense`, "key-0", 400},
		{`{"status":"broken","error":"` + strings.Repeat("x", 20<<10) + `"}`, "key-0", 400},
	} {
		if resp, body := w.ask("POST", "/api/sandbox/heal", c.body, "Authorization", "Bearer "+c.key); resp.StatusCode != c.status {
			t.Errorf("%.60s: %d %s, want %d", c.body, resp.StatusCode, body, c.status)
		}
	}
	if len(w.reports) != 2 || w.reports[1].Error != "no luck" {
		t.Errorf("reported: %+v", w.reports)
	}
	for range 40 {
		w.ask("POST", "/api/sandbox/heal", `{"status":"ready"}`, "Authorization", "Bearer key-0")
	}
	if n := len(w.reports); n > 31 {
		t.Errorf("%d reports were taken within a minute", n)
	}
}
