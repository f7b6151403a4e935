package pool

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/store"
)

// settled is when a bubble's pool has nothing left to do.
func settled() {
	time.Sleep(30 * time.Second)
	synctest.Wait()
}

// make reserves a place and makes a row, as accepting a create does.
func tryAdd(t *testing.T, p *Pool, name string, with func(*engine.Sandbox)) (engine.SandboxID, error) {
	t.Helper()
	sb := engine.Sandbox{
		ID: engine.SandboxID(engine.NewID(engine.SandboxPrefix)), Name: name, Wanted: engine.Up, State: engine.Cold, Health: engine.Unknown,
		Origin: engine.Origin{Kind: engine.FromCopy, Ref: "/src"},
	}
	if with != nil {
		with(&sb)
	}
	return sb.ID, p.Store.Update(t.Context(), func(tx *store.Tx) error {
		if err := p.Reserve(tx); err != nil {
			return err
		}
		sb.Active = tx.Now
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		_, err := tx.Fire(sb.ID, engine.Resume)
		return err
	})
}

func stateOf(t *testing.T, p *Pool, id engine.SandboxID) engine.State {
	t.Helper()
	sb, _, there := look(t, p, id)
	if !there {
		return engine.Gone
	}
	return sb.State
}

func mustAdd(t *testing.T, p *Pool, name string, with func(*engine.Sandbox)) engine.SandboxID {
	t.Helper()
	id, err := tryAdd(t, p, name, with)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func kept(sb *engine.Sandbox)      { sb.Keep = true }
func preWarmed(sb *engine.Sandbox) { sb.PreWarmed = true }

func TestAtCapacityTheLowestTierGoesAndTheLeastRecentlyUsedOfIt(t *testing.T) {
	poolWith(t, func(p *Pool, _ *boxes) {
		p.Policy.MaxSandboxes = 4
		p.Archives = &shelf{kept: map[engine.SandboxID]bool{}}
	}, func(t *testing.T, p *Pool, _ *boxes) {
		warm := mustAdd(t, p, "warm", preWarmed)
		first := mustAdd(t, p, "first", nil)
		second := mustAdd(t, p, "second", nil)
		cold := mustAdd(t, p, "cold", nil)
		settled()
		want(t, p, cold, engine.Down)
		settled()
		if err := p.Store.Touch(t.Context(), first); err != nil { // the second is the longest unused now
			t.Fatal(err)
		}
		for _, step := range []struct {
			name string
			gone engine.SandboxID
		}{{"one", cold}, {"two", warm}, {"three", second}, {"four", first}} {
			mustAdd(t, p, step.name, kept)
			settled()
			if got := stateOf(t, p, step.gone); got != engine.Gone {
				t.Errorf("after %s the one in turn is %s, want it gone", step.name, got)
			}
		}
		_, err := tryAdd(t, p, "five", nil)
		if !errors.Is(err, engine.Exhausted) || engine.AsError(err).RetryAfter <= 0 || engine.Hint(err) == "" {
			t.Errorf("a create while all are kept: %v, want it refused with a time and a hint", err)
		}
	})
}

func TestWhoRunsIsHealedOrKeptIsNeverEvicted(t *testing.T) {
	poolWith(t, func(p *Pool, _ *boxes) {
		p.Policy.MaxSandboxes = 3
		p.Archives = &shelf{kept: map[engine.SandboxID]bool{}}
	}, func(t *testing.T, p *Pool, _ *boxes) {
		ids := []engine.SandboxID{mustAdd(t, p, "kept", kept), mustAdd(t, p, "works", nil), mustAdd(t, p, "heals", nil)}
		settled()
		update(t, p, func(tx *store.Tx) error {
			_, err := tx.Fire(ids[1], engine.Begin)
			err = errors.Join(err, tx.PutProcess(engine.Process{ID: "ps-1", Sandbox: ids[1], Kind: engine.Spawned, State: engine.ProcessRunning, Wanted: engine.WantRunning}))
			_, err2 := tx.FireHealth(ids[2], engine.Fault, "exit 1")
			return errors.Join(err, err2)
		})
		for range 5 {
			if _, err := tryAdd(t, p, "more", nil); !errors.Is(err, engine.Exhausted) {
				t.Fatalf("got %v, want the pool to be full", err)
			}
		}
		time.Sleep(24 * time.Hour)
		for _, id := range ids {
			if got := stateOf(t, p, id); !got.Live() {
				t.Errorf("%s is %s after a day", id, got)
			}
		}
	})
}

func TestAnEvictedOneThatCantBeArchivedStaysCold(t *testing.T) {
	poolWith(t, func(p *Pool, _ *boxes) {
		p.Policy.MaxSandboxes = 1
		p.Archives = &shelf{kept: map[engine.SandboxID]bool{}, broken: errors.New("no space left on device")}
	}, func(t *testing.T, p *Pool, d *boxes) {
		id := mustAdd(t, p, "works", nil)
		settled()
		mustAdd(t, p, "new", kept)
		settled()
		if sb, _, there := look(t, p, id); !there || sb.State != engine.Cold || sb.Leaving || d.destroyed[id] != 0 {
			t.Errorf("it is there: %t, %s (%s), destroyed %d times; want its workspace kept", there, sb.State, sb.Reason, d.destroyed[id])
		}
	})
}

func TestAnEvictedOneStaysColdWhereThereTurnsOutToBeRoom(t *testing.T) {
	poolWith(t, func(p *Pool, _ *boxes) {
		p.Policy.MaxSandboxes = 2
		p.Archives = &shelf{kept: map[engine.SandboxID]bool{}}
	}, func(t *testing.T, p *Pool, _ *boxes) {
		id := mustAdd(t, p, "works", nil)
		settled()
		update(t, p, func(tx *store.Tx) error {
			sb, err := tx.Sandbox(id)
			sb.Leaving = true
			return errors.Join(err, TakeDown(tx, sb, engine.Down, engine.EndedByEviction))
		})
		settled()
		if sb, _, there := look(t, p, id); !there || sb.State != engine.Cold || sb.Leaving {
			t.Errorf("it is there: %t, %s, leaving %t", there, sb.State, sb.Leaving)
		}
	})
}

func TestTheIdleAreArchivedAndPutToSleepAndTheTouchedAreNot(t *testing.T) {
	kept := &shelf{kept: map[engine.SandboxID]bool{}}
	poolWith(t, func(p *Pool, _ *boxes) {
		p.Archives = kept
	}, func(t *testing.T, p *Pool, _ *boxes) {
		idle, used, watched := mustAdd(t, p, "idle", nil), mustAdd(t, p, "used", nil), mustAdd(t, p, "watched", nil)
		settled()
		update(t, p, func(tx *store.Tx) error {
			return tx.PutProcess(engine.Process{ID: "ps-te", Sandbox: watched, Kind: engine.Interactive, State: engine.ProcessRunning, Wanted: engine.WantRunning})
		})
		for range 9 {
			time.Sleep(5 * time.Minute)
			if err := p.Store.Touch(t.Context(), used); err != nil {
				t.Fatal(err)
			}
		}
		settled()
		got := []engine.State{stateOf(t, p, idle), stateOf(t, p, used), stateOf(t, p, watched)}
		if got[0] != engine.Cold || !got[1].Live() || !got[2].Live() || !kept.kept[idle] {
			t.Errorf("idle, used and watched are %q, archived %t", got, kept.kept[idle])
		}
	})
}

func TestTheColdAreDeletedAfterTheirTimeAndNoLastCopyWithThem(t *testing.T) {
	for _, c := range []struct {
		name           string
		keepLast, held bool
		gone           bool
	}{{"as it is", false, false, true}, {"the last copy", true, false, false}, {"one that is elsewhere", true, true, true}} {
		t.Run(c.name, func(t *testing.T) {
			poolWith(t, func(p *Pool, _ *boxes) {
				p.Policy.KeepLastCopy = c.keepLast
				p.Archives = &shelf{kept: map[engine.SandboxID]bool{}, remote: c.held}
			}, func(t *testing.T, p *Pool, d *boxes) {
				id := mustAdd(t, p, "cold", nil)
				settled()
				want(t, p, id, engine.Down)
				time.Sleep(119 * time.Minute)
				if got := stateOf(t, p, id); got != engine.Cold {
					t.Fatalf("before its time it is %s", got)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := stateOf(t, p, id) == engine.Gone; got != c.gone || (d.destroyed[id] > 0) != c.gone {
					t.Errorf("gone: %t, its workspace destroyed %d times, want gone: %t", got, d.destroyed[id], c.gone)
				}
			})
		})
	}
}

func TestAColdResumeAndACleanupDecideInOneTransaction(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		id := mustAdd(t, p, "cold", nil)
		settled()
		want(t, p, id, engine.Down)
		settled()
		update(t, p, func(tx *store.Tx) error { // the resume is first
			sb, err := tx.Sandbox(id)
			sb.Wanted = engine.Up
			err = errors.Join(err, tx.PutSandbox(&sb))
			_, err2 := tx.Fire(id, engine.Resume)
			return errors.Join(err, err2, p.expire(tx, id))
		})
		settled()
		if got := stateOf(t, p, id); !got.Live() || d.destroyed[id] != 0 {
			t.Errorf("it is %s, and its workspace was destroyed %d times", got, d.destroyed[id])
		}
	})
}

