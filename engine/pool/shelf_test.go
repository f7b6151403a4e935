package pool

import (
	"context"
	"sync"

	"sbx/engine"
)

// shelf is archives that only count.
type shelf struct {
	mu     sync.Mutex
	kept   map[engine.SandboxID]bool
	saves  int
	from   []engine.SandboxID // whose were restored
	broken error              // of every Save
	remote bool
	source engine.ResumePath
}

// Save keeps a name.
func (s *shelf) Save(_ context.Context, sb engine.Sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saves++
	if s.broken == nil {
		s.kept[sb.ID] = true
	}
	return s.broken
}

// Restore finds a name.
func (s *shelf) Restore(_ context.Context, _ engine.Sandbox, from engine.SandboxID) (engine.ResumePath, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.kept[from] {
		return "", engine.Errorf(engine.NotFound, "no archive of %s", from)
	}
	s.from = append(s.from, from)
	if s.source != "" {
		return s.source, nil
	}
	return engine.PathLocal, nil
}

// Remote is what the test says.
func (s *shelf) Remote(context.Context, engine.SandboxID) bool { return s.remote }

// Drop forgets a name.
func (s *shelf) Drop(_ context.Context, id engine.SandboxID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, id)
	return nil
}
