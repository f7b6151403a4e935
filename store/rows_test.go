package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// healKinds are the kinds of the healer's history that q selects.
func healKinds(t *testing.T, s *Store, q engine.HealQuery) (kinds []string) {
	t.Helper()
	for r, err := range s.Heals(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, r.Kind())
	}
	return kinds
}

// oneHeal writes a whole heal of a sandbox: 7 records, of 9 events.
func oneHeal(t *testing.T, s *Store, id engine.SandboxID, ru engine.RunID) {
	t.Helper()
	run := engine.HealRun{ID: ru, Sandbox: id, State: engine.RunQueued}
	attempt := engine.Attempt{Run: ru, Sandbox: id, Number: 1}
	step := engine.Step{Run: ru, Sandbox: id, Attempt: 1, Number: 1, State: engine.StepRunning}
	update(t, s, func(tx *Tx) error {
		sig, err := tx.RaiseSignal(engine.Signal{Sandbox: id, Kind: engine.ExitSignal})
		sig.Verdict, sig.Run = &engine.Verdict{Action: engine.Repair}, ru
		run.Signal = sig.ID
		return errors.Join(err, tx.JudgeSignal(sig), tx.PutRun(run))
	})
	update(t, s, func(tx *Tx) error { return errors.Join(tx.PutAttempt(attempt), tx.PutStep(step)) })
	run.State, step.State = engine.RunModel, engine.StepOK
	update(t, s, func(tx *Tx) error { return errors.Join(tx.PutStep(step), tx.PutRun(run)) })
	run.State, run.Outcome, attempt.Outcome = engine.RunEnded, engine.Healed, engine.Healed
	update(t, s, func(tx *Tx) error { return errors.Join(tx.PutAttempt(attempt), tx.PutRun(run)) })
}

func TestTheHealersHistoryOutlivesTheJournal(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb, other := putSample(t, s, "a"), putSample(t, s, "b")
	oneHeal(t, s, sb.ID, "ru-a")
	oneHeal(t, s, other.ID, "ru-b")
	live := map[engine.Seq]engine.Event{}
	for ev, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if live[ev.Seq] = ev; ev.Seq == 20 {
			break
		}
	}
	if err := s.Prune(t.Context(), 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	want := []string{
		engine.KindSignalRaised, engine.KindSignalJudged, engine.KindHealStarted, engine.KindHealAttempted,
		engine.KindHealStepped, engine.KindHealAttempted, engine.KindHealFinished,
	}
	if diff := cmp.Diff(want, healKinds(t, s, engine.HealQuery{Sandbox: sb.ID})); diff != "" {
		t.Errorf("the history of one sandbox (-want +got):\n%s", diff)
	}
	for r, err := range s.Heals(t.Context(), engine.HealQuery{}) {
		if diff := cmp.Diff(live[r.Seq], r); diff != "" || err != nil {
			t.Errorf("record %d is not the event (-event +record): %v\n%s", r.Seq, err, diff)
		}
	}
}

func TestHealsSelects(t *testing.T) {
	s := openStore(t, t.TempDir())
	for i := range 30 { // more than a page
		sb := putSample(t, s, fmt.Sprint("n", i))
		oneHeal(t, s, sb.ID, engine.RunID(fmt.Sprint("ru-", i)))
	}
	one := 1
	for name, c := range map[string]struct {
		q    engine.HealQuery
		want int
	}{
		"all":          {engine.HealQuery{}, 210},
		"the newest":   {engine.HealQuery{Limit: 150}, 150},
		"more than is": {engine.HealQuery{Limit: 999}, 210},
		"a run":        {engine.HealQuery{Run: "ru-7"}, 6},
		"an attempt":   {engine.HealQuery{Run: "ru-7", Attempt: &one}, 3},
		"after":        {engine.HealQuery{After: 298}, 2},
		"since":        {engine.HealQuery{Since: time.Now().Add(time.Hour)}, 0},
	} {
		if got := healKinds(t, s, c.q); len(got) != c.want {
			t.Errorf("%s: %d records, want %d", name, len(got), c.want)
		}
	}
}

func TestReceiptsAreKeptADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		want := engine.Receipt{Action: "ac-1", Sandbox: "sb-1", Position: engine.Position{Epoch: 1, Seq: 4}}
		update(t, s, func(tx *Tx) error { return tx.PutReceipt(want) })
		time.Sleep(24*time.Hour - time.Minute)
		got, ok := receipt(t, s, "ac-1")
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("within the day, %t:\n%s", ok, diff)
		}
		time.Sleep(2 * time.Minute)
		if _, ok := receipt(t, s, "ac-1"); ok {
			t.Error("after a day it is still answered")
		}
		if err := s.Prune(t.Context(), 0, time.Hour); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := s.View(t.Context(), func(tx *Tx) error {
			_, err := tx.one("SELECT count(*) FROM receipts", nil, &n)
			return err
		}); err != nil || n != 0 {
			t.Errorf("%d receipts stay after pruning: %v", n, err)
		}
	})
}

func receipt(t *testing.T, s *Store, id engine.ActionID) (r engine.Receipt, ok bool) {
	t.Helper()
	err := s.View(t.Context(), func(tx *Tx) (err error) {
		r, ok, err = tx.Receipt(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, ok
}

func TestTheAuditLogCanOnlyGrowAndAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		by := engine.Actor{Kind: engine.ActorOperator, Name: "ada"}
		appendOne := func(subject string) {
			update(t, s, func(tx *Tx) error {
				tx.By, tx.Action = by, "ac-1"
				return tx.AppendAudit(engine.AuditEntry{Kind: "sandbox.restart", Subject: subject, Result: "ok"})
			})
		}
		appendOne("sb-1")
		for _, sql := range []string{"UPDATE audit SET subject = 'x'", "DELETE FROM audit"} {
			err := s.Update(t.Context(), func(tx *Tx) error {
				_, err := tx.write(sql)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", sql, err)
			}
		}
		time.Sleep(48 * time.Hour)
		appendOne("sb-1")
		appendOne("sb-2")
		if err := s.Prune(t.Context(), 0, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := auditIDs(t, s, engine.AuditQuery{}); fmt.Sprint(got) != "[2 3]" {
			t.Errorf("after a day %v stay", got)
		}
		if got := auditIDs(t, s, engine.AuditQuery{Subject: "sb-2"}); fmt.Sprint(got) != "[3]" {
			t.Errorf("those of sb-2 are %v", got)
		}
		if got := auditIDs(t, s, engine.AuditQuery{Limit: 1}); fmt.Sprint(got) != "[3]" {
			t.Errorf("the newest is %v", got)
		}
		for e, err := range s.Audit(t.Context(), engine.AuditQuery{After: 2}) {
			want := engine.AuditEntry{ID: 3, At: now(), By: by, Action: "ac-1", Kind: "sandbox.restart", Subject: "sb-2", Result: "ok"}
			if diff := cmp.Diff(want, e); diff != "" || err != nil {
				t.Errorf("(-want +got) %v\n%s", err, diff)
			}
		}
	})
}

func auditIDs(t *testing.T, s *Store, q engine.AuditQuery) (ids []int64) {
	t.Helper()
	for e, err := range s.Audit(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	return ids
}

func TestPruneKeepsTheLatestRunAndSignalOfEachSandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, t.TempDir())
		sb := putSample(t, s, "a")
		for i := range 3 {
			oneHeal(t, s, sb.ID, engine.RunID(fmt.Sprint("ru-", i)))
		}
		before, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * 24 * time.Hour)
		if err := s.Prune(t.Context(), 0, 90*24*time.Hour); err != nil {
			t.Fatal(err)
		}
		after, err := s.Snapshot(t.Context())
		if diff := cmp.Diff(before, after); diff != "" || err != nil {
			t.Errorf("pruning changed the snapshot: %v\n%s", err, diff)
		}
		if kinds := healKinds(t, s, engine.HealQuery{}); len(kinds) != 0 {
			t.Errorf("history of 100 days ago: %v", kinds)
		}
	})
}