func TestWarmOnesAreKeptReadyAndRefilledAndNeverEvictForIt(t *testing.T) {
	poolWith(t, func(p *Pool, _ *boxes) {
		p.Policy.Warm = map[string]int{"demo": 2}
		p.Policy.MaxSandboxes = 4
		p.NewWarm = func(name string) (engine.Sandbox, error) {
			return engine.Sandbox{Template: name, TemplateRevision: "r1", Origin: engine.Origin{Kind: engine.FromCopy, Ref: "/src"}}, nil
		}
	}, func(t *testing.T, p *Pool, _ *boxes) {
		warm := func() (ids []engine.SandboxID) {
			update(t, p, func(tx *store.Tx) error { ids = tx.WarmOf("demo"); return nil })
			return ids
		}
		settled()
		ids := warm()
		if len(ids) != 2 {
			t.Fatalf("%d are warm, want 2", len(ids))
		}
		update(t, p, func(tx *store.Tx) error { // a claim
			sb, err := tx.Sandbox(ids[0])
			sb.PreWarmed, sb.Keep = false, true
			err = errors.Join(err, tx.PutSandbox(&sb))
			_, err2 := tx.Fire(ids[0], engine.Claim)
			return errors.Join(err, err2)
		})
		settled()
		if now := warm(); len(now) != 2 || slices.Contains(now, ids[0]) {
			t.Errorf("after a claim %v are warm, want two others", now)
		}
		other := mustAdd(t, p, "other", kept)
		settled()
		mustAdd(t, p, "another", kept) // a warm one goes for it, and isn't made again
		settled()
		if now := warm(); len(now) != 1 || !stateOf(t, p, other).Live() {
			t.Errorf("%v are warm in a full pool, want one", now)
		}
	})
}

func TestATemplateThatCantBootIsSaidAndTriedLessAndLess(t *testing.T) {
	poolWith(t, func(p *Pool, d *boxes) {
		d.refuse = errors.New("its files are broken")
		p.Policy.Warm = map[string]int{"demo": 3}
		p.NewWarm = func(name string) (engine.Sandbox, error) {
			return engine.Sandbox{Template: name, Origin: engine.Origin{Kind: engine.FromCopy, Ref: "/src"}}, nil
		}
	}, func(t *testing.T, p *Pool, d *boxes) {
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		d.mu.Lock()
		tries := len(d.booted)
		d.mu.Unlock()
		var l engine.PoolLevels
		err := p.Store.View(t.Context(), func(tx *store.Tx) (err error) {
			l, err = p.Levels(tx)
			return err
		})
		if err != nil || tries < 3 || tries > 30 || l.Total > 3 || len(l.PreWarm) != 1 || l.PreWarm[0].Failure == "" {
			t.Errorf("%d tries in six hours, %+v, %v; want a few, said, with nothing left behind", tries, l, err)
		}
	})
}
