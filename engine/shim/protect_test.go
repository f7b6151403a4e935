//go:build linux

package shim

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func scoreOf(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(oomFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// What spares this process when memory runs out is not inherited by what it
// starts: a sandbox that could not be ended would take the host with it.
func TestProtectionIsNotInherited(t *testing.T) {
	before := scoreOf(t)
	if err := Protect(-500); err != nil {
		t.Logf("nothing can be protected here: %v", err)
		return
	}
	defer func() {
		if err := os.WriteFile(oomFile, []byte(before), 0); err != nil {
			t.Error(err)
		}
		protection.known = false
	}()
	s, err := startSpawner(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	pid, err := s.spawn("/bin/cat", []string{"cat", oomFile}, &syscall.ProcAttr{Files: []uintptr{0, w.Fd(), 2}}, nil)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var said [16]byte
	n, err := r.Read(said[:])
	if err != nil || strings.TrimSpace(string(said[:n])) != "0" {
		t.Errorf("a child was born with %q, %v", said[:n], err)
	}
	if now := scoreOf(t); now != "-500" {
		t.Errorf("this process has %s now", now)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Error(err)
	}
}
