package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/enginetest"
)

func fakeServer(t *testing.T) (*Server, *enginetest.Fake) {
	t.Helper()
	f := enginetest.NewFake(t.TempDir())
	t.Cleanup(func() { _ = f.Close() })
	return &Server{Engine: f, Authenticate: testAuth, Version: "test"}, f
}

func TestEveryActionHasItsRoute(t *testing.T) {
	have := map[string]route{}
	for _, rt := range routes() {
		if _, twice := have[rt.pattern()]; twice {
			t.Errorf("%s stands twice in the table", rt.pattern())
		}
		have[rt.pattern()] = rt
	}
	for _, e := range engine.ActionTable {
		if rt, ok := have[e.Method+" "+e.Path]; !ok || rt.least != e.Least {
			t.Errorf("%s has the route %+v, want one for the role %s", e.Kind, rt.pattern(), e.Least)
		}
	}
}

// TestTheDescriptionIsTheMux holds /v1/openapi.json against what is served.
func TestTheDescriptionIsTheMux(t *testing.T) {
	s, _ := fakeServer(t)
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, request(get("/v1/openapi.json", "", nil, nil), "viewer-token"))
	var doc struct {
		Paths map[string]map[string]struct {
			Summary string
			Role    engine.Role `json:"x-role"`
			Body    struct {
				Content map[string]struct {
					Schema map[string]any
				}
			} `json:"requestBody"`
		}
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	want := map[string]engine.Role{}
	for _, rt := range routes() {
		mux.Handle(rt.pattern(), http.NotFoundHandler())
		want[rt.pattern()] = rt.least
	}
	got := map[string]engine.Role{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			r := httptest.NewRequest(strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "x"), nil)
			_, pattern := mux.Handler(r)
			got[pattern] = op.Role
			if op.Summary == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the routes (-) aren't those described (+):\n%s", diff)
	}
	for name, fields := range map[string][]string{"CreateSandbox": {"name", "origin", "spec", "labels"}, "Sample": {"cpu", "logLine", "probe"}, "Receipt": {"action", "position"}} {
		for _, f := range fields {
			if _, ok := doc.Components.Schemas[name].Properties[f]; !ok {
				t.Errorf("the schema %s lacks %s", name, f)
			}
		}
	}
}

// doAction sends body to the route of an action.
func doAction(h http.Handler, method, path, body string, header map[string]string) (*httptest.ResponseRecorder, engine.Receipt) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer operator-token")
	if body != "" {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	var receipt engine.Receipt
	_ = json.Unmarshal(rec.Body.Bytes(), &receipt) // an error has no receipt
	return rec, receipt
}

func TestAnActionIsByWhoseTokenItIs(t *testing.T) {
	s, f := fakeServer(t)
	h := s.Handler()
	rec, r := doAction(h, "POST", "/v1/sandboxes", `{"name":"one","by":{"kind":"engine","name":"root"},"origin":{"kind":"template"}}`, nil)
	if rec.Code != 200 || r.Action == "" || r.Sandbox == "" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	for e, err := range f.Audit(t.Context(), engine.AuditQuery{}) {
		want := engine.Actor{Kind: engine.ActorClient, Name: "operator", From: "192.0.2.1"}
		if err != nil || e.By != want || e.Action != r.Action {
			t.Errorf("the entry is %+v, want it by %s under the id of the receipt", e, want)
		}
	}
}

func TestTheHeadersOfAnActionCount(t *testing.T) {
	s, f := fakeServer(t)
	h := s.Handler()
	create := func(header map[string]string) (*httptest.ResponseRecorder, engine.Receipt) {
		return doAction(h, "POST", "/v1/sandboxes", `{"name":"one"}`, header)
	}
	_, first := create(map[string]string{"Idempotency-Key": "mine-1"})
	rec, again := create(map[string]string{"Idempotency-Key": "mine-1"})
	if first.Action != "mine-1" || again != first {
		t.Errorf("the same id gave %+v and %s, want one receipt", first, rec.Body)
	}
	keep := "/v1/sandboxes/" + string(first.Sandbox) + "/keep"
	for seq, want := range map[string]int{"1": 409, "-1": 400, "x": 400, "": 200} {
		if rec, _ := doAction(h, "PUT", keep, `{"keep":true}`, map[string]string{"Sbx-If-Seq": seq}); rec.Code != want {
			t.Errorf("if seq %q: %d %s, want %d", seq, rec.Code, rec.Body, want)
		}
	}
	for _, bad := range []string{strings.Repeat("x", 129), "a b", "\xff"} {
		if rec, _ := create(map[string]string{"Idempotency-Key": bad}); rec.Code != 400 {
			t.Errorf("the id %q: %d, want 400", bad, rec.Code)
		}
	}
	snap, err := f.Snapshot(t.Context())
	if err != nil || len(snap.Sandboxes) != 1 || !snap.Sandboxes[first.Sandbox].Keep {
		t.Errorf("there are %d sandboxes, kept %t, %v; want the one, kept", len(snap.Sandboxes), snap.Sandboxes[first.Sandbox].Keep, err)
	}
}

