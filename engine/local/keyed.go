package local

import (
	"sync"

	"sbx/engine"
)

// turns lets one at a time be at work on a sandbox. The zero value works.
type turns struct {
	mu   sync.Mutex
	held map[engine.SandboxID]*turn
}

type turn struct {
	sync.Mutex
	wanted int // who has it or waits; guarded by turns.mu
}

// lock waits for its turn, and returns what ends it.
func (t *turns) lock(id engine.SandboxID) (unlock func()) {
	t.mu.Lock()
	if t.held == nil {
		t.held = map[engine.SandboxID]*turn{}
	}
	mine := t.held[id]
	if mine == nil {
		mine = &turn{}
		t.held[id] = mine
	}
	mine.wanted++
	t.mu.Unlock()
	mine.Lock()
	return func() {
		mine.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.wanted--; mine.wanted == 0 {
			delete(t.held, id)
		}
	}
}
