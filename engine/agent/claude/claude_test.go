package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/agent/agenttest"
	"sbx/engine/agent/claude"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-0123456789"

// dial is a model of a scripted server.
func dial(t testing.TB, s agenttest.Script, with ...func(*claude.Config)) (*claude.Model, *agenttest.Server) {
	t.Helper()
	url, server := agenttest.Serve(t, s)
	c := claude.Config{BaseURL: url, Key: key}
	for _, f := range with {
		f(&c)
	}
	return newModel(t, c), server
}

func newModel(t testing.TB, c claude.Config) *claude.Model {
	t.Helper()
	m, err := claude.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

type tool struct{ got *[]string }

func (tool) Name() string        { return "read" }
func (tool) Description() string { return "reads a file" }
func (tool) Schema() json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)
}

func (t tool) Call(_ context.Context, in json.RawMessage) (string, error) {
	*t.got = append(*t.got, string(in))
	return "contents of " + string(in), nil
}

func hello() agent.Transcript {
	return agent.Transcript{System: "mend it", Messages: []agent.Message{{Role: agent.User, Text: "it is broken"}}}
}

func read(path string) agenttest.Call {
	input, _ := json.Marshal(map[string]string{"path": path})
	return agenttest.Call{Name: "read", Input: input}
}

func TestTurnArrivesWithWordsCallsAndCost(t *testing.T) {
	m, _ := dial(t, agenttest.Script{Turns: []agenttest.Turn{{
		Text:  "Let me look at the file <first> & then…",
		Calls: []agenttest.Call{{ID: "a", Name: "read", Input: json.RawMessage(`{"path":"a.txt"}`)}, {ID: "b", Name: "read", Input: json.RawMessage(`{"path":"b.txt"}`)}},
		Usage: &agenttest.Usage{Input: 1000, Output: 500, CacheWrites: 2000, CacheReads: 10000},
	}}})
	var words strings.Builder
	turn, err := m.Reply(t.Context(), hello(), []agent.Tool{tool{}}, func(s string) { words.WriteString(s) })
	if err != nil {
		t.Fatal(err)
	}
	if words.String() != "Let me look at the file <first> & then…" || turn.Message.Text != words.String() {
		t.Errorf("told %q, said %q", words.String(), turn.Message.Text)
	}
	want := []agent.Call{{ID: "a", Name: "read", Input: json.RawMessage(`{"path":"a.txt"}`)}, {ID: "b", Name: "read", Input: json.RawMessage(`{"path":"b.txt"}`)}}
	if diff := cmp.Diff(want, turn.Message.Calls); diff != "" {
		t.Error(diff)
	}
	// Sonnet 5.5 costs 2 and 10 dollars a million; writing to the cache a
	// quarter more, reading from it a twentieth.
	spent := engine.Spent{
		InputTokens: 1000, OutputTokens: 500, CacheWrites: 2000, CacheReads: 10000,
		Dollars: (1000*2 + 2000*2.5 + 10000*0.1 + 500*10) / 1e6,
	}
	if diff := cmp.Diff(spent, turn.Spent, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-12 && b-a < 1e-12 })); diff != "" {
		t.Error(diff)
	}
	if turn.Stop != agent.ToolUse {
		t.Errorf("stop is %q", turn.Stop)
	}
}

