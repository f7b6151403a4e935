package store

import (
	"errors"
	"sync"
	"testing"

	"sbx/engine"
)

func TestOfManyWhoMoveASandboxExactlyOneWins(t *testing.T) {
	s := openStore(t, t.TempDir())
	for range 10 {
		sb := putSample(t, s, engine.NewID("n-"))
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			won []engine.LifeTrigger
		)
		start := make(chan struct{})
		for i := range 20 {
			on := []engine.LifeTrigger{engine.Begin, engine.Evict}[i%2]
			wg.Go(func() {
				<-start
				err := s.Update(t.Context(), func(tx *Tx) error {
					_, err := tx.Fire(sb.ID, on)
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, on)
				} else if !errors.Is(err, engine.Conflict) {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%v won", won)
		}
		want := map[engine.LifeTrigger]engine.State{engine.Begin: engine.Running, engine.Evict: engine.Cold}[won[0]]
		if got := sandbox(t, s, sb.ID).State; got != want {
			t.Errorf("%s won, but the sandbox is %s", won[0], got)
		}
	}
}

func sandbox(t *testing.T, s *Store, id engine.SandboxID) (sb engine.Sandbox) {
	t.Helper()
	err := s.View(t.Context(), func(tx *Tx) (err error) {
		sb, err = tx.Sandbox(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

func TestEvictLeavesAloneWhatIsKeptOrHealing(t *testing.T) {
	s := openStore(t, t.TempDir())
	for name, change := range map[string]func(*engine.Sandbox){
		"kept":    func(sb *engine.Sandbox) { sb.Keep = true },
		"healing": func(sb *engine.Sandbox) { sb.Health = engine.Healing },
	} {
		t.Run(name, func(t *testing.T) {
			sb := sampleSandbox(name)
			change(&sb)
			update(t, s, func(tx *Tx) error { return tx.PutSandbox(&sb) })
			err := s.Update(t.Context(), func(tx *Tx) error {
				_, err := tx.Fire(sb.ID, engine.Evict)
				return err
			})
			if !errors.Is(err, engine.Conflict) {
				t.Errorf("evict: %v", err)
			}
		})
	}
}

func TestASandboxThatIsGoneLeavesItsHistory(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "gone")
	update(t, s, func(tx *Tx) error {
		err := tx.PutProcess(engine.Process{ID: "ps-1", Sandbox: sb.ID, Port: 4000, Kind: engine.Supervised})
		sig, err2 := tx.RaiseSignal(engine.Signal{Sandbox: sb.ID, Kind: engine.ExitSignal})
		err3 := tx.PutRun(engine.HealRun{ID: "ru-1", Sandbox: sb.ID, Signal: sig.ID, State: engine.RunQueued})
		err4 := tx.PutStep(engine.Step{Run: "ru-1", Sandbox: sb.ID, Number: 1, State: engine.StepOK})
		err5 := tx.PutCheckpoint(engine.Checkpoint{ID: "cp-1", Sandbox: sb.ID})
		_, err6 := tx.Fire(sb.ID, engine.Remove)
		return errors.Join(err, err2, err3, err4, err5, err6)
	})
	err := s.View(t.Context(), func(tx *Tx) error {
		ports, err := tx.Ports()
		if len(ports) != 0 || err != nil {
			t.Errorf("its ports are still taken: %v %v", ports, err)
		}
		for what, read := range map[string]func() error{
			"sandbox":    func() error { _, err := tx.Sandbox(sb.ID); return err },
			"process":    func() error { _, err := tx.Process("ps-1"); return err },
			"run":        func() error { _, err := tx.Run("ru-1"); return err },
			"checkpoint": func() error { _, err := tx.Checkpoint("cp-1"); return err },
		} {
			if err := read(); !errors.Is(err, engine.NotFound) {
				t.Errorf("its %s: %v", what, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds := healKinds(t, s, engine.HealQuery{Sandbox: sb.ID})
	if len(kinds) != 3 {
		t.Errorf("the healer's history of it is %v", kinds)
	}
	for name, write := range map[string]func(*Tx) error{
		"process": func(tx *Tx) error { return tx.PutProcess(engine.Process{ID: "ps-2", Sandbox: sb.ID}) },
		"signal": func(tx *Tx) error {
			_, err := tx.RaiseSignal(engine.Signal{Sandbox: sb.ID})
			return err
		},
		"run":  func(tx *Tx) error { return tx.PutRun(engine.HealRun{ID: "ru-2", Sandbox: sb.ID}) },
		"step": func(tx *Tx) error { return tx.PutStep(engine.Step{Run: "ru-1", Sandbox: sb.ID, Number: 2}) },
		"row":  func(tx *Tx) error { return tx.PutSandbox(&sb) },
	} {
		if err := s.Update(t.Context(), write); !errors.Is(err, engine.NotFound) {
			t.Errorf("a %s for it: %v", name, err)
		}
	}
}

func TestAChangeOfAStaleRowIsRefused(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	fire(t, s, sb.ID, engine.Begin)
	sb.Keep = true
	err := s.Update(t.Context(), func(tx *Tx) error { return tx.PutSandbox(&sb) })
	if !errors.Is(err, engine.Conflict) {
		t.Errorf("putting back an old row: %v", err)
	}
}

func TestANameIsTakenOnce(t *testing.T) {
	s := openStore(t, t.TempDir())
	putSample(t, s, "api")
	other := putSample(t, s, "web")
	for name, write := range map[string]func(*Tx) error{
		"new":     func(tx *Tx) error { sb := sampleSandbox("api"); return tx.PutSandbox(&sb) },
		"renamed": func(tx *Tx) error { sb := other; sb.Name = "api"; return tx.PutSandbox(&sb) },
	} {
		if err := s.Update(t.Context(), write); !errors.Is(err, engine.Conflict) {
			t.Errorf("a %s one of a taken name: %v", name, err)
		}
	}
}

func TestWhatDidNotChangeIsNoEvent(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	p := engine.Process{ID: "ps-1", Sandbox: sb.ID, Kind: engine.Supervised, Name: engine.AppName}
	for range 3 {
		update(t, s, func(tx *Tx) error { return errors.Join(tx.PutSandbox(&sb), tx.PutProcess(p)) })
	}
	if p, err := s.Position(t.Context()); err != nil || p.Seq != 2 {
		t.Errorf("the journal is at %v after two rows: %v", p, err)
	}
}

func TestWhatALoserChangesIsNotSeenByOthers(t *testing.T) {
	s := openStore(t, t.TempDir())
	sb := putSample(t, s, "a")
	for range 3 { // the second time from the writer's cache
		update(t, s, func(tx *Tx) error {
			got, err := tx.FireHealth(sb.ID, engine.Fault, "down")
			got.Labels["team"], got.Spec.App.Env["NODE_ENV"], got.Spec.Heal.Protected[0] = "x", "x", "x"
			return err
		})
		update(t, s, func(tx *Tx) error {
			_, err := tx.FireHealth(sb.ID, engine.Repaired, "")
			return err
		})
	}
	got := sandbox(t, s, sb.ID)
	if got.Labels["team"] != "shop" || got.Spec.App.Env["NODE_ENV"] != "development" || got.Spec.Heal.Protected[0] != "src/engine" {
		t.Errorf("a caller's scribbles were written: %+v", got)
	}
}
