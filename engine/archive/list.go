package archive

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"sbx/engine"
)

func encode(m Manifest) ([]byte, error) { return json.MarshalIndent(m, "", "\t") }

// List are the archives that are known here: of one sandbox, or all.
func (k *Keeper) List(id engine.SandboxID) ([]engine.Archive, error) {
	all, err := k.list()
	if err != nil {
		return nil, err
	}
	var list []engine.Archive
	for _, m := range all {
		if id != "" && m.Sandbox != id {
			continue
		}
		a := m.archive(k.Remote != nil)
		if a.Pending {
			k.queue.about(&a)
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b engine.Archive) int { return strings.Compare(string(a.Sandbox), string(b.Sandbox)) })
	return list, nil
}

// Levels are the archives in numbers.
func (k *Keeper) Levels() (l engine.ArchiveLevels, err error) {
	k.levels.mu.Lock()
	defer k.levels.mu.Unlock()
	if !k.levels.stale.Swap(false) && k.levels.counted {
		return k.levels.last, nil
	}
	defer func() { k.levels.last, k.levels.counted = l, err == nil }()
	list, err := k.List("")
	for _, a := range list {
		if a.Local {
			l.Local++
			l.Bytes += a.Size
		}
		if a.Remote {
			l.Remote++
		}
		if a.Pending {
			l.Pending++
		}
		if a.Failure != "" {
			l.Failing++
		}
	}
	return l, err
}

// levels are the numbers as they were counted last.
type levels struct {
	stale atomic.Bool // something changed since

	mu      sync.Mutex
	last    engine.ArchiveLevels
	counted bool
}

// Uploaded reports whether the remote archive is of the last Save.
func (k *Keeper) Uploaded(id engine.SandboxID) bool {
	m, err := k.manifest(id)
	return err == nil && m.Uploaded != "" && m.Uploaded == m.SHA256
}