func TestTurnGoesBackAsItCame(t *testing.T) {
	m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{
		{Thinking: "the log says <ENOENT> & more", Text: "Looking.", Calls: []agenttest.Call{{ID: "a", Name: "read", Input: json.RawMessage(`{"path":"a & <b>"}`)}}},
		{Last: "contents of", Text: "Done."},
	}})
	var got []string
	end, err := agent.Agent{Model: m, Tools: []agent.Tool{tool{&got}}}.Run(t.Context(), hello())
	if err != nil || end.Text != "Done." {
		t.Fatal(end, err)
	}
	var sent struct {
		Messages []struct {
			Role    string
			Content []map[string]any
		}
	}
	if err := json.Unmarshal(server.Requests()[1].Body, &sent); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"type": "thinking", "thinking": "the log says <ENOENT> & more", "signature": "c2lnbmVk"},
		{"type": "text", "text": "Looking."},
		{"type": "tool_use", "id": "a", "name": "read", "input": map[string]any{"path": "a & <b>"}},
	}
	if diff := cmp.Diff(want, sent.Messages[1].Content); diff != "" {
		t.Error(diff)
	}
	if sent.Messages[1].Role != "assistant" || sent.Messages[2].Content[0]["tool_use_id"] != "a" {
		t.Errorf("messages are %+v", sent.Messages)
	}
}

func TestPromptCacheIsMarkedAtTheEndOfToolsSystemAndMessages(t *testing.T) {
	script := agenttest.Script{Turns: []agenttest.Turn{{Text: "hi", Repeat: true}}}
	type marked struct {
		CacheControl *struct{ Type string } `json:"cache_control"`
	}
	var sent struct {
		Tools, System []marked
		Messages      []struct{ Content []marked }
	}
	m, server := dial(t, script)
	if _, err := m.Reply(t.Context(), hello(), []agent.Tool{tool{}, tool{}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(server.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Tools[0].CacheControl != nil || sent.Tools[1].CacheControl == nil || sent.System[0].CacheControl == nil || sent.Messages[0].Content[0].CacheControl == nil {
		t.Errorf("marks are %+v", sent)
	}
	m, server = dial(t, script, func(c *claude.Config) { c.NoCache = true })
	if _, err := m.Reply(t.Context(), hello(), []agent.Tool{tool{}}, nil); err != nil {
		t.Fatal(err)
	}
	if body := string(server.Requests()[0].Body); strings.Contains(body, "cache_control") {
		t.Errorf("sent %s", body)
	}
}

func TestPrefixOfARequestStaysByteForByteTheSame(t *testing.T) {
	m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{{Calls: []agenttest.Call{read("a")}}, {Text: "done"}}}, func(c *claude.Config) { c.NoCache = true })
	var got []string
	if _, err := (agent.Agent{Model: m, Tools: []agent.Tool{tool{&got}}}).Run(t.Context(), hello()); err != nil {
		t.Fatal(err)
	}
	type parts struct{ Tools, System json.RawMessage }
	var a, b parts
	json.Unmarshal(server.Requests()[0].Body, &a)
	json.Unmarshal(server.Requests()[1].Body, &b)
	if diff := cmp.Diff(a, b); diff != "" || len(a.Tools) == 0 {
		t.Error(diff)
	}
}

func TestRequestsNeverHoldWhatTheAPIRefuses(t *testing.T) {
	m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{{Text: "ok"}}})
	tr := agent.Transcript{Messages: []agent.Message{
		{Role: agent.User, Text: "binary \xff\xfe log"},
		{Role: agent.Assistant, Calls: []agent.Call{call("a"), call("b")}},
		{Role: agent.User, Results: []agent.Result{{ID: "b", Text: ""}, {ID: "stranger", Text: "x"}}},
		{Role: agent.Assistant, Text: "  "},
		{Role: agent.Assistant, Calls: []agent.Call{call("c")}},
	}}
	if _, err := m.Reply(t.Context(), tr, nil, nil); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Messages []struct {
			Role    string
			Content []struct {
				Type, Text  string
				ToolUseID   string `json:"tool_use_id"`
				Content     []struct{ Text string }
				IsError     bool            `json:"is_error"`
				CacheMarked json.RawMessage `json:"cache_control"`
			}
		}
	}
	if err := json.Unmarshal(server.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	if got := sent.Messages[0].Content[0].Text; got != "binary \uFFFD log" {
		t.Errorf("text is %q", got)
	}
	results := sent.Messages[2].Content
	if len(results) != 2 || results[0].ToolUseID != "a" || !results[0].IsError || results[1].Content[0].Text != "(no output)" {
		t.Errorf("results are %+v", results)
	}
	if last := sent.Messages[len(sent.Messages)-1]; last.Role != "user" || last.Content[0].ToolUseID != "c" {
		t.Errorf("last message is %+v", last)
	}
}

