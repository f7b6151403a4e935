package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"sbx/engine"
)

// Report is what a healer that runs inside of a sandbox says of it.
type Report struct {
	Status string `json:"status"` // healing, ready or broken
	Error  string `json:"error,omitempty"`
}

// Bounds of reports.
const (
	maxReport      = 16 << 10
	maxError       = 4 << 10
	reportsAMinute = 30
)

// rate counts what comes within a minute.
type rate struct {
	since time.Time
	n     int
}

// report is POST /api/sandbox/heal.
func (g *Gateway) report(w http.ResponseWriter, r *http.Request) {
	status, err := g.takeReport(r)
	body := map[string]any{"ok": err == nil}
	if err != nil {
		body["error"] = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that left needs no answer
}

func (g *Gateway) takeReport(r *http.Request) (int, error) {
	key, err := g.authorize(r, "")
	if err != nil {
		if engine.AsCode(err) == engine.Unauthorized {
			return http.StatusUnauthorized, err
		}
		return http.StatusInternalServerError, err
	}
	bad := func(why string) (int, error) {
		return http.StatusBadRequest, engine.Errorf(engine.Invalid, "%s: POST {\"status\": \"healing\", \"ready\" or \"broken\", \"error\"?}", why)
	}
	if r.Method != http.MethodPost {
		return bad("not a POST")
	}
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxReport))
	dec.DisallowUnknownFields()
	var rep Report
	if err := dec.Decode(&rep); err != nil {
		return bad("the body can't be read")
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad("there is more than one value")
	}
	if rep.Status != "healing" && rep.Status != "ready" && rep.Status != "broken" {
		return bad("there is no such status")
	}
	if len(rep.Error) > maxError {
		return bad("the error is too long")
	}
	if !g.mayReport(key.Sandbox) {
		return http.StatusTooManyRequests, engine.Errorf(engine.Exhausted, "more than %d reports in a minute", reportsAMinute)
	}
	if err := g.Report(r.Context(), key, rep); err != nil {
		return http.StatusInternalServerError, err
	}
	return http.StatusOK, nil
}

func (g *Gateway) mayReport(id engine.SandboxID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, l := time.Now(), g.reports[id]
	if l == nil || now.Sub(l.since) > time.Minute {
		l = &rate{since: now}
		g.reports[id] = l
	}
	l.n++
	return l.n <= reportsAMinute
}
