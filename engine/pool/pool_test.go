package pool

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/store"
)

// boxes is a driver that only counts what is asked of it.
type boxes struct {
	driver.Driver

	mu        sync.Mutex
	booted    map[engine.SandboxID]int
	destroyed map[engine.SandboxID]int
	at, most  int // boots under way
	refuse    error
	slow      time.Duration      // that making a box takes; 0: a second
	stubborn  int                // destroys that fail first
	ended     []engine.ProcessID // whose logs were marked as complete
}

func (d *boxes) Isolation() engine.Isolation { return engine.Isolation{Name: "counted"} }

func (d *boxes) Boot(ctx context.Context, b driver.Boot) (driver.Box, error) {
	d.mu.Lock()
	d.at++
	d.most = max(d.most, d.at)
	d.booted[b.ID]++
	err, slow := d.refuse, cmp.Or(d.slow, time.Second)
	d.mu.Unlock()
	select { // making a workspace takes a while
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(slow):
	}
	d.mu.Lock()
	d.at--
	d.mu.Unlock()
	return box{driver: d, id: b.ID}, err
}

func (d *boxes) Attach(_ context.Context, id engine.SandboxID) (driver.Box, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.booted[id] == 0 {
		return nil, engine.Errorf(engine.NotFound, "no box")
	}
	return box{driver: d, id: id}, nil
}

type box struct {
	driver.Box
	driver *boxes
	id     engine.SandboxID
}

func (b box) Destroy(context.Context) error {
	b.driver.mu.Lock()
	defer b.driver.mu.Unlock()
	if b.driver.stubborn > 0 {
		b.driver.stubborn--
		return errors.New("device or resource busy")
	}
	b.driver.destroyed[b.id]++
	return nil
}

// poolTest runs a pool over a real store in a bubble.
func poolTest(t *testing.T, fn func(t *testing.T, p *Pool, d *boxes)) {
	poolWith(t, func(*Pool, *boxes) {}, fn)
}

// poolWith is poolTest of a pool that is set up before it runs.
func poolWith(t *testing.T, setUp func(*Pool, *boxes), fn func(t *testing.T, p *Pool, d *boxes)) {
	synctest.Test(t, func(t *testing.T) {
		st, err := store.Open(t.Context(), t.TempDir(), store.Options{Sync: "normal"})
		if err != nil {
			t.Fatal(err)
		}
		d := &boxes{booted: map[engine.SandboxID]int{}, destroyed: map[engine.SandboxID]int{}}
		p := &Pool{
			Store: st, Driver: d, Forget: func(engine.ProcessID) error { return nil },
			EndLog: func(id engine.ProcessID) error { d.ended = append(d.ended, id); return nil },
			Policy: DefaultPolicy(), Log: slog.New(slog.DiscardHandler),
		}
		setUp(p, d)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		fn(t, p, d)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

func add(t *testing.T, p *Pool, name string) engine.SandboxID {
	t.Helper()
	sb := engine.Sandbox{
		ID: engine.SandboxID(engine.NewID(engine.SandboxPrefix)), Name: name, Wanted: engine.Up, State: engine.Cold, Health: engine.Unknown,
		Spec:   engine.Spec{App: engine.ProcessSpec{Command: "true", Port: 4000}, Processes: []engine.ProcessSpec{{Name: "watcher", Command: "true"}}},
		Origin: engine.Origin{Kind: engine.FromCopy, Ref: "/src"},
	}
	update(t, p, func(tx *store.Tx) error {
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		_, err := tx.Fire(sb.ID, engine.Resume)
		return err
	})
	return sb.ID
}

func update(t *testing.T, p *Pool, fn func(*store.Tx) error) {
	t.Helper()
	if err := p.Store.Update(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, p *Pool, id engine.SandboxID, w engine.Wanted) {
	t.Helper()
	update(t, p, func(tx *store.Tx) error {
		sb, err := tx.Sandbox(id)
		if err != nil {
			return err
		}
		sb.Wanted = w
		return tx.PutSandbox(&sb)
	})
}

// look reads a sandbox and its processes when nothing moves any more.
func look(t *testing.T, p *Pool, id engine.SandboxID) (sb engine.Sandbox, procs []engine.Process, there bool) {
	t.Helper()
	err := p.Store.View(t.Context(), func(tx *store.Tx) (err error) {
		if sb, err = tx.Sandbox(id); err != nil {
			return err
		}
		procs, err = tx.ProcessesOf(id)
		return err
	})
	if err != nil && engine.AsCode(err) != engine.NotFound {
		t.Fatal(err)
	}
	return sb, procs, err == nil
}

func TestAWarmingSandboxIsBootedOnceAndItsProcessesAreWanted(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		id := add(t, p, "api")
		time.Sleep(time.Minute)
		synctest.Wait()
		sb, procs, _ := look(t, p, id)
		if sb.State != engine.Waiting || sb.Health != engine.Starting || sb.Isolation != "counted" || d.booted[id] != 1 {
			t.Errorf("it is %s, %s in %q after %d boots", sb.State, sb.Health, sb.Isolation, d.booted[id])
		}
		if len(procs) != 2 {
			t.Fatalf("%d processes, want the app and the watcher", len(procs))
		}
		for _, ps := range procs {
			if ps.Wanted != engine.WantRunning || ps.Name == engine.AppName && ps.Port != 4000 {
				t.Errorf("%s is wanted %s on port %d", ps.Name, ps.Wanted, ps.Port)
			}
		}
	})
}

func TestNoMoreThanSoManyBootAtOnce(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			add(t, p, name)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if d.most != p.Policy.Boots || len(d.booted) != 9 {
			t.Errorf("%d at once of %d, want %d of 9", d.most, len(d.booted), p.Policy.Boots)
		}
	})
}

