package local

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
	"sbx/engine/gateway"
)

// asked is the status of a request with a key.
func asked(t *testing.T, url, key, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func TestASandboxAsksTheModelWithItsOwnKey(t *testing.T) {
	up := httptest.NewServer(agenttest.NewServer(agenttest.Script{
		Key: "real-canary-key", Turns: []agenttest.Turn{{Text: "hello to you", Repeat: true, Usage: &agenttest.Usage{Input: 100, Output: 10}}},
	}))
	t.Cleanup(up.Close)
	cfg := config(t, t.TempDir(), "")
	cfg.Gateway = GatewayConfig{
		Listen: "127.0.0.1:0", Anthropic: gateway.Upstream{URL: up.URL, Key: "real-canary-key"}, TokensPerDay: 10_000,
	}
	e := open(t, cfg)
	sb := ready(t, e, engine.CreateSandbox{Name: "asks", Origin: source(t), Keep: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var said strings.Builder
	_, err := engine.Exec(ctx, e, sb.ID, engine.Command{Shell: `echo "$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY $SBX_HEAL_URL"; env | grep -c canary`},
		func(l engine.LogLine) { said.WriteString(l.Text + " ") })
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Fields(said.String())
	if len(env) != 4 || !strings.HasPrefix(env[0], "http://127.0.0.1:") || !strings.HasPrefix(env[1], secretPrefix) || env[3] != "0" {
		t.Fatalf("its environment says %q", said.String())
	}
	messages := env[0] + "/v1/messages"
	question := `{"model":"claude-sonnet-5-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
	if code := asked(t, messages, env[1], question); code != 200 {
		t.Fatalf("asked: %d", code)
	}
	if code := asked(t, env[2], env[1], `{"status":"broken","error":"it sings, says `+env[1]+`"}`); code != 200 {
		t.Errorf("reported: %d", code)
	}
	var own engine.Key
	for own.Use.Requests == 0 { // it is written down when the answer has ended
		list, err := e.Keys(ctx, sb.ID)
		if err != nil || len(list) != 1 {
			t.Fatalf("there are the keys %+v, %v", list, err)
		}
		own = list[0]
	}
	if !own.Auto || own.Use.Spent.InputTokens != 100 || own.Use.Spent.Dollars <= 0 {
		t.Errorf("the key is %+v", own)
	}
	snap, err := e.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sig := snap.Signals[sb.ID]
	if sig.Kind != engine.ReportSignal || sig.Verdict == nil || !strings.Contains(sig.Observed, "it sings") || strings.Contains(sig.Observed, env[1]) ||
		snap.Sandboxes[sb.ID].Health != engine.Ready {
		t.Errorf("the report is recorded as %+v", sig)
	}
	if _, err := e.Do(ctx, engine.NewAction(engine.RevokeKey{Key: own.ID})); err != nil {
		t.Fatal(err)
	}
	if code := asked(t, messages, env[1], question); code != 401 {
		t.Errorf("with a revoked key: %d", code)
	}
}
