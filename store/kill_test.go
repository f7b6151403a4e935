package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sbx/engine"
)

// killDir names the directory that this test binary, run again, writes to
// until it is killed.
const killDir = "SBX_STORE_KILL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		writeUntilKilled(dir)
	}
	if err := makeSeed(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeUntilKilled makes sandboxes from many goroutines, and prints the number
// and id of each after it was acknowledged.
func writeUntilKilled(dir string) {
	s, err := Open(context.Background(), dir, Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for {
				sb := sampleSandbox(engine.NewID("n-"))
				if err := s.Update(context.Background(), func(tx *Tx) error { return tx.PutSandbox(&sb) }); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				fmt.Printf("%d %s\n", sb.Seq, sb.ID)
			}
		})
	}
	wg.Wait()
}

// killInMidWrite runs this binary until it has acknowledged n changes, kills
// it, and returns all that it acknowledged.
func killInMidWrite(t *testing.T, dir string, n int) map[engine.SandboxID]engine.Seq {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	acked := map[engine.SandboxID]engine.Seq{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		number, id, ok := strings.Cut(lines.Text(), " ")
		seq, err := strconv.Atoi(number)
		if ok && err == nil && len(id) == len(engine.NewID(engine.SandboxPrefix)) { // the last line may be cut
			acked[engine.SandboxID(id)] = engine.Seq(seq)
		}
		if len(acked) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended with %v", err)
	}
	if len(acked) < n {
		t.Fatalf("only %d changes were acknowledged", len(acked))
	}
	return acked
}

func TestEveryAcknowledgedChangeSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	acked := map[engine.SandboxID]engine.Seq{}
	for round := range 3 {
		for id, seq := range killInMidWrite(t, dir, 60) {
			acked[id] = seq
		}
		if fi, err := os.Stat(pathIn(dir) + "-wal"); err != nil || fi.Size() == 0 {
			t.Fatalf("the kill left no log, so this shows nothing: %v", err)
		}
		t.Run(fmt.Sprint("read-only ", round), func(t *testing.T) { checkAcked(t, openReader(t, dir), acked) })
		t.Run(fmt.Sprint("owned ", round), func(t *testing.T) { checkAcked(t, openStore(t, dir), acked) })
	}
}

// checkAcked looks for every change in the rows and in the journal, and for a
// gap in the journal's numbers.
func checkAcked(t *testing.T, s *Store, acked map[engine.SandboxID]engine.Seq) {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, seq := range acked {
		if sb, ok := snap.Sandboxes[id]; !ok || sb.Seq != seq {
			t.Errorf("change %d was acknowledged; its row is there: %t, at %d", seq, ok, sb.Seq)
		}
	}
	replayed := engine.NewSnapshot(engine.Position{Epoch: snap.Position.Epoch})
	for ev, err := range s.Events(t.Context(), 0) {
		if err != nil || ev.Seq != replayed.Position.Seq+1 {
			t.Fatalf("event %d after %d: %v", ev.Seq, replayed.Position.Seq, err)
		}
		if replayed.Apply(ev); ev.Seq == snap.Position.Seq {
			break
		}
	}
	if len(replayed.Sandboxes) != len(snap.Sandboxes) {
		t.Errorf("the journal tells of %d sandboxes, the rows of %d", len(replayed.Sandboxes), len(snap.Sandboxes))
	}
}
