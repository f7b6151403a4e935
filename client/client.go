// Package client is an engine.Engine that is elsewhere: in another process,
// over HTTP and WebSocket, or over an engine's unix socket.
//
// The one rule: whoever holds one can't tell that it isn't local. A stream
// whose connection was cut goes on where it was, inside its iterator; an
// action whose answer was lost is sent again under its own id, and is done
// once. Only gauges tell of a lost engine, because telling is what they are
// for.
package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

// Config says where an engine is. URL or Socket is needed.
type Config struct {
	// URL is like http://127.0.0.1:7443.
	URL string
	// Token is sent to URL, in a header.
	Token string
	// Socket is the path of an engine's unix socket, instead of URL.
	Socket string

	// What follows are seams; their zero values are right.

	// DialContext makes connections.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS is for URLs that begin with https.
	TLS *tls.Config
	// Backoff is how long to wait between tries that fail, the last for all
	// later ones; each is varied by a fifth. nil: 1 2 4 8 15 s.
	Backoff []time.Duration
	// Silence is how long a stream may say nothing, pings included, until it
	// counts as lost. 0: 40 s, over two of the server's pings.
	Silence time.Duration
	Log     *slog.Logger
}

var defaultBackoff = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second}

const (
	defaultSilence   = 40 * time.Second
	handshakeTimeout = 5 * time.Second
	headerTimeout    = 90 * time.Second // killing a process waits for its grace
	helloTimeout     = 10 * time.Second
)

// Client is an engine elsewhere. It implements [engine.Engine].
type Client struct {
	base    *url.URL
	where   string // for people: the URL, or the socket's path
	token   string
	backoff []time.Duration
	silence time.Duration
	log     *slog.Logger
	http    *http.Client
	sockets *websocket.Dialer
	// life ends when the client is closed, and every call and stream with it.
	life context.Context
	end  context.CancelCauseFunc
}

var _ engine.Engine = (*Client)(nil)

// Dial finds the engine and checks that both speak one protocol.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	c, err := open(cfg)
	if err != nil {
		return nil, err
	}
	hctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if err := c.hello(hctx); err != nil {
		_ = c.Close() // closes idle connections only
		if ctx.Err() == nil && hctx.Err() != nil {
			return nil, c.nobody(hctx.Err())
		}
		return nil, err
	}
	return c, nil
}

func open(cfg Config) (*Client, error) {
	base, err := baseURL(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{
		base: base, where: base.String(), token: cfg.Token,
		backoff: cfg.Backoff, silence: cfg.Silence, log: cfg.Log,
	}
	if cfg.Socket != "" {
		c.where, c.token = cfg.Socket, ""
	}
	if c.backoff == nil {
		c.backoff = defaultBackoff
	}
	if c.silence == 0 {
		c.silence = defaultSilence
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.connectBy(cfg)
	return c, nil
}

func (c *Client) connectBy(cfg Config) {
	dial := cfg.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Socket != "" {
		proxy = nil
		over := dial
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return over(ctx, "unix", cfg.Socket) }
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: dial, Proxy: proxy, TLSClientConfig: cfg.TLS,
			TLSHandshakeTimeout: handshakeTimeout, ResponseHeaderTimeout: headerTimeout,
			IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 4, DisableCompression: true,
		},
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.sockets = &websocket.Dialer{
		NetDialContext: dial, Proxy: proxy, TLSClientConfig: cfg.TLS,
		HandshakeTimeout: handshakeTimeout, ReadBufferSize: 16 << 10, WriteBufferSize: 4 << 10,
	}
}

func baseURL(cfg Config) (*url.URL, error) {
	if cfg.Socket != "" {
		return &url.URL{Scheme: "http", Host: "localhost"}, nil
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, engine.Errorf(engine.Invalid, "%q is not the URL of an engine", cfg.URL).WithHint("write it as http://127.0.0.1:7443")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, engine.Errorf(engine.Invalid, "an engine's URL has no user, query or fragment").
			WithHint("a token goes into SBX_TOKEN")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// Close hangs up: every call and stream of this client ends. The engine goes on.
func (c *Client) Close() error {
	c.end(engine.Errorf(engine.Unavailable, "the connection to the engine at %s was closed", c.where))
	c.http.CloseIdleConnections()
	return nil
}

// bind is ctx, ending with the client, too.
func (c *Client) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.life, func() { cancel(context.Cause(c.life)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// hello asks who is there.
func (c *Client) hello(ctx context.Context) error {
	var h struct {
		Version  string `json:"version"`
		Protocol struct {
			Min int `json:"min"`
			Max int `json:"max"`
		} `json:"protocol"`
	}
	if err := c.get(ctx, "/v1/hello", nil, &h); err != nil {
		if engine.AsCode(err) == engine.NotFound {
			return engine.Errorf(engine.Unavailable, "what answers at %s is no engine", c.where).WithHint("check the address")
		}
		return err
	}
	if engine.Protocol < h.Protocol.Min || engine.Protocol > h.Protocol.Max {
		return engine.Errorf(engine.Unavailable, "the engine at %s is sbx %s and speaks the protocols %d to %d; this sbx speaks %d",
			c.where, h.Version, h.Protocol.Min, h.Protocol.Max, engine.Protocol).WithHint("use the same version of sbx on both sides")
	}
	return nil
}
