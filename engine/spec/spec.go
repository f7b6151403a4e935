// Package spec reads and writes sbx.toml, which says what a sandbox should be.
//
// The one rule: a mistake is named with its file, line and key, and a key that
// isn't known is a mistake. A spec that was read is right in all its parts.
package spec

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"sbx/engine"
)

// File is the name of a spec in a workspace or template.
const File = "sbx.toml"

// maxFile is how large a spec may be: no sane one comes near.
const maxFile = 256 << 10

// Parse reads a spec. What it leaves out has the defaults of SPEC §3. file is
// what errors call it.
func Parse(file string, data []byte) (engine.Spec, error) {
	if len(data) > maxFile {
		return engine.Spec{}, engine.Errorf(engine.Invalid, "%s: the file is larger than %d KiB", file, maxFile>>10)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // as some editors begin a file
	var doc map[string]any
	if err := toml.Unmarshal(data, &doc); err != nil {
		return engine.Spec{}, syntaxError(file, err)
	}
	r := &reader{lines: lines(data)}
	s := r.spec(doc)
	if fault, ok := r.first(); ok {
		return engine.Spec{}, fault.in(file)
	}
	return s, nil
}

// syntaxError is a file that isn't TOML.
func syntaxError(file string, err error) error {
	at := file
	var where *toml.DecodeError
	if errors.As(err, &where) {
		row, _ := where.Position()
		at += ":" + strconv.Itoa(row)
	}
	return engine.Errorf(engine.Invalid, "%s: %s", at, strings.TrimPrefix(err.Error(), "toml: "))
}

// Format writes a spec as Parse reads it back. Every value is written, so that
// a spec means the same when defaults change.
func Format(s engine.Spec) []byte {
	doc := document{
		App: section(s.App),
		Limits: limits{
			Memory: size(s.Limits.Memory), CPU: s.Limits.CPU,
			Disk: size(s.Limits.Disk), Processes: s.Limits.Processes,
		},
		Heal: heal{Attempts: s.Heal.Attempts, Protected: s.Heal.Protected},
	}
	doc.App.Name = ""
	for _, p := range s.Processes {
		doc.Processes = append(doc.Processes, section(p))
	}
	b, err := toml.Marshal(doc)
	if err != nil {
		panic("spec: " + err.Error()) // strings and numbers always marshal
	}
	return b
}

// document is a spec in the order in which people read it.
type document struct {
	App       process   `toml:"app"`
	Processes []process `toml:"process,omitempty"`
	Limits    limits    `toml:"limits,omitempty"`
	Heal      heal      `toml:"heal"`
}

type process struct {
	Name         string            `toml:"name,omitempty"`
	Command      string            `toml:"command"`
	Port         int               `toml:"port,omitempty"`
	Health       string            `toml:"health,omitempty"`
	StartTimeout string            `toml:"start_timeout"`
	MaxRestarts  int               `toml:"max_restarts"`
	MinUptime    string            `toml:"min_uptime"`
	RestartDelay string            `toml:"restart_delay"`
	StopGrace    string            `toml:"stop_grace"`
	Install      string            `toml:"install,omitempty"`
	Check        string            `toml:"check,omitempty"`
	Env          map[string]string `toml:"env,inline,omitempty"`
}

type limits struct {
	Memory    string  `toml:"memory,omitempty"`
	CPU       float64 `toml:"cpu,omitempty"`
	Disk      string  `toml:"disk,omitempty"`
	Processes int     `toml:"processes,omitempty"`
}

type heal struct {
	Attempts  int      `toml:"attempts"`
	Protected []string `toml:"protected,omitempty"`
}

func section(p engine.ProcessSpec) process {
	return process{
		Name: p.Name, Command: p.Command, Port: p.Port, Health: p.Health,
		StartTimeout: p.StartTimeout.String(), MaxRestarts: p.MaxRestarts,
		MinUptime: p.MinUptime.String(), RestartDelay: p.RestartDelay.String(), StopGrace: p.StopGrace.String(),
		Install: p.Install, Check: p.Check, Env: p.Env,
	}
}

func size(s engine.Size) string {
	if s == 0 {
		return ""
	}
	return s.String()
}
