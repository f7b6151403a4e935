//go:build linux

package shim

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// exitsDir is where a shim writes down the exits that no engine has taken note
// of yet, a file each: they outlive the shim, too.
const exitsDir = "exits"

// write writes an exit down, unless it was taken note of meanwhile.
func (s *server) write(h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h.state.ID] != h || !plainName(h.state.ID) {
		return
	}
	data, err := json.Marshal(h.state)
	if err == nil {
		err = writeAside(filepath.Join(s.dir, exitsDir, h.state.ID), data)
	}
	if err != nil {
		s.log.Warn("writing an exit down", "child", h.state.ID, "err", err) // it is in memory
	}
}

// forget lets go of a child whose exit was taken note of.
func (s *server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.held[id]; h != nil && h.state.Exit != nil {
		delete(s.held, id)
		s.unwrite(id)
	}
}

// unwrite removes what was written down of an exit.
func (s *server) unwrite(id string) {
	if plainName(id) {
		_ = os.Remove(filepath.Join(s.dir, exitsDir, id)) // it wasn't yet
	}
}

// plainName: an id becomes a file's name.
func plainName(id string) bool {
	return id != "" && len(id) < 100 && !strings.ContainsAny(id, "/.\x00")
}

func writeAside(name string, data []byte) error {
	err := os.WriteFile(name+".new", data, 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	return err
}

// Exits are what a shim that is gone has left to be told.
func Exits(dir string) ([]State, error) {
	entries, err := os.ReadDir(filepath.Join(dir, exitsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []State
	for _, e := range entries {
		var s State
		data, err := os.ReadFile(filepath.Join(dir, exitsDir, e.Name()))
		if err == nil && json.Unmarshal(data, &s) == nil && s.ID == e.Name() && s.Exit != nil {
			list = append(list, s)
		}
	}
	return list, err
}
