package local

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/notify"
	"sbx/store"
)

// receiver is a webhook that is down for the first tries.
type receiver struct {
	mu   sync.Mutex
	down int
	got  map[string]int // by id
	body string
	bad  string // a signature that is wrong
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down--; r.down >= 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if s := req.Header.Get(notify.SignatureHeader); s != notify.Sign("shared", req.Header.Get(notify.TimeHeader), b) {
		r.bad = s
	}
	r.got[req.Header.Get(notify.IDHeader)]++
	r.body = string(b)
}

// give makes a sandbox that the healer gives up.
func giveUp(t *testing.T, e *Engine, name, reason string) engine.SandboxID {
	t.Helper()
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	err := e.store.Update(t.Context(), func(tx *store.Tx) error {
		sb := engine.Sandbox{
			ID: id, Name: name, Wanted: engine.Down, State: engine.Cold, Health: engine.Healing, Created: tx.Now, HealthChanged: tx.Now,
		}
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		_, err := tx.FireHealth(id, engine.GaveUp, reason)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func waitNotices(t *testing.T, e *Engine, want int) []engine.Notice {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		list, err := e.Notices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for _, n := range list {
			if n.State == engine.NoticeSent {
				sent++
			}
		}
		if sent >= want {
			return list
		}
		if time.Now().After(deadline) {
			t.Fatalf("notices are %+v, want %d sent", list, want)
		}
	}
	return nil
}

func TestATransitionIsToldOnceThoughTheReceiverIsDownAndTheEngineRestarts(t *testing.T) {
	r := &receiver{down: 2, got: map[string]int{}}
	hook := httptest.NewServer(r)
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	with := func() Config {
		cfg := config(t, dir, "")
		cfg.Redact = func(s string) string { return strings.ReplaceAll(s, "canary", "***") }
		cfg.Notify = NotifyConfig{Sender: notify.Sender{Webhook: hook.URL, Secret: "shared"}, Scale: 0.01}
		return cfg
	}
	e, err := Open(context.Background(), with())
	if err != nil {
		t.Fatal(err)
	}
	id := giveUp(t, e, "shop", "it sings \x1b[31mcanary\nand falls")
	first := waitNotices(t, e, 1)
	err = e.store.Update(t.Context(), func(tx *store.Tx) error { // the same transition, told by another event
		sb, err := tx.Sandbox(id)
		sb.Owner = "dana"
		if err != nil {
			return err
		}
		return tx.PutSandbox(&sb)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, with())
	giveUp(t, e, "other", "no luck")
	list := waitNotices(t, e, 2)
	if len(list) != 2 || list[0].ID != first[0].ID || list[0].Tries != 3 || list[0].Kind != engine.NoticeQuarantine {
		t.Errorf("the notices are %+v", list)
	}
	if strings.ContainsAny(list[0].Text, "\x1b\n") || strings.Contains(list[0].Text, "canary") {
		t.Errorf("the text is %q", list[0].Text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, n := range r.got {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if len(r.got) != 2 || r.bad != "" || !strings.Contains(r.body, `"kind"`) {
		t.Errorf("it got %v, wrong signature %q, last %s", r.got, r.bad, r.body)
	}
}

func TestATestNoticeSaysWhetherItArrived(t *testing.T) {
	cfg := config(t, t.TempDir(), "")
	cfg.Notify = NotifyConfig{Sender: notify.Sender{Command: `read line; test "$SBX_NOTICE_KIND" = test && echo "$line" >&2; exit 3`}}
	e := open(t, cfg)
	if _, err := e.Do(t.Context(), engine.NewAction(engine.TestNotify{})); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		list, err := e.Notices(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if list[0].State == engine.NoticeGivenUp {
			if !strings.Contains(list[0].Trouble, "exit status 3") || !strings.Contains(list[0].Trouble, string(list[0].ID)) {
				t.Errorf("it says %q", list[0].Trouble)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is %+v", list[0])
		}
	}
}
