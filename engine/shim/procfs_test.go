//go:build linux

package shim_test

import (
	"testing"

	"sbx/engine/shim"
)

func TestTheStatLineOfAnOddNameIsRead(t *testing.T) {
	line := "77 (a) R (b c) S 5 77 66 0 -1 0 0 0 0 0 7 8 0 0 20 0 3 0 4242 0 0"
	got, ok := shim.ParseStat(77, []byte(line))
	want := shim.Stat{PID: 77, Parent: 5, Session: 66, State: 'S', Threads: 3, Start: 4242, Ticks: 15}
	if !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, broken := range []string{"", "77", "77 (x", "77 (x)", "77 (x) ", "77 (x) S 1 2"} {
		if got, ok := shim.ParseStat(77, []byte(broken)); ok {
			t.Errorf("%q is read as %+v", broken, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("1 (init) S 0 1 1 0 -1 0 0 0 0 0 7 8 0 0 20 0 1 0 2 0 0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, ok := shim.ParseStat(1, data); ok && s.PID != 1 {
			t.Errorf("read as %+v", s)
		}
	})
}
