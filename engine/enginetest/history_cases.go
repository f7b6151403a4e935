package enginetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

var historyCases = []testCase{
	{"AHealthySandboxIsLeftAlone", healHealthy},
	{"TheHealersHistoryIsTheJournals", healHistory},
	{"APlanChangesNothing", planChangesNothing},
	{"TheAuditLogTellsWhatWasDone", auditTells},
	{"TheAuditLogResumes", auditResumes},
	{"ASandboxHasCheckpointsToList", listCheckpoints},
}

func healHealthy(t *testing.T, s *suite) {
	r := s.do(t, engine.StartHeal{Sandbox: s.home.ID})
	if r.Note == "" || r.Run != "" {
		t.Errorf("the receipt is %+v, want a note that there is nothing to do", r)
	}
}

// crashingSpec is of an app that is no sooner started than gone.
const crashingSpec = "[app]\ncommand = \"exit 1\"\nmax_restarts = 0\nrestart_delay = \"0s\"\n"

func healHistory(t *testing.T, s *suite) {
	sb := s.ready(t, engine.CreateSandbox{Name: "crashes"})
	from := s.snapshot(t).Position
	s.do(t, engine.ApplySpec{Sandbox: sb.ID, SpecTOML: crashingSpec})
	s.until(t, "have its crash judged", sb.ID, func(sb engine.Sandbox, snap *engine.Snapshot) bool {
		sig := snap.Signals[sb.ID]
		return sig.Kind == engine.ExitSignal && sig.Verdict != nil
	})
	var want []engine.Event
	to := s.snapshot(t).Position
	for _, ev := range s.between(t, from, to) {
		if k := ev.Kind(); ev.Body.Of() == sb.ID && (k == engine.KindSignalRaised || k == engine.KindSignalJudged) {
			want = append(want, ev)
		}
	}
	got := s.heals(t, engine.HealQuery{Sandbox: sb.ID, After: from.Seq}, to.Seq)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 2 {
		t.Errorf("the journal's %d facts of the crash aren't the history's (-journal +history):\n%s", len(want), diff)
	}
	resumed := s.heals(t, engine.HealQuery{Sandbox: sb.ID, After: want[0].Seq}, to.Seq)
	if diff := cmp.Diff(want[1:], resumed); diff != "" {
		t.Errorf("resumed after the first (-want +got):\n%s", diff)
	}
}

// planChangesNothing: the app exits at once, so no plan helps it but a restart.
func planChangesNothing(t *testing.T, s *suite) {
	r := s.do(t, engine.StartHeal{Sandbox: s.home.ID, Plan: true})
	if r.Note == "" || r.Run != "" {
		t.Errorf("of a healthy sandbox the receipt is %+v, want a note that there is nothing to plan", r)
	}
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.ApplyPlan{Sandbox: s.home.ID}))
	wantCode(t, "applying no plan", err, engine.NotFound)
	sb := s.ready(t, engine.CreateSandbox{Name: "planned"})
	s.do(t, engine.ApplySpec{Sandbox: sb.ID, SpecTOML: crashingSpec})
	s.until(t, "be broken", sb.ID, func(sb engine.Sandbox, _ *engine.Snapshot) bool { return sb.Health == engine.Broken })
	before := s.snapshot(t)
	r = s.do(t, engine.StartHeal{Sandbox: sb.ID, Plan: true})
	s.until(t, "have been planned for", sb.ID, func(_ engine.Sandbox, snap *engine.Snapshot) bool {
		run := snap.Runs[sb.ID]
		return run.ID == r.Run && run.Plan && !run.Open() && run.Outcome != engine.Healed
	})
	after := s.snapshot(t)
	if is, was := after.Sandboxes[sb.ID], before.Sandboxes[sb.ID]; is.Health != was.Health || is.Reason != was.Reason || is.Run != was.Run {
		t.Errorf("after the plan it is %+v, was %+v", is, was)
	}
	if is, was := after.App(sb.ID).Starts, before.App(sb.ID).Starts; is != was {
		t.Errorf("its app was started %d times, before the plan %d", is, was)
	}
}

// heals are a sandbox's signals in the history, up to to.
func (s *suite) heals(t *testing.T, q engine.HealQuery, to engine.Seq) []engine.Event {
	t.Helper()
	var list []engine.Event
	last := q.After
	for rec, err := range s.Engine.Heals(s.ctx(t), q) {
		if err != nil {
			t.Fatalf("heals: %v", err)
		}
		if rec.Seq <= last || rec.Body.Of() != q.Sandbox {
			t.Errorf("record %d of %s came after %d", rec.Seq, rec.Body.Of(), last)
		}
		last = rec.Seq
		if k := rec.Kind(); rec.Seq <= to && (k == engine.KindSignalRaised || k == engine.KindSignalJudged) {
			list = append(list, rec)
		}
	}
	return list
}

func (s *suite) entries(t *testing.T, q engine.AuditQuery) []engine.AuditEntry {
	t.Helper()
	var list []engine.AuditEntry
	for e, err := range s.Engine.Audit(s.ctx(t), q) {
		if err != nil {
			t.Fatalf("audit: %v", err)
		}
		list = append(list, e)
	}
	return list
}

func auditTells(t *testing.T, s *suite) {
	r := s.do(t, engine.KeepSandbox{Sandbox: s.home.ID, Keep: true})
	for _, e := range s.entries(t, engine.AuditQuery{Subject: string(s.home.ID)}) {
		if e.Action != r.Action {
			continue
		}
		if e.Kind != "sandbox.keep" || e.Result != "ok" || e.By.Kind == "" || e.At.IsZero() || e.Words == "" {
			t.Errorf("the entry is %+v, want who, when, what and how it ended", e)
		}
		return
	}
	t.Errorf("the audit log of %s has nothing of the action %s", s.home.ID, r.Action)
}

func auditResumes(t *testing.T, s *suite) {
	whole := s.entries(t, engine.AuditQuery{})
	if len(whole) < 3 {
		t.Fatalf("the audit log has %d entries, want those of all that was done", len(whole))
	}
	middle := len(whole) / 2
	rest := s.entries(t, engine.AuditQuery{After: whole[middle].ID})
	if len(rest) < len(whole)-middle-1 {
		t.Fatalf("resumed after %d of %d there are %d", middle+1, len(whole), len(rest))
	}
	if diff := cmp.Diff(whole[middle+1:], rest[:len(whole)-middle-1]); diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
	if last := s.entries(t, engine.AuditQuery{Limit: 2}); len(last) != 2 || last[1].ID < whole[len(whole)-1].ID {
		t.Errorf("the newest 2 are %+v", last)
	}
}

func listCheckpoints(t *testing.T, s *suite) {
	list, err := s.Engine.Checkpoints(s.ctx(t), s.home.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range list {
		if c.ID == "" || c.Sandbox != s.home.ID || i > 0 && c.Created.After(list[i-1].Created) {
			t.Errorf("checkpoint %d is %+v, want those of the sandbox, newest first", i, c)
		}
	}
}
