package claude_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"sbx/engine/agent/agenttest"
	"sbx/engine/agent/claude"
)

func TestBaseURLMayHaveAPathAndTheKeyArrivesAsSaid(t *testing.T) {
	for _, c := range []struct {
		name, prefix, path string
		config             claude.Config
		apiKey, bearer     string
	}{
		{"key", "", "/v1/messages", claude.Config{Key: key}, key, ""},
		{"bearer", "/gw/anthropic", "/gw/anthropic/v1/messages", claude.Config{AuthToken: "vk_1"}, "", "Bearer vk_1"},
		{"slash at the end", "/gw/", "/gw/v1/messages", claude.Config{Key: key}, key, ""},
		{"version in the address", "/gw/v1", "/gw/v1/messages", claude.Config{Key: key}, key, ""},
		{"both", "", "/v1/messages", claude.Config{Key: key, AuthToken: "vk_1"}, key, "Bearer vk_1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, server := agenttest.Serve(t, agenttest.Script{Turns: []agenttest.Turn{{Text: "hi"}}})
			c.config.BaseURL = url + c.prefix
			if _, err := newModel(t, c.config).Reply(t.Context(), hello(), nil, nil); err != nil {
				t.Fatal(err)
			}
			r := server.Requests()[0]
			if r.Path != c.path || r.Header.Get("X-Api-Key") != c.apiKey || r.Header.Get("Authorization") != c.bearer {
				t.Errorf("%s with key %q and authorization %q", r.Path, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"))
			}
			if r.Header.Get("Anthropic-Version") == "" {
				t.Error("the request names no version of the API")
			}
		})
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	other, stranger := agenttest.Serve(t, agenttest.Script{Turns: []agenttest.Turn{{Text: "wrong server", Repeat: true}}})
	t.Setenv("ANTHROPIC_API_KEY", "sk-operators-own")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "operators-own")
	t.Setenv("ANTHROPIC_BASE_URL", other)
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: operators-own")
	m, server := dial(t, agenttest.Script{Turns: []agenttest.Turn{{Text: "hi"}}}, func(c *claude.Config) { c.Key, c.AuthToken = "", "vk_1" })
	if _, err := m.Reply(t.Context(), hello(), nil, nil); err != nil {
		t.Fatal(err)
	}
	h := server.Requests()[0].Header
	if len(stranger.Requests()) != 0 || h.Get("X-Api-Key") != "" || h.Get("Authorization") != "Bearer vk_1" || h.Get("X-Leak") != "" {
		t.Errorf("headers are %v", h)
	}
}

// TestProxyOfTheEnvironmentIsUsed asks in a process of its own, since net/http
// reads HTTP_PROXY once.
func TestProxyOfTheEnvironmentIsUsed(t *testing.T) {
	const host = "http://model.invalid"
	if os.Getenv("CLAUDE_TEST_ASKS") != "" {
		if _, err := newModel(t, claude.Config{BaseURL: host, Key: key}).Reply(t.Context(), hello(), nil, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	server := agenttest.NewServer(agenttest.Script{Turns: []agenttest.Turn{{Text: "hi"}}})
	proxy := httptest.NewServer(server)
	defer proxy.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxyOfTheEnvironmentIsUsed$")
	cmd.Env = append(os.Environ(), "CLAUDE_TEST_ASKS=1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=", "no_proxy=", "http_proxy=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("the proxy got %d requests", n)
	}
}
