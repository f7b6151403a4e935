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

func TestASessionOfAReusedPidIsAStrangers(t *testing.T) {
	ours := shim.Stat{PID: 50, Start: 100}
	orphan := shim.Stat{PID: 51, Start: 101, Session: 50, Parent: 1}
	for _, c := range []struct {
		name  string
		table []shim.Stat
		want  int
	}{
		{"alive", []shim.Stat{ours, orphan, {PID: 52, Start: 102, Parent: 50}}, 3},
		{"gone, its orphan not", []shim.Stat{orphan}, 1},
		{"its pid used again", []shim.Stat{{PID: 50, Start: 900, Session: 50}, {PID: 51, Start: 901, Session: 50, Parent: 50}}, 0},
		{"older than it", []shim.Stat{{PID: 49, Start: 99, Session: 50}}, 0},
	} {
		table := map[int]shim.Stat{}
		for _, s := range c.table {
			table[s.PID] = s
		}
		if got := shim.Descendants(table, ours); len(got) != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := shim.Descendants(map[int]shim.Stat{2: {PID: 2}}, shim.Stat{}); len(got) != 0 {
		t.Errorf("of nobody: %+v", got)
	}
}