func TestWhatCannotBootIsColdWithTheReasonAndNotTriedForEver(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		d.refuse = errors.New("the template is broken")
		id := add(t, p, "api")
		command := engine.Process{ID: "ps-waitsforit", Sandbox: id, Kind: engine.Spawned, State: engine.ProcessStarting, Wanted: engine.WantRunning}
		update(t, p, func(tx *store.Tx) error { return tx.PutProcess(command) })
		time.Sleep(time.Hour)
		synctest.Wait()
		sb, procs, _ := look(t, p, id)
		if sb.State != engine.Cold || sb.Wanted != engine.Down || sb.Reason != "could not be started: the template is broken" || d.booted[id] != 1 {
			t.Errorf("it is %s, wanted %s, %q after %d boots", sb.State, sb.Wanted, sb.Reason, d.booted[id])
		}
		if len(procs) != 1 || procs[0].State != engine.ProcessExited || procs[0].Exit == nil || procs[0].Exit.Code == 0 {
			t.Errorf("the command that waited for the start is %+v, want it over", procs)
		}
		if len(d.ended) != 1 || d.ended[0] != command.ID {
			t.Errorf("logs that were ended: %v; who follows the command's waits for ever", d.ended)
		}
	})
}

func TestWhatIsStoppedWhileItBootsGoesDown(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		id := add(t, p, "api")
		time.Sleep(500 * time.Millisecond) // its box is being made
		want(t, p, id, engine.Down)
		time.Sleep(time.Minute)
		synctest.Wait()
		if sb, procs, _ := look(t, p, id); sb.State != engine.Cold || len(procs) != 0 {
			t.Errorf("it is %s with %d processes, want it cold with none", sb.State, len(procs))
		}
	})
}

func TestABootThatHangsEndsWhenItsSandboxIsNotWantedAnyMore(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		d.slow = time.Hour // a clone from a host that doesn't answer
		var ids []engine.SandboxID
		for _, name := range []string{"a", "b", "c", "d", "in line"} {
			ids = append(ids, add(t, p, name))
		}
		time.Sleep(time.Minute)
		for i, id := range ids {
			want(t, p, id, []engine.Wanted{engine.Down, engine.Removed}[i%2])
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, id := range ids {
			sb, _, there := look(t, p, id)
			if i%2 == 0 && (sb.State != engine.Cold || sb.Wanted != engine.Down || sb.Reason != "") || i%2 == 1 && there {
				t.Errorf("after a second %s is there: %v, %s, wanted %s: %q", sb.Name, there, sb.State, sb.Wanted, sb.Reason)
			}
		}
		d.mu.Lock()
		d.slow = 0
		d.mu.Unlock()
		update(t, p, func(tx *store.Tx) error { // it starts as if nothing had been
			sb, err := tx.Sandbox(ids[0])
			if err != nil {
				return err
			}
			sb.Wanted = engine.Up
			if err := tx.PutSandbox(&sb); err != nil {
				return err
			}
			_, err = tx.Fire(sb.ID, engine.Resume)
			return err
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if sb, _, _ := look(t, p, ids[0]); sb.State != engine.Waiting {
			t.Errorf("started again it is %s: %s", sb.State, sb.Reason)
		}
	})
}

func TestAPoolThatFellBehindTheJournalLooksAgainAndCutsNoBoot(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		first := add(t, p, "first")
		time.Sleep(500 * time.Millisecond) // its box is being made
		p.mu.Lock()                        // the reader stands still
		update(t, p, func(tx *store.Tx) error {
			sb, err := tx.Sandbox(first)
			for range 3000 {
				sb.Keep = !sb.Keep
				err = errors.Join(err, tx.PutSandbox(&sb))
			}
			return err
		})
		second := add(t, p, "second")
		if err := p.Store.Prune(t.Context(), 0, time.Hour); err != nil {
			t.Error(err)
		}
		p.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, id := range []engine.SandboxID{first, second} {
			if sb, _, _ := look(t, p, id); sb.State != engine.Waiting || d.booted[id] != 1 {
				t.Errorf("%s is %s after %d boots, want it waiting after one", sb.Name, sb.State, d.booted[id])
			}
		}
	})
}

func TestRemovingIsTriedAgainUntilTheFilesAreGone(t *testing.T) {
	poolTest(t, func(t *testing.T, p *Pool, d *boxes) {
		id := add(t, p, "api")
		time.Sleep(time.Minute)
		synctest.Wait()
		update(t, p, func(tx *store.Tx) error { // the supervisor's part
			procs, err := tx.ProcessesOf(id)
			for _, ps := range procs {
				ps.Wanted, ps.State = engine.WantStopped, engine.ProcessStopped
				if err := tx.PutProcess(ps); err != nil {
					return err
				}
			}
			return err
		})
		d.mu.Lock()
		d.stubborn = 3
		d.mu.Unlock()
		want(t, p, id, engine.Removed)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, _, there := look(t, p, id); there || d.destroyed[id] != 1 {
			t.Errorf("its record is there: %v; its box was destroyed %d times", there, d.destroyed[id])
		}
	})
}
