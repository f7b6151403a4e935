package healer

import (
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/store"
)

// crashInMaintenance has an app given up while its sandbox is in maintenance
// until a time; zero: until it is resumed.
func crashInMaintenance(t *testing.T, r *rig, until time.Time) engine.SandboxID {
	t.Helper()
	id := r.sandbox("api", map[string]string{"app.js": "ok"})
	r.change(id, func(sb *engine.Sandbox) {
		sb.Maintenance = engine.Maintenance{On: true, By: "dana", Until: until}
	})
	r.crash(id)
	time.Sleep(time.Minute)
	synctest.Wait()
	if n := runs(r, id); n != 0 {
		t.Fatalf("%d runs in maintenance", n)
	}
	return id
}

func runs(r *rig, id engine.SandboxID) int {
	return len(view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.RunsOf(id, time.Time{}) }))
}

func TestWhatCrashedInMaintenanceIsHealedWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		id := crashInMaintenance(t, r, time.Now().Add(10*time.Minute).UTC())
		time.Sleep(8 * time.Minute)
		synctest.Wait()
		if n := runs(r, id); n != 0 {
			t.Errorf("%d runs before its time is over", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
		if n := runs(r, id); n != 1 || sb.Health != engine.Ready {
			t.Errorf("an hour after: %d runs, and it is %s", n, sb.Health)
		}
	})
}

func TestMaintenanceThatEndedWithoutAHealerIsNoticedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		stop := r.start()
		id := crashInMaintenance(t, r, time.Now().Add(10*time.Minute).UTC())
		stop()
		time.Sleep(time.Hour)
		r.start()
		r.awaitRun(id, func(engine.HealRun) bool { return true })
		if run := r.ended(id); run.Outcome != engine.Healed {
			t.Errorf("the run ended %q", run.Outcome)
		}
	})
}

func TestWhatCrashedInMaintenanceIsJudgedAnewWhenSomebodyEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.start()
		id := crashInMaintenance(t, r, time.Time{})
		r.change(id, func(sb *engine.Sandbox) { sb.Maintenance = engine.Maintenance{} })
		for range 2 { // the second has nothing left to say
			r.update(func(tx *store.Tx) error { return Resumed(tx, id) })
			time.Sleep(time.Hour)
			synctest.Wait()
		}
		sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) })
		if n := runs(r, id); n != 1 || sb.Health != engine.Ready {
			t.Errorf("%d runs, and it is %s", n, sb.Health)
		}
	})
}
