//go:build linux

package host

import (
	"sync"
	"time"

	"sbx/engine/shim"
)

// procTable is ReadProcs for many at once: a fleet's usage is one look.
type procTable struct {
	mu    sync.Mutex
	at    time.Time
	table map[int]shim.Stat
}

// tableAge is how old a look may be that is shared.
const tableAge = 500 * time.Millisecond

func (t *procTable) recent() map[int]shim.Stat {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table == nil || time.Since(t.at) > tableAge {
		t.table, t.at = shim.ReadProcs(), time.Now()
	}
	return t.table
}
