package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"sbx/engine"
	"sbx/engine/enginetest"
)

// ask is the answer to a GET of a viewer.
func ask(t *testing.T, s *Server, path string, into any) int {
	t.Helper()
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, request(get(path, "", nil, nil), "viewer-token"))
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), into); err != nil {
			t.Errorf("%s: %v in %s", path, err, rec.Body)
		}
	}
	return rec.Code
}

// spawned is a command in a sandbox of a fake.
func spawned(t *testing.T, f *enginetest.Fake, shell string) engine.Process {
	t.Helper()
	sb, err := engine.Create(t.Context(), f, engine.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Do(t.Context(), engine.NewAction(engine.Spawn{Sandbox: sb.ID, Command: engine.Command{Shell: shell}}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.ProcessByID(t.Context(), r.Process)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWaitingForAProcessTellsHowItEnded(t *testing.T) {
	s, f := fakeServer(t)
	p := spawned(t, f, "echo out; echo err >&2; exit 4")
	for range 2 { // when it ends, and later
		var res map[string]any
		if code := ask(t, s, "/v1/processes/"+string(p.ID)+"/wait", &res); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
		for name, want := range map[string]any{"process": string(p.ID), "success": false, "exitCode": 4.0, "stdout": "out\n", "stderr": "err\n"} {
			if res[name] != want {
				t.Errorf("%s is %v, want %v", name, res[name], want)
			}
		}
		if _, ok := res["executionTimeMs"]; !ok {
			t.Error("how long it took isn't told")
		}
	}
}

func TestWaitingForAProcessEndsInTime(t *testing.T) {
	s, f := fakeServer(t)
	p := spawned(t, f, "exec sleep 60")
	var res engine.Result
	if code := ask(t, s, "/v1/processes/"+string(p.ID)+"/wait?within=50ms", &res); code != http.StatusServiceUnavailable {
		t.Errorf("what goes on is answered with %d", code)
	}
	if code := ask(t, s, "/v1/processes/"+string(p.ID)+"/wait?within=never", &res); code != http.StatusBadRequest {
		t.Errorf("nonsense is answered with %d", code)
	}
	if code := ask(t, s, "/v1/processes/ps-aaaaaaaaaa/wait", &res); code != http.StatusNotFound {
		t.Errorf("an unknown process is answered with %d", code)
	}
}

func TestProcessesAreListedBySandboxAndByPID(t *testing.T) {
	s, f := fakeServer(t)
	p, other := spawned(t, f, "exec sleep 60"), spawned(t, f, "exec sleep 60")
	for query, want := range map[string]int{
		"": 4, "?sandbox=" + string(p.Sandbox): 2, fmt.Sprintf("?pid=%d", p.PID): 1, "?pid=1": 0,
		fmt.Sprintf("?pid=%d&sandbox=%s", p.PID, other.Sandbox): 0,
	} {
		var list []engine.Process
		if code := ask(t, s, "/v1/processes"+query, &list); code != http.StatusOK || len(list) != want {
			t.Errorf("%q lists %d processes with %d, want %d", query, len(list), code, want)
		}
	}
	var list []engine.Process
	if code := ask(t, s, "/v1/processes?sandbox=sb-aaaaaaaaaa", &list); code != http.StatusNotFound {
		t.Errorf("an unknown sandbox is answered with %d", code)
	}
}
