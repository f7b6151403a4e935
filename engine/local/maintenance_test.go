package local

import (
	"testing"
	"time"

	"sbx/engine"
	"sbx/store"
)

func TestEndingMaintenanceHasAnIgnoredExitJudgedAgain(t *testing.T) {
	st, err := store.Open(t.Context(), t.TempDir(), store.Options{Sync: "normal"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	const id, app = engine.SandboxID("sb-aaaaaaaaaa"), engine.ProcessID("ps-aaaaaaaaaa")
	var r engine.Receipt
	off := setMaintenance(engine.Actor{Kind: engine.ActorOperator, Name: "dana"}, engine.SetMaintenance{Sandbox: id})
	var signals []engine.Signal
	err = st.Update(t.Context(), func(tx *store.Tx) error {
		sb := engine.Sandbox{
			ID: id, Name: "api", Wanted: engine.Up, State: engine.Waiting, Health: engine.Ready,
			Maintenance: engine.Maintenance{On: true},
		}
		exit := &engine.Exit{Code: 1, At: tx.Now}
		down := engine.Process{
			ID: app, Sandbox: id, Name: engine.AppName, Kind: engine.Supervised,
			Wanted: engine.WantRunning, State: engine.ProcessFailed, Exit: exit,
		}
		if err := tx.PutSandbox(&sb); err != nil {
			return err
		}
		if err := tx.PutProcess(down); err != nil {
			return err
		}
		sig, err := tx.RaiseSignal(engine.Signal{Sandbox: id, Process: app, Kind: engine.ExitSignal, Exit: exit})
		if err != nil {
			return err
		}
		sig.Verdict = &engine.Verdict{Action: engine.Ignore, At: tx.Now}
		if err := tx.JudgeSignal(sig); err != nil {
			return err
		}
		for range 2 { // ending what is over raises nothing more
			if err := off(tx, &r); err != nil {
				return err
			}
		}
		never := setMaintenance(engine.Actor{}, engine.SetMaintenance{Sandbox: id, On: true, For: -1})
		if err := never(tx, &r); engine.AsCode(err) != engine.Invalid {
			t.Errorf("maintenance that ended before it began gave %v", err)
		}
		signals, err = tx.Signals(id, time.Time{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(signals); n != 2 || signals[1].Verdict != nil || signals[1].Process != app {
		t.Errorf("signals are now %+v, want the exit a second time", signals)
	}
}
