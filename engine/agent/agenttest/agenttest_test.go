package agenttest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// post sends a conversation of one message and returns the status and answer.
func post(t *testing.T, url, text string, headers ...string) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"system":[{"type":"text","text":"the rules"}],"messages":[{"role":"user","content":[{"type":"text","text":%q}]}]}`, text)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}

func TestTurnsAreGivenInOrderToRequestsThatFit(t *testing.T) {
	url, server := agenttest.Serve(t, agenttest.Script{Turns: []agenttest.Turn{
		{When: "bakery", Text: "bakery one"},
		{When: "florist", Text: "florist one"},
		{When: "bakery", Text: "bakery two"},
		{When: "the rules", Last: "again", Repeat: true, Text: "for ever"},
	}})
	for _, c := range []struct{ ask, want string }{
		{"florist", "florist one"}, {"bakery", "bakery one"}, {"bakery", "bakery two"}, {"again", "for ever"}, {"again", "for ever"},
	} {
		if code, body := post(t, url, c.ask); code != 200 || !said(body, c.want) {
			t.Errorf("%s: %d %s", c.ask, code, body)
		}
	}
	if code, body := post(t, url, "bakery"); code != 400 || !strings.Contains(body, "no turn for this request") {
		t.Errorf("%d %s", code, body)
	}
	if n := len(server.Requests()); n != 6 || server.Left() != 0 || !strings.Contains(server.Requests()[0].Last, "florist") {
		t.Errorf("%d requests, %d turns left", n, server.Left())
	}
}

// said reports whether a stream's words are want.
func said(stream, want string) bool {
	var text strings.Builder
	for _, line := range strings.Split(stream, "\n") {
		if _, rest, ok := strings.Cut(line, `"text":"`); ok && strings.Contains(line, "text_delta") {
			piece, _, _ := strings.Cut(rest, `"`)
			text.WriteString(piece)
		}
	}
	return text.String() == want
}

func TestEveryTurnIsGivenOnceUnderConcurrency(t *testing.T) {
	var script agenttest.Script
	for range 50 {
		script.Turns = append(script.Turns, agenttest.Turn{Text: "x"})
	}
	url, server := agenttest.Serve(t, script)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if code, body := post(t, url, "hi"); code != 200 {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	wg.Wait()
	if server.Left() != 0 {
		t.Errorf("%d turns left", server.Left())
	}
}

func TestKeyIsAskedForInEitherForm(t *testing.T) {
	url, server := agenttest.Serve(t, agenttest.Script{Key: "k", Turns: []agenttest.Turn{{Text: "x", Repeat: true}}})
	for _, c := range []struct {
		name, value string
		want        int
	}{{"X-Api-Key", "k", 200}, {"Authorization", "Bearer k", 200}, {"X-Api-Key", "l", 401}, {"X-Other", "k", 401}} {
		if code, body := post(t, url, "hi", c.name, c.value); code != c.want {
			t.Errorf("%s: %s: %d %s", c.name, c.value, code, body)
		}
	}
	if n := len(server.Requests()); n != 4 {
		t.Errorf("%d requests were recorded", n)
	}
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	url, _ := agenttest.Serve(t, agenttest.Script{Turns: []agenttest.Turn{{Text: "x", Repeat: true}}})
	for _, c := range []struct {
		method, path, body string
		want               int
	}{{"GET", "/v1/messages", "", 404}, {"POST", "/v1/models", "{}", 404}, {"POST", "/v1/messages", "{", 400}, {"POST", "/v1/messages", `{"messages":[]}`, 400}} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, url+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s %s: %s", c.method, c.path, c.body, resp.Status)
		}
	}
}

func TestScriptIsLoadedFromJSON(t *testing.T) {
	got, err := agenttest.Load(strings.NewReader(`{"key":"k","turns":[
		{"when":"a","text":"hi","calls":[{"name":"read","input":{"path":"x"}}],"usage":{"input":5,"output":6},"delay":"2s"},
		{"repeat":true,"fail":{"kind":"status","status":529,"headers":{"Retry-After":"1"}}}]}`))
	want := agenttest.Script{Key: "k", Turns: []agenttest.Turn{
		{When: "a", Text: "hi", Calls: []agenttest.Call{{Name: "read", Input: []byte(`{"path":"x"}`)}}, Usage: &agenttest.Usage{Input: 5, Output: 6}, Delay: engine.Duration(2e9)},
		{Repeat: true, Fail: &agenttest.Failure{Kind: agenttest.Status, Status: 529, Headers: map[string]string{"Retry-After": "1"}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestScriptWithAMistakeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"turns":[{"txt":"x"}]}`:                                      "unknown field",
		`{"turns":[{},{"fail":{"kind":"explode"}}]}`:                   `turn 2: there is no failure "explode"`,
		`{"turns":[{"fail":{"kind":"status"}}]}`:                       "turn 1: status 0 is none",
		`{"turns":[{"calls":[{"input":{}}]}]}`:                         "turn 1: a call has no name",
		`{"turns":[{"fail":{"kind":"cut","after":1}}],"turns":"none"}`: "read script",
	} {
		if _, err := agenttest.Load(strings.NewReader(text)); !errors.Is(err, engine.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
