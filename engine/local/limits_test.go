package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx/engine"
)

// limited is source with limits of its own.
func limited(t *testing.T, limits string) engine.Origin {
	t.Helper()
	o := source(t)
	name := filepath.Join(o.Ref, "sbx.toml")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(string(data)+"\n[limits]\n"+limits+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return o
}

// A sandbox that fills the disk is stopped with a reason, can be tidied up, and
// works again when somebody restarts it; another one is as it was.
func TestADiskFillerIsHeldUntilThereIsRoom(t *testing.T) {
	e := open(t, config(t, t.TempDir(), ""))
	other := ready(t, e, engine.CreateSandbox{Origin: source(t), Keep: true})
	sb := ready(t, e, engine.CreateSandbox{Origin: limited(t, `disk = "20MiB"`), Keep: true})
	filler, err := engine.SpawnHandle(t.Context(), e, sb.ID,
		engine.Command{Shell: "while :; do head -c 4000000 /dev/zero >> big; sleep 0.1; done"}, engine.SpawnOptions{Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	held := until(t, e, sb.ID, "be held", func(sb engine.Sandbox) bool { return sb.Health == engine.Broken })
	if !strings.HasPrefix(held.Reason, "disk ") || !strings.Contains(held.Reason, "sbx restart") || !held.State.Live() {
		t.Errorf("it is %s, %s: %s", held.State, held.Health, held.Reason)
	}
	stopped := func(s *engine.Snapshot) bool {
		for _, p := range s.Processes {
			if p.Sandbox == sb.ID && p.State.Alive() {
				return false
			}
		}
		return true
	}
	if err := engine.Until(t.Context(), e, time.Minute, stopped); err != nil {
		t.Fatalf("something still runs in it: %v", err)
	}
	if got, err := filler.Wait(t.Context()); err != nil || !got.Killed {
		t.Errorf("what filled it ended as %+v, %v", got, err)
	}
	if got, err := engine.Exec(t.Context(), e, sb.ID, engine.Command{Shell: "rm big"}, nil); err != nil || !got.Success {
		t.Fatalf("it can't be tidied up: %+v, %v", got, err)
	}
	if _, err := engine.RestartProcess(t.Context(), e, sb.ID, ""); err != nil {
		t.Fatal(err)
	}
	until(t, e, sb.ID, "be ready again", func(sb engine.Sandbox) bool { return sb.Health == engine.Ready })
	if now := until(t, e, other.ID, "be there", func(engine.Sandbox) bool { return true }); now.Health != engine.Ready {
		t.Errorf("the other is %s: %s", now.Health, now.Reason)
	}
}

// A command that the kernel ends for want of memory says so wherever exits are
// shown, and the app of the same sandbox goes on.
func TestWantOfMemoryIsNoCrash(t *testing.T) {
	cfg := config(t, t.TempDir(), "")
	e := open(t, cfg)
	sb := ready(t, e, engine.CreateSandbox{Origin: limited(t, `memory = "96MiB"`), Keep: true})
	got, err := engine.Exec(t.Context(), e, sb.ID, engine.Command{Shell: "python3 -c 'b = bytearray(400 << 20)'"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := e.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(cfg.Driver.Isolation().Limits.Memory, "cgroup") {
		return // the process was refused the memory, and that is all there is to say
	}
	if got.ExitCode != 137 || !got.OOM || got.Killed {
		t.Errorf("it ended as %+v", got)
	}
	if now := snap.Sandboxes[sb.ID]; now.Health != engine.Ready {
		t.Errorf("the sandbox is %s: %s", now.Health, now.Reason)
	}
}