func TestASandboxHasOneOpenRun(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	first := engine.HealRun{ID: "ru-1", Sandbox: sb.ID, State: engine.RunQueued}
	update(t, s, func(tx *Tx) error { return tx.PutRun(first) })
	err := s.Update(t.Context(), func(tx *Tx) error {
		return tx.PutRun(engine.HealRun{ID: "ru-2", Sandbox: sb.ID, State: engine.RunQueued})
	})
	if !errors.Is(err, engine.Conflict) {
		t.Errorf("a second open run: %v", err)
	}
	first.State = engine.RunEnded
	update(t, s, func(tx *Tx) error { return tx.PutRun(first) })
	first.State = engine.RunQueued
	if err := s.Update(t.Context(), func(tx *Tx) error { return tx.PutRun(first) }); !errors.Is(err, engine.Conflict) {
		t.Errorf("opening a run that has ended: %v", err)
	}
}

func TestLiveProcessesAreThoseWithSomethingLeftToHappen(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	for i, p := range []engine.Process{
		{Name: "yes", Kind: engine.Supervised, State: engine.ProcessRunning, Wanted: engine.WantRunning},
		{Name: "yes", Kind: engine.Supervised, State: engine.ProcessFailed, Wanted: engine.WantRunning},
		{Name: "yes", Kind: engine.Supervised, State: engine.ProcessStopping, Wanted: engine.WantStopped},
		{Name: "yes", Kind: engine.Spawned, State: engine.ProcessRunning, Wanted: engine.WantRunning},
		{Name: "no", Kind: engine.Supervised, State: engine.ProcessStopped, Wanted: engine.WantStopped},
		{Name: "no", Kind: engine.Spawned, State: engine.ProcessExited, Wanted: engine.WantRunning},
	} {
		p.ID, p.Sandbox, p.Port = engine.ProcessID(fmt.Sprint("ps-", i)), sb.ID, 4000+i
		update(t, s, func(tx *Tx) error { return tx.PutProcess(p) })
	}
	err := s.View(t.Context(), func(tx *Tx) error {
		list, err := tx.LiveProcesses()
		for _, p := range list {
			if p.Name != "yes" {
				t.Errorf("%+v is live", p)
			}
		}
		ports, err2 := tx.Ports()
		want := map[int]engine.ProcessID{4000: "ps-0", 4001: "ps-1", 4002: "ps-2", 4003: "ps-3", 4004: "ps-4"}
		if diff := cmp.Diff(want, ports); diff != "" || len(list) != 4 {
			t.Errorf("%d are live; ports (-want +got):\n%s", len(list), diff)
		}
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestATokenIsFoundByItsHash(t *testing.T) {
	s := openStore(t, t.TempDir())
	want := Token{Name: "ci", Role: engine.Operator, Hash: []byte{1, 2, 3}, Created: now(), Expires: now().Add(time.Hour)}
	update(t, s, func(tx *Tx) error { return tx.PutToken(want) })
	want.Revoked = now()
	update(t, s, func(tx *Tx) error { return tx.PutToken(want) })
	err := s.View(t.Context(), func(tx *Tx) error {
		got, ok, err := tx.TokenByHash(want.Hash)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%t (-want +got):\n%s", ok, diff)
		}
		_, ok, err2 := tx.TokenByHash([]byte{9})
		all, err3 := tx.Tokens()
		if ok || len(all) != 1 {
			t.Errorf("another hash: %t; %d tokens", ok, len(all))
		}
		return errors.Join(err, err2, err3)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLevelsCountByState(t *testing.T) {
	s := openStore(t, t.TempDir())
	putSample(t, s, "a")
	fire(t, s, putSample(t, s, "b").ID, engine.Begin)
	fire(t, s, putSample(t, s, "c").ID, engine.Evict)
	err := s.View(t.Context(), func(tx *Tx) error {
		got, err := tx.Levels()
		if diff := cmp.Diff(engine.PoolLevels{Total: 3, Cold: 1, Waiting: 1, Running: 1}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
