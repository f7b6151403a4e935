// Package gateway lets sandboxes reach model providers without a real key: a
// sandbox shows its virtual key, the gateway puts the provider's in its place,
// counts the tokens of what streams by, and refuses what is revoked or over
// budget. It takes a healer's own report from inside of a sandbox, too.
//
// The one rule: nothing passes that isn't named here. Methods, paths, headers
// and the upstream are lists in code or configuration, never the sandbox's
// choice; redirects are not followed; keys are looked up by their hash and
// never logged.
//
// A key is bound to its sandbox by its secret alone: whoever on this host holds
// it can spend that sandbox's budget, and nothing else. It is in the
// environment of the sandbox's own processes only.
package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"sbx/engine"
)

// Upstream is a provider. Its URL comes from configuration alone.
type Upstream struct {
	URL   string // "https://api.anthropic.com"; "": there is none
	Key   string // sent as the provider wants keys sent
	Token string // sent as a bearer instead, for providers behind other gateways
}

// Gateway is the handler. Its exported fields are set before [Gateway.Handler].
type Gateway struct {
	Anthropic, OpenAI Upstream
	// Find is the key with a hash. [engine.Unauthorized] if there is none that
	// is valid.
	Find func(ctx context.Context, hash []byte) (engine.Key, error)
	// Left is how many tokens the key's sandbox may still use, as far as it is
	// written down; [engine.Exhausted] if none, which is recorded as refused.
	Left func(ctx context.Context, k engine.Key) (int64, error)
	// Spend writes down what a request cost.
	Spend func(ctx context.Context, k engine.Key, model string, spent engine.Spent) error
	// Report takes a report of the healer inside of a sandbox.
	Report func(ctx context.Context, k engine.Key, r Report) error
	// Transport speaks to the providers; nil: one that honours HTTPS_PROXY.
	Transport http.RoundTripper
	Log       *slog.Logger // nil: none

	mu      sync.Mutex
	flights map[*flight]bool
	meters  map[engine.SandboxID]*meter
	reports map[engine.SandboxID]*rate
}

// The paths of the providers that are served, all of them POST.
var (
	anthropicPaths = map[string]bool{"/v1/messages": true, "/v1/messages/count_tokens": true}
	openaiPaths    = map[string]bool{"/v1/chat/completions": true, "/v1/responses": true, "/v1/embeddings": true}
)

// Prefix is where the gateway's paths begin; what follows is the provider's
// name and path.
const Prefix = "/api/gateway/"

// Handler serves the gateway and the status callback.
func (g *Gateway) Handler() http.Handler {
	if g.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone() // its proxy is the environment's
		t.DisableCompression = true                          // what is counted is what was sent
		g.Transport = t
	}
	if g.Log == nil {
		g.Log = slog.New(slog.DiscardHandler)
	}
	g.flights, g.meters, g.reports = map[*flight]bool{}, map[engine.SandboxID]*meter{}, map[engine.SandboxID]*rate{}
	anthropic := provider{name: "anthropic", up: g.Anthropic, paths: anthropicPaths, header: "X-Api-Key"}
	openai := provider{name: "openai", up: g.OpenAI, paths: openaiPaths}
	mux := http.NewServeMux()
	mux.HandleFunc(Prefix+"anthropic/", func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, anthropic) })
	mux.HandleFunc(Prefix+"openai/", func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, openai) })
	mux.HandleFunc("/api/sandbox/heal", g.report)
	return mux
}

// Cut ends the requests that are made with a key, or all of a sandbox's if key
// is "".
func (g *Gateway) Cut(id engine.SandboxID, key engine.KeyID, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.flights {
		if f.key.Sandbox == id && (key == "" || f.key.ID == key) {
			f.cut(engine.Errorf(engine.Unauthorized, "%s", why))
		}
	}
}

// Hash is what is kept of a key.
func Hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// authorize finds the key of a request: the one that its Authorization or, for
// a provider that has such, its key header holds. No other header counts, and
// two that differ are none.
func (g *Gateway) authorize(r *http.Request, header string) (engine.Key, error) {
	refused := engine.Errorf(engine.Unauthorized, "no valid key").
		WithHint("the sandbox's own is in its environment; others come from: sbx key issue")
	var secret string
	for _, v := range r.Header.Values("Authorization") {
		bearer, ok := strings.CutPrefix(v, "Bearer ")
		if !ok || secret != "" && secret != bearer {
			return engine.Key{}, refused
		}
		secret = bearer
	}
	if header != "" {
		for _, v := range r.Header.Values(header) {
			if secret != "" && secret != v {
				return engine.Key{}, refused
			}
			secret = v
		}
	}
	if secret == "" || len(secret) > 200 {
		return engine.Key{}, refused
	}
	hash := Hash(secret)
	k, err := g.Find(r.Context(), hash)
	if err != nil {
		g.Log.Warn("a key was refused", "hash", hex.EncodeToString(hash[:6]), "from", r.RemoteAddr)
		if engine.AsCode(err) == engine.Unauthorized {
			return k, refused
		}
	}
	return k, err
}
