package local

import (
	"testing"

	"sbx/engine"
	"sbx/store"
)

// BenchmarkClaim opens sessions that each claim a warm sandbox, which is put
// there outside of the measure.
func BenchmarkClaim(b *testing.B) {
	e := open(b, config(b, openDir(b), "none"))
	origin := engine.Origin{Kind: engine.FromTemplate, Ref: "static"}
	var claimed engine.SandboxID
	for b.Loop() {
		b.StopTimer()
		err := e.store.Update(b.Context(), func(tx *store.Tx) error {
			if claimed != "" {
				if err := tx.RemoveSandbox(claimed); err != nil {
					return err
				}
			}
			sb, err := e.newWarm("static")
			if err != nil {
				return err
			}
			sb.ID = engine.SandboxID(engine.NewID(engine.SandboxPrefix))
			sb.Name, sb.PreWarmed, sb.Wanted, sb.State, sb.Health = string(sb.ID[3:]), true, engine.Up, engine.Warm, engine.Ready
			return tx.PutSandbox(&sb)
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		r, err := e.Do(b.Context(), engine.NewAction(engine.CreateSession{Origin: origin}))
		if err != nil {
			b.Fatal(err)
		}
		claimed = r.Sandbox
	}
}

// BenchmarkFloorCommit is a session's row and no more.
func BenchmarkFloorCommit(b *testing.B) {
	e := open(b, config(b, openDir(b), "none"))
	for b.Loop() {
		err := e.store.Update(b.Context(), func(tx *store.Tx) error {
			return tx.PutSession(engine.Session{ID: engine.SessionID(engine.NewID(engine.SessionPrefix)), State: engine.SessionPaused})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColdResume brings a paused session's sandbox back, until a command
// in it has ended.
func BenchmarkColdResume(b *testing.B) {
	e := open(b, config(b, openDir(b), "none"))
	s, err := engine.OpenSession(b.Context(), e, engine.CreateSession{Origin: source(b)})
	if err != nil {
		b.Fatal(err)
	}
	run := func() {
		end, err := engine.ExecInSession(b.Context(), e, s.ID, "", engine.Command{Shell: "true"}, engine.SpawnOptions{Keep: -1})
		if err != nil || !end.Success {
			b.Fatalf("%+v, %v", end, err)
		}
	}
	run()
	for b.Loop() {
		b.StopTimer()
		if _, err := e.Do(b.Context(), engine.NewAction(engine.PauseSession{Session: s.ID})); err != nil {
			b.Fatal(err)
		}
		if err := e.comeTo(b.Context(), s.ID, ""); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		run()
	}
}
