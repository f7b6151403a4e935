// Package claude is an agent.Model over the Messages API, Anthropic's own or a
// compatible server's.
//
// The one rule: a turn is whole or it is an error. What a stream brought before
// it broke is shown, paid for and thrown away.
package claude

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"sbx/engine"
)

// The defaults of a [Config].
const (
	DefaultURL         = "https://api.anthropic.com"
	DefaultModel       = anthropic.ModelClaudeSonnet5_5
	DefaultMaxTokens   = 16384
	DefaultIdleTimeout = 60 * time.Second
	DefaultTurnTimeout = 10 * time.Minute
)

// Config says which model to ask and how. Zero fields have defaults, but Key or
// AuthToken must be set. Nothing is read from the environment here, so that a
// key meant for another server never goes to this one.
type Config struct {
	BaseURL   string // may have a path: requests go to BaseURL/v1/messages
	Key       string // sent as x-api-key
	AuthToken string // sent as a bearer token, as gateways want it
	Model     string
	MaxTokens int // of one answer
	// IdleTimeout ends a turn in which nothing arrives for so long; pings count
	// as something. TurnTimeout ends it in any case.
	IdleTimeout time.Duration
	TurnTimeout time.Duration
	// Prices are held before the built-in ones; the longest key that a model's
	// name begins with counts.
	Prices map[string]Price
	// NoCache leaves out the marks of prompt caching, for servers that refuse
	// them.
	NoCache bool
	// Transport carries the requests; nil: one that honours HTTPS_PROXY,
	// NO_PROXY and the system's certificates.
	Transport http.RoundTripper
}

// Model asks one model of one server. It implements agent.Model, and is safe
// for concurrent use.
type Model struct {
	config Config
	url    *url.URL
	price  Price
	client anthropic.Client
	http   *http.Client
}

// New makes a Model. It does no I/O; Invalid or Unauthorized says what is
// missing.
func New(c Config) (*Model, error) {
	c = c.withDefaults()
	base, err := parseURL(c.BaseURL)
	if err != nil {
		return nil, err
	}
	if c.Key == "" && c.AuthToken == "" {
		return nil, engine.Errorf(engine.Unauthorized, "there is no key for the model").WithHint(keyHint)
	}
	if strings.ContainsFunc(c.Key+c.AuthToken, notHeader) {
		return nil, engine.Errorf(engine.Invalid, "the model's key has characters that no key has").WithHint(keyHint)
	}
	m := &Model{config: c, url: base, price: priceOf(c.Model, c.Prices), http: client(c.Transport)}
	m.client = anthropic.NewClient(m.options()...)
	return m, nil
}

func (c Config) withDefaults() Config {
	if c.BaseURL == "" {
		c.BaseURL = DefaultURL
	}
	if c.Model = strings.TrimSpace(c.Model); c.Model == "" {
		c.Model = DefaultModel
	}
	if c.MaxTokens <= 0 {
		c.MaxTokens = DefaultMaxTokens
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	if c.TurnTimeout <= 0 {
		c.TurnTimeout = DefaultTurnTimeout
	}
	c.Key, c.AuthToken = strings.TrimSpace(c.Key), strings.TrimSpace(c.AuthToken)
	return c
}

// options are the SDK's. It retries nothing: the loop that asks owns retries,
// their budget and their words.
func (m *Model) options() []option.RequestOption {
	o := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithBaseURL(m.url.String()),
		option.WithHTTPClient(m.http),
		option.WithMaxRetries(0),
	}
	if m.config.Key != "" {
		o = append(o, option.WithAPIKey(m.config.Key))
	}
	if m.config.AuthToken != "" {
		o = append(o, option.WithAuthToken(m.config.AuthToken))
	}
	return o
}

// client follows no redirect: the key is for the server that was named.
func client(t http.RoundTripper) *http.Client {
	if t == nil {
		if d, ok := http.DefaultTransport.(*http.Transport); ok {
			t = d.Clone()
		}
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Name is the model's name.
func (m *Model) Name() string { return m.config.Model }

// Close drops connections that wait for the next request.
func (m *Model) Close() error {
	m.http.CloseIdleConnections()
	return nil
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, engine.Errorf(engine.Invalid, "%q is not the address of a model server", s).
			WithHint("set model.base_url as in %s", DefaultURL)
	}
	// Many write the version into the address; the path is ours to add.
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

func notHeader(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' }
