package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	toml "github.com/pelletier/go-toml/v2"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// fault is one directory of the corpus: a workspace that works, what breaks
// it, and what should happen then.
type fault struct {
	What     string            `toml:"what"`
	From     string            `toml:"workspace"` // of testdata/workspaces; "": the directory's own
	Needs    []string          `toml:"needs"`     // programs
	Break    string            `toml:"break"`     // run in the sandbox, as its user would
	Hold     string            `toml:"hold"`      // who takes the app's port: "stranger", "own"
	Restart  bool              `toml:"restart"`   // the user restarts the app after breaking it
	Signal   engine.SignalKind `toml:"signal"`    // that must be raised
	Outcome  engine.Outcome    `toml:"outcome"`   // of the run
	FixedBy  string            `toml:"fixed_by"`  // a playbook, or "model"
	Changed  []string          `toml:"changed"`   // by the run
	Absent   []string          `toml:"absent"`    // files that a rollback must have removed
	Commit   bool              `toml:"commit"`    // the fix is committed
	Attempts int               `toml:"attempts"`  // of the model
	Says     string            `toml:"says"`      // what the run's story must have, in its evidence above all
	// Quiet: nothing may happen, and the app has been probed that often by then.
	Quiet int `toml:"quiet"`

	name, dir string
}

// atOnce is how many faults are broken and watched together: waiting is most of
// what each of them takes.
const atOnce = 5

// TestFaults breaks real dev servers and holds what happens against what each
// directory of the corpus says. They share an engine, as sandboxes do.
func TestFaults(t *testing.T) {
	faults := corpus(t)
	w := newWorld(t, scriptOfAll(t, faults))
	w.ok("create", "--template", "demo", "--name", "first") // the engine is up: nobody else has to start it
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, f := range faults {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(f.name, func(t *testing.T) {
				needCommand(t, append(f.Needs, "git")...)
				mine := *w
				mine.t, mine.app = t, f.name
				mine.breakAndWatch(f)
			})
		})
	}
	all.Wait()
}

// TestMostFaultsHealWithoutAModel counts: at least 60 % of those that can be
// healed must need no model.
func TestMostFaultsHealWithoutAModel(t *testing.T) {
	healed, free := 0, 0
	for _, f := range corpus(t) {
		if f.Outcome == engine.Healed {
			healed++
			if f.FixedBy != "model" {
				free++
			}
		}
	}
	t.Logf("%d of %d that heal need no model", free, healed)
	if healed < 20 || free*100 < healed*60 {
		t.Errorf("of %d faults that heal only %d need no model", healed, free)
	}
}

// corpus is every fault, in the order of its directories.
func corpus(t *testing.T) []fault {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*", "fault.toml"))
	if err != nil || len(files) < 25 {
		t.Fatalf("a corpus of %d faults: %v", len(files), err)
	}
	var faults []fault
	for _, file := range files {
		f := readFault(t, file)
		f.dir = filepath.Dir(file)
		f.name = filepath.Base(f.dir)
		faults = append(faults, f)
	}
	return faults
}

func readFault(t *testing.T, file string) fault {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f fault
	dec := toml.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return f
}

// scriptOfAll are the model's parts of all faults: each answers only requests
// about its own sandbox.
func scriptOfAll(t *testing.T, faults []fault) *agenttest.Script {
	t.Helper()
	all := agenttest.Script{}
	for _, f := range faults {
		s := scriptOf(t, f.dir)
		if s == nil {
			continue
		}
		for _, turn := range s.Turns {
			if turn.When != "" {
				t.Fatalf("%s: a turn can't choose its requests: its sandbox does", f.name)
			}
			turn.When = "The sandbox " + f.name + " needs repair"
			all.Turns = append(all.Turns, turn)
		}
	}
	return &all
}

// scriptOf is the model's part, if the fault needs one.
func scriptOf(t *testing.T, dir string) *agenttest.Script {
	t.Helper()
	r, err := os.Open(filepath.Join(dir, "model.json"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := agenttest.Load(r)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}
