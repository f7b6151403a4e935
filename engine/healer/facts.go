package healer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/engine/healer/playbook"
)

// Bounds of the evidence as it is kept.
const (
	maxEvidenceLog   = 8 << 10
	maxEvidencePaths = 100
)

// tellEvidence records the evidence once per attempt, as a step of its own: for
// the screen in words, for scripts field by field.
func (h *heal) tellEvidence(ctx context.Context, ev playbook.Evidence) error {
	if h.id == "" || h.told > h.attempt.Number { // a chat has no run to record in
		return nil
	}
	h.told = h.attempt.Number + 1
	kept := evidence(ev)
	_, err := h.record(ctx, engine.Step{
		Kind: engine.StepNote, Name: "evidence", State: engine.StepOK, Text: strings.Join(facts(ev), "\n"), Evidence: &kept,
	})
	return err
}

// evidence is what is kept of the evidence: its fields, bounded.
func evidence(ev playbook.Evidence) engine.Evidence {
	kept := engine.Evidence{
		Process: ev.Process.Name, State: ev.Process.State, Log: bound(ev.Log, maxEvidenceLog), Exit: ev.Process.Exit,
		Usage: ev.Usage, Changed: firstOf(ev.Changed, maxEvidencePaths), EnvMissing: firstOf(ev.EnvMissing, maxEvidencePaths),
		Dependencies: ev.NoDependencies, Caches: ev.Caches, Corrupt: ev.State, Others: ev.Others, Tools: ev.Tools,
	}
	if ev.Process.Exit != nil {
		kept.Meaning = playbook.Meaning(*ev.Process.Exit)
	}
	if !ev.Probe.At.IsZero() || ev.Probe.Detail != "" {
		kept.Probe = &ev.Probe
	}
	if ev.Process.Port != 0 {
		kept.Holder = line(ev.Holder.String(), maxCause)
	}
	for _, m := range firstOf(ev.Missing, maxEvidencePaths) {
		kept.Missing = append(kept.Missing, line(m.Path, maxArgument))
	}
	for _, l := range ev.Locks {
		kept.Locks = append(kept.Locks, line(l.Path, maxArgument))
	}
	for _, d := range firstOf(ev.Denied, maxEvidencePaths) {
		kept.Denied = append(kept.Denied, line(d.Path, maxArgument))
	}
	return kept
}

func firstOf[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// facts are the evidence's single lines, for the brief.
func facts(ev playbook.Evidence) []string {
	var f []string
	say := func(format string, args ...any) { f = append(f, line(fmt.Sprintf(format, args...), 500)) }
	p := ev.Process
	say("signal: %s: %s", ev.Signal.Kind, ev.Signal.Observed)
	say("process %s: %s, wanted %s, started %d times", p.Name, p.State, p.Wanted, p.Starts)
	if p.Exit != nil {
		say("last exit: %s after %s", p.Exit, uptime(*p.Exit))
		if m := playbook.Meaning(*p.Exit); m != "" {
			say("that means: %s", m)
		}
	}
	if ev.Spec.App.Health != "" {
		switch {
		case ev.Probe.At.IsZero() && ev.Probe.Detail == "":
			say("GET %s: not tried, the app is down", ev.Spec.App.Health)
		case ev.Probe.OK:
			say("GET %s: healthy now", ev.Spec.App.Health)
		default:
			say("GET %s: %s", ev.Spec.App.Health, ev.Probe.Detail)
		}
	}
	if p.Port != 0 {
		say("port %d ($PORT) is held by: %s", p.Port, ev.Holder)
	}
	say("uses %s of memory in %d processes, %s of disk", ev.Usage.Memory, ev.Usage.Processes, ev.Usage.Disk)
	if ev.NoDependencies != "" {
		say("dependencies: %s", ev.NoDependencies)
	}
	if len(ev.EnvMissing) > 0 {
		say(".env lacks what .env.example has: %s", list(ev.EnvMissing))
	}
	for _, m := range firstOf(ev.Missing, 10) {
		say("missing file: %s (%s has it)", m.Path, m.Source())
	}
	for _, l := range ev.Locks {
		say("lock that the log names: %s", l.Path)
	}
	for _, d := range firstOf(ev.Denied, 10) {
		say("its mode keeps its owner from it: %s", d.Path)
	}
	for _, p := range ev.State {
		say("state of a supervisor that can't be read: %s", p)
	}
	if len(ev.Changed) > 0 {
		say("%s changed since it was last good", count(len(ev.Changed), "path has", "paths have"))
	}
	if ev.Others > 0 {
		say("%s in the sandbox", count(ev.Others, "other command runs", "other commands run"))
	}
	for _, name := range slices.Sorted(maps.Keys(ev.Tools)) {
		say("%s: %s", name, ev.Tools[name])
	}
	return f
}
