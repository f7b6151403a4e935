package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
)

// tokens of tests: the role that each has.
var testTokens = map[string]engine.Role{"viewer-token": engine.Viewer, "operator-token": engine.Operator, "admin-token": engine.Admin}

func testAuth(_ context.Context, token string) (engine.Actor, engine.Role, error) {
	role, ok := testTokens[token]
	if !ok {
		return engine.Actor{}, "", engine.Errorf(engine.Unauthorized, "no such token")
	}
	return engine.Actor{Kind: engine.ActorClient, Name: string(role)}, role, nil
}

// locked is a server whose engine panics at the first thing that it is asked.
func locked() *Server { return &Server{Engine: nil, Authenticate: testAuth, Version: "test"} }

// request is one to a route, as a client would make it: with a body where
// there is one, as an upgrade where it is a WebSocket.
func request(rt route, token string) *http.Request {
	path := strings.ReplaceAll(rt.path, "{id}", "sb-aaaaaaaaaa")
	r := httptest.NewRequest(rt.method, path, nil)
	if rt.in != nil {
		r = httptest.NewRequest(rt.method, path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
	}
	if rt.media == mediaSocket {
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			r.Header.Set(k, v)
		}
	}
	r.Host = "127.0.0.1:7443"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func answerOf(h http.Handler, r *http.Request) (int, *engine.Error) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	var body struct {
		Error *engine.Error `json:"error"`
	}
	_ = json.Unmarshal(rec.Body.Bytes(), &body) // what isn't an error has none
	return rec.Code, body.Error
}

func TestEveryRouteRefusesWhoMayNot(t *testing.T) {
	tooWeak := map[engine.Role]string{engine.Viewer: "", engine.Operator: "viewer-token", engine.Admin: "operator-token"}
	for _, rt := range append(routes(), route{method: "GET", path: "/v1/no/such/route", least: engine.Viewer}, route{method: "PATCH", path: "/v1/snapshot", least: engine.Viewer}) {
		if rt.open {
			if rt.path != "/healthz" {
				t.Errorf("%s is open to all", rt.pattern())
			}
			continue
		}
		h := locked().Handler() // one each: no back-off between them
		for name, token := range map[string]string{"no": "", "a wrong": "wrong", "an endless": strings.Repeat("x", 5000), "a too weak": tooWeak[rt.least]} {
			if token == "" && name != "no" {
				continue // nothing is weaker than a viewer
			}
			want := http.StatusUnauthorized
			if name == "a too weak" {
				want = http.StatusForbidden
			}
			status, e := answerOf(h, request(rt, token))
			if status != want || e == nil || Status(e.Code) != want || e.Message == "" || e.Hint == "" {
				t.Errorf("%s with %s token: %d %+v, want %d with words", rt.pattern(), name, status, e, want)
			}
		}
	}
}

func TestATokenCountsInItsHeaderOnly(t *testing.T) {
	h := locked().Handler()
	for name, r := range map[string]*http.Request{
		"query":  httptest.NewRequest("GET", "/v1/hello?token=admin-token&access_token=admin-token", nil),
		"cookie": httptest.NewRequest("GET", "/v1/hello", nil),
		"basic":  httptest.NewRequest("GET", "/v1/hello", nil),
		"two":    httptest.NewRequest("GET", "/v1/hello", nil),
	} {
		r.Host = "localhost"
		switch name {
		case "cookie":
			r.AddCookie(&http.Cookie{Name: "token", Value: "admin-token"})
		case "basic":
			r.SetBasicAuth("admin", "admin-token")
		case "two":
			r.Header["Authorization"] = []string{"Bearer wrong", "Bearer admin-token"}
		}
		if status, _ := answerOf(h, r); status != http.StatusUnauthorized {
			t.Errorf("a token as %s: %d, want 401", name, status)
		}
	}
}

func TestEveryRouteRefusesOtherHostsOriginsAndForms(t *testing.T) {
	bad := map[string]func(r *http.Request){
		"a foreign host":           func(r *http.Request) { r.Host = "evil.test" },
		"a host that looks local":  func(r *http.Request) { r.Host = "127.0.0.1.evil.test:7443" },
		"localhost as a label":     func(r *http.Request) { r.Host = "localhost.evil.test" },
		"a dotted localhost":       func(r *http.Request) { r.Host = "localhost." },
		"an unlisted address":      func(r *http.Request) { r.Host = "192.168.1.10:7443" },
		"no host":                  func(r *http.Request) { r.Host = "" },
		"a host with a user":       func(r *http.Request) { r.Host = "evil.test@localhost" },
		"a host with a bad port":   func(r *http.Request) { r.Host = "localhost:evil" },
		"a foreign origin":         func(r *http.Request) { r.Header.Set("Origin", "http://evil.test") },
		"the null origin":          func(r *http.Request) { r.Header.Set("Origin", "null") },
		"an empty origin":          func(r *http.Request) { r.Header.Set("Origin", "") },
		"an origin that looks so":  func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1.evil.test") },
		"another local port":       func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") },
		"another scheme":           func(r *http.Request) { r.Header.Set("Origin", "https://127.0.0.1:7443") },
		"an origin with a path":    func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:7443/x") },
		"two origins":              func(r *http.Request) { r.Header["Origin"] = []string{"http://127.0.0.1:7443", "http://evil.test"} },
		"an extension's origin":    func(r *http.Request) { r.Header.Set("Origin", "chrome-extension://abcdef") },
		"a form":                   withBody("application/x-www-form-urlencoded"),
		"plain text":               withBody("text/plain"),
		"a file upload":            withBody("multipart/form-data; boundary=x"),
		"a body of no type":        withBody(""),
		"JSON in another encoding": withBody("application/json; charset=utf-16"),
	}
	h := locked().Handler()
	for _, rt := range append(routes(), route{method: "GET", path: "/v1/no/such/route"}) {
		for name, spoil := range bad {
			r := request(rt, "admin-token")
			spoil(r)
			if status, e := answerOf(h, r); status != http.StatusForbidden || e == nil {
				t.Errorf("%s with %s: %d, want 403", rt.pattern(), name, status)
			}
		}
	}
}