func call(id string) agent.Call {
	return agent.Call{ID: id, Name: "read", Input: json.RawMessage(`{}`)}
}

func TestBrokenToolInputIsNeverTakenForAnEmptyOne(t *testing.T) {
	m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{
		{Calls: []agenttest.Call{{Name: "read", Raw: `{"path": "a`}}},
		{Last: "not valid JSON", Text: "sorry"},
	}})
	var got []string
	end, err := agent.Agent{Model: m, Tools: []agent.Tool{tool{&got}}}.Run(t.Context(), hello())
	if err != nil || len(got) != 0 || end.Text != "sorry" || server.Left() != 0 {
		t.Errorf("%+v, %v; calls made %v", end, err, got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		config claude.Config
		code   engine.Code
	}{
		"no key":         {claude.Config{}, engine.Unauthorized},
		"blank key":      {claude.Config{Key: " \n"}, engine.Unauthorized},
		"key of lines":   {claude.Config{Key: "a\nb"}, engine.Invalid},
		"no host":        {claude.Config{Key: key, BaseURL: "http://"}, engine.Invalid},
		"another scheme": {claude.Config{Key: key, BaseURL: "file:///etc/passwd"}, engine.Invalid},
		"no address":     {claude.Config{Key: key, BaseURL: "::"}, engine.Invalid},
	} {
		if _, err := claude.New(c.config); !errors.Is(err, c.code) || engine.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if m := newModel(t, claude.Config{Key: key}); m.Name() != "claude-sonnet-5-5" {
		t.Errorf("the default model is %s", m.Name())
	}
}

func TestPricesCanBeOverridden(t *testing.T) {
	turns := []agenttest.Turn{{Text: "hi", Usage: &agenttest.Usage{Input: 1e6, Output: 1e6}, Repeat: true}}
	for _, c := range []struct {
		model string
		own   map[string]claude.Price
		want  float64
	}{
		{"claude-sonnet-4-6", nil, 18},
		{"claude-sonnet-5-5", nil, 12},
		{"claude-opus-9", nil, 30},
		{"claude-novel-1", nil, 60},
		{"qwen3-coder", nil, 0},
		{"qwen3-coder", map[string]claude.Price{"qwen": {Input: 1, Output: 2}}, 3},
		{"claude-sonnet-5-5", map[string]claude.Price{"claude": {Input: 1, Output: 1}}, 2},
	} {
		m, _ := dial(t, agenttest.Script{Turns: turns}, func(cfg *claude.Config) { cfg.Model, cfg.Prices = c.model, c.own })
		turn, err := m.Reply(t.Context(), hello(), nil, nil)
		if err != nil || turn.Spent.Dollars != c.want {
			t.Errorf("%s costs %v (%v), want %v", c.model, turn.Spent.Dollars, err, c.want)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	m, _ := dial(b, agenttest.Script{Turns: []agenttest.Turn{
		{Last: "begin", Text: "hm", Repeat: true, Calls: []agenttest.Call{read("a")}},
		{Text: "done", Repeat: true},
	}})
	start := agent.Transcript{Messages: []agent.Message{{Role: agent.User, Text: "begin"}}}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			for range 2 {
				if _, err := m.Reply(b.Context(), start, []agent.Tool{tool{}}, nil); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("loop", func(b *testing.B) {
		var got []string
		record := func(_ context.Context, s engine.Step) (engine.Step, error) { return s, nil }
		for b.Loop() {
			a := agent.Agent{Model: m, Tools: []agent.Tool{tool{&got}}, Record: record, Budget: agent.Budget{Retry: time.Second}}
			if _, err := a.Run(b.Context(), start); err != nil {
				b.Fatal(err)
			}
		}
	})
}
