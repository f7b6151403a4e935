package engine

import (
	"slices"
	"testing"
)

func TestEveryStateIsReachedAndLeft(t *testing.T) {
	walk(t, "life", life, Cold, Gone)
	walk(t, "health", health, Unknown, Health(""))
}

// walk checks that every state of a machine is reachable from start, that each
// but last has a way out, and that no state has two ways for one trigger.
func walk[S, T ~string](t *testing.T, name string, m machine[S, T], start, last S) {
	t.Helper()
	states := map[S]bool{}
	ways := map[S]map[T]S{}
	for _, e := range m {
		states[e.to] = true
		for _, f := range e.from {
			states[f] = true
			if ways[f] == nil {
				ways[f] = map[T]S{}
			}
			if to, twice := ways[f][e.on]; twice {
				t.Errorf("%s: %s has two ways on %s: %s and %s", name, f, e.on, to, e.to)
			}
			ways[f][e.on] = e.to
		}
	}
	seen := map[S]bool{start: true}
	for todo := []S{start}; len(todo) > 0; todo = todo[1:] {
		for _, to := range ways[todo[0]] {
			if !seen[to] {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	for s := range states {
		if !seen[s] {
			t.Errorf("%s: %s can't be reached from %s", name, s, start)
		}
		if s != last && len(ways[s]) == 0 {
			t.Errorf("%s: %s has no way out", name, s)
		}
	}
}

func TestRunningAndHealingAreNeverEvicted(t *testing.T) {
	if to, err := Running.Next(Evict); AsCode(err) != Conflict || to != Running {
		t.Errorf("running on evict: got %s, %v, want a conflict", to, err)
	}
}

func TestARefusedStepReadsLikeASentence(t *testing.T) {
	_, err := Cold.Next(Begin)
	if got, want := err.Error(), "sandbox is cold: cannot begin"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyRunsThatEndLeaveHealing(t *testing.T) {
	var out []HealthTrigger
	for _, e := range health {
		if slices.Contains(e.from, Healing) {
			out = append(out, e.on)
		}
	}
	slices.Sort(out)
	want := []HealthTrigger{Cut, WentDown, GaveUp, Repaired}
	slices.Sort(want)
	if !slices.Equal(out, want) {
		t.Errorf("got %v, want %v", out, want)
	}
}