func withBody(contentType string) func(*http.Request) {
	return func(r *http.Request) {
		with := httptest.NewRequest(r.Method, r.URL.String(), strings.NewReader("a=b"))
		r.Body, r.ContentLength = with.Body, with.ContentLength
		r.Header.Del("Content-Type")
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
	}
}

func TestOwnNamesAndOriginAreAnswered(t *testing.T) {
	s := locked()
	s.Hosts = []string{"sbx.example.com", "other.example.com:8443"}
	h := s.Handler()
	for host, want := range map[string]int{
		"localhost": 200, "localhost:1": 200, "127.0.0.1:7443": 200, "[::1]:7443": 200, "[::1]": 200, "LocalHost:7443": 200,
		"sbx.example.com": 200, "sbx.example.com:99": 200, "SBX.example.com": 200,
		"other.example.com:8443": 200, "other.example.com:1": 403, "other.example.com": 403, "x.sbx.example.com": 403,
	} {
		r := httptest.NewRequest("GET", "/v1/hello", nil)
		r.Host = host
		r.Header.Set("Authorization", "Bearer viewer-token")
		r.Header.Set("Origin", "http://"+host)
		if status, _ := answerOf(h, r); status != want {
			t.Errorf("host %s: %d, want %d", host, status, want)
		}
	}
}

func TestUncleanPathsReachNothing(t *testing.T) {
	h := locked().Handler()
	for _, path := range []string{"//v1/hello", "/v1/../v1/snapshot", "/v1//snapshot", "/healthz/../v1/snapshot", "/v1/./hello"} {
		r := httptest.NewRequest("GET", "http://localhost"+path, nil)
		r.URL.Scheme, r.URL.Host = "", ""
		if status, _ := answerOf(h, r); status != http.StatusBadRequest {
			t.Errorf("%s: %d, want 400", path, status)
		}
	}
}

func TestWrongTokensHaveToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := locked()
		s.Authenticate = func(ctx context.Context, token string) (engine.Actor, engine.Role, error) {
			asked++
			return testAuth(ctx, token)
		}
		h := s.Handler()
		try := func(token, from string) (int, *engine.Error) {
			r := request(get("/v1/hello", "", nil, nil), token)
			r.RemoteAddr = from
			return answerOf(h, r)
		}
		const bad, other = "192.0.2.1:5000", "192.0.2.2:5000"
		if status, _ := try("viewer-token", bad); status != 200 {
			t.Fatalf("a good token: %d", status)
		}
		for range 3_000 {
			if status, _ := try("guess", bad); status != http.StatusUnauthorized {
				t.Fatalf("a wrong token: %d", status)
			}
		}
		if asked > 10 {
			t.Errorf("of 3,000 wrong tokens at once %d were looked at, want a handful", asked)
		}
		if _, e := try("guess", bad); e.RetryAfter <= 0 {
			t.Error("it isn't said when to try again")
		}
		if status, _ := try("viewer-token", bad); status != 200 {
			t.Errorf("a token that was good before: %d; whoever guesses locks the others out", status)
		}
		if status, _ := try("operator-token", other); status != 200 {
			t.Errorf("from another address: %d", status)
		}
		time.Sleep(longestWait)
		if status, _ := try("operator-token", bad); status != 200 {
			t.Errorf("after the longest wait: %d", status)
		}
	})
}

func TestTheBrakeIsBounded(t *testing.T) {
	var b brake
	for i := range 3 * maxTracked {
		var hash tokenHash
		hash[0], hash[1] = byte(i), byte(i>>8)
		b.wrong(string(hash[:2]), hash)
		b.right(hash)
	}
	if len(b.addresses) > maxTracked || len(b.good) > maxTracked {
		t.Errorf("%d addresses and %d tokens are kept, want at most %d", len(b.addresses), len(b.good), maxTracked)
	}
}

func TestNoTokenIsLogged(t *testing.T) {
	var out bytes.Buffer
	s := locked()
	s.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := s.Handler()
	for _, r := range []*http.Request{
		request(get("/v1/hello", "", nil, nil), "admin-token"),
		request(get("/v1/hello", "", nil, nil), "secret-guess"),
		request(get("/v1/audit?token=secret-guess", "", nil, nil), "viewer-token"),
	} {
		answerOf(h, r)
	}
	for _, secret := range []string{"admin-token", "secret-guess", "viewer-token"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the log has %q:\n%s", secret, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines were logged, want 3", n)
	}
}