func TestThePathNamesTheSubject(t *testing.T) {
	s, f := fakeServer(t)
	h := s.Handler()
	_, one := doAction(h, "POST", "/v1/sandboxes", `{"name":"one"}`, nil)
	_, two := doAction(h, "POST", "/v1/sandboxes", `{"name":"two"}`, nil)
	doAction(h, "PUT", "/v1/sandboxes/"+string(one.Sandbox)+"/keep", `{"keep":true,"sandbox":"`+string(two.Sandbox)+`"}`, nil)
	snap, err := f.Snapshot(t.Context())
	if err != nil || !snap.Sandboxes[one.Sandbox].Keep || snap.Sandboxes[two.Sandbox].Keep {
		t.Errorf("a body changed another sandbox than the one in the path (%v)", err)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	s, _ := fakeServer(t)
	h := s.Handler()
	_, r := doAction(h, "POST", "/v1/sandboxes", `{"name":"one"}`, nil)
	big := func(n int) string { return `{"name":"` + strings.Repeat("a", n) + `"}` }
	for name, c := range map[string]struct {
		method, path, body string
		want               string
	}{
		"over a MiB":         {"POST", "/v1/sandboxes", big(maxBody), "larger"},
		"under a MiB":        {"POST", "/v1/sandboxes", big(maxBody - 100), "too long"},
		"a file over 12 MiB": {"PUT", "/v1/sandboxes/" + string(r.Sandbox) + "/file", big(maxFileBody), "larger"},
		"a file over a MiB":  {"PUT", "/v1/sandboxes/" + string(r.Sandbox) + "/file", big(maxBody), "too long"},
		"no JSON":            {"POST", "/v1/sandboxes", "{", "unexpected end"},
		"deep JSON":          {"POST", "/v1/sandboxes", `{"labels":` + strings.Repeat("[", 100_000), "depth"},
	} {
		rec, _ := doAction(h, c.method, c.path, c.body, nil)
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), c.want) {
			t.Errorf("%s: %d %.200s, want 400 and %q", name, rec.Code, rec.Body, c.want)
		}
	}
}

func TestErrorsSayWhatTheyAre(t *testing.T) {
	s, _ := fakeServer(t)
	h := s.Handler()
	rec, _ := doAction(h, "POST", "/v1/sandboxes/sb-nobody/start", "", nil)
	var body struct{ Error engine.Error }
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	if rec.Code != 404 || body.Error.Code != engine.NotFound || body.Error.Hint == "" || rec.Header().Get(requestIDHeader) == "" {
		t.Errorf("%d %+v, want a 404 with code, hint and the request's id", rec.Code, body.Error)
	}
	full := &Server{Engine: refusing{err: engine.Errorf(engine.Exhausted, "full")}, Authenticate: testAuth}
	rec, _ = doAction(full.Handler(), "POST", "/v1/sandboxes", "{}", nil)
	if rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
		t.Errorf("a full pool: %d with Retry-After %q, want 503 and a time", rec.Code, rec.Header().Get("Retry-After"))
	}
}

// refusing is an engine that does nothing.
type refusing struct {
	engine.Engine
	err error
}

func (r refusing) Do(context.Context, engine.Action) (engine.Receipt, error) {
	return engine.Receipt{}, r.err
}

func TestStatusCountsTheFleet(t *testing.T) {
	s, _ := fakeServer(t)
	h := s.Handler()
	doAction(h, "POST", "/v1/sandboxes", `{"name":"one"}`, nil)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, request(get("/v1/status", "", nil, nil), "viewer-token"))
	var got StatusReport
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Pool.Total != 1 || got.Health[engine.Ready] != 1 || got.About.Version != "fake" || got.Position.Seq == 0 {
		t.Errorf("the status is %+v, want one that is ready", got)
	}
	if n, ok := got.Health[engine.Broken]; !ok || n != 0 {
		t.Errorf("healths are %v, want each counted", got.Health)
	}
}

func TestHealthzSaysOnlyOK(t *testing.T) {
	r := httptest.NewRequest("GET", "/healthz", nil)
	r.Host = "localhost"
	rec := httptest.NewRecorder()
	locked().Handler().ServeHTTP(rec, r)
	if rec.Code != 200 || !bytes.Equal(rec.Body.Bytes(), []byte(`{"ok":true}`)) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestBadParametersAreInvalid(t *testing.T) {
	s, _ := fakeServer(t)
	h := s.Handler()
	for _, path := range []string{
		"/v1/heals?after=-1", "/v1/heals?attempt=x", "/v1/heals?since=yesterday", "/v1/audit?limit=99999999999",
		"/v1/events?after=7", "/v1/events?after=x.y", "/v1/gauges?every=-1s", "/v1/logs?tail=x", "/v1/logs?stream=both", "/v1/logs?follow=2",
	} {
		if status, e := answerOf(h, request(get(path, "", nil, nil), "admin-token")); status != 400 || e.Message == "" {
			t.Errorf("%s: %d, want 400 and why", path, status)
		}
	}
}
