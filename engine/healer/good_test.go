package healer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/store"
)

// TestGoodCheckpointsPushOutNobodyElses: what an operator asked for, and what a
// change is undone with, stays through any number of good checkpoints, with its
// content.
func TestGoodCheckpointsPushOutNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "as it was"})
		save := func(app string) string {
			t.Helper()
			b := r.box(id)
			b.mu.Lock()
			b.files["app.js"] = app
			b.mu.Unlock()
			tree, err := b.Checkpoints().Save(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			return tree
		}
		var mine []engine.Checkpoint
		for i := range 4 {
			mine = append(mine, engine.Checkpoint{ID: engine.CheckpointID(fmt.Sprint("cp-asked", i)), Sandbox: id, Manual: true, Tree: save("asked for")},
				engine.Checkpoint{
					ID: engine.CheckpointID(fmt.Sprint("cp-change", i)), Sandbox: id, Tree: save(fmt.Sprint("before ", i)),
					Change: &engine.FileChange{Words: "write app.js", After: save(fmt.Sprint("after ", i))},
				})
		}
		r.update(func(tx *store.Tx) error {
			for _, cp := range mine {
				if cp.Created = tx.Now; tx.PutCheckpoint(cp) != nil {
					t.Errorf("%s is not written", cp.ID)
				}
			}
			return nil
		})
		r.start()
		for i := range 6 {
			save(fmt.Sprintf("good %d", i))
			r.readyAgain(id)
		}
		good, kept := 0, map[engine.CheckpointID]bool{}
		for _, cp := range view(r, func(tx *store.Tx) ([]engine.Checkpoint, error) { return tx.Checkpoints(id) }) {
			if kept[cp.ID] = true; cp.Good {
				good++
			}
		}
		if good != 3 {
			t.Errorf("%d good ones are kept, want 3", good)
		}
		for _, cp := range mine {
			if !kept[cp.ID] {
				t.Errorf("%s is gone", cp.ID)
			}
			for _, tree := range treesOf([]engine.Checkpoint{cp}) {
				if _, err := r.box(id).Checkpoints().Diff(t.Context(), tree, mine[0].Tree); err != nil {
					t.Errorf("the content of %s: %v", cp.ID, err)
				}
			}
		}
	})
}

// readyAgain has a sandbox be ready anew, for long enough to be good.
func (r *rig) readyAgain(id engine.SandboxID) {
	r.t.Helper()
	for _, h := range []engine.Health{engine.Starting, engine.Ready} {
		r.change(id, func(sb *engine.Sandbox) { sb.Health, sb.HealthChanged = h, time.Now() })
		synctest.Wait()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}
