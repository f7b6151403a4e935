package healer

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/engine/healer/playbook"
	"sbx/store"
)

// Bounds of the evidence.
const (
	logRead     = 256 << 10 // of the log, to take its beginning and end from
	logKept     = 24 << 10
	patchKept   = 12 << 10
	maxTree     = 300
	maxMissing  = 50
	maxManifest = 64 << 10
)

// manifests are the files that name dependencies.
var manifests = []string{
	"package.json", "requirements.txt", "requirements-dev.txt", "pyproject.toml", "Pipfile", "setup.cfg", "go.mod",
}

// gather is everything that is known of the sandbox now. What can't be had is
// left empty: half of the evidence is better than none.
func (h *heal) gather(ctx context.Context) (playbook.Evidence, error) {
	ev := playbook.Evidence{
		Name: h.sb.Name, Spec: h.sb.Spec, Signal: h.sig, Good: h.good, Undoable: h.track != nil,
	}
	h.learnSecrets(ctx)
	if err := h.readRows(ctx, &ev); err != nil {
		return ev, err
	}
	if ev.Process.ID != "" && h.LogTail != nil {
		log, err := h.LogTail(ctx, ev.Process.ID, engine.LogPosition(ev.Process.LogStart), logRead)
		h.missed(ctx, "log", err)
		ev.Log = bound(clean(h.redact(log)), logKept)
	}
	if h.sb.Spec.App.Health != "" && ev.Process.State.Alive() {
		ev.Probe = h.Probe(ctx, h.now)
		ev.Probe.Detail = line(h.redact(ev.Probe.Detail), maxCause)
	}
	if ev.Process.Port != 0 {
		hold, err := h.box.PortHolder(ctx, ev.Process.Port)
		h.missed(ctx, "port holder", err)
		ev.Holder = playbook.Holder{Held: hold.Held, Own: hold.Own, Live: hold.Live, PID: hold.PID, Name: line(hold.Name, 60)}
	}
	usage, err := h.box.Usage(ctx)
	h.missed(ctx, "usage", err)
	ev.Usage = usage
	h.gatherFiles(ctx, &ev)
	if ctx.Err() != nil {
		return ev, context.Cause(ctx)
	}
	return ev, nil
}

// missed notes in the engine's log what evidence could not be had.
func (h *heal) missed(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		h.Log.Debug("evidence", "missing", what, "sandbox", h.sb.ID, "run", h.id, "err", err)
	}
}

// readRows finds the process in question: the one that the signal names, if it
// is a supervised one, else the app.
func (h *heal) readRows(ctx context.Context, ev *playbook.Evidence) error {
	list, err := h.processes(ctx)
	if err != nil {
		return err
	}
	err = h.Store.View(ctx, func(tx *store.Tx) error {
		app, ok, err := appOf(tx, h.sb.ID, engine.AppName)
		if ok {
			ev.Process = app
		}
		return err
	})
	for _, p := range list {
		if p.ID == h.sig.Process {
			ev.Process = p
		}
	}
	return err
}

func (h *heal) gatherFiles(ctx context.Context, ev *playbook.Evidence) {
	files := h.box.Files()
	ev.Manifests = map[string]string{}
	for _, name := range manifests {
		if f, err := files.ReadFile(ctx, name, 0, maxManifest); err == nil {
			ev.Manifests[name] = string(f.Data)
		}
	}
	ev.EnvMissing = h.envMissing(ctx)
	ev.NoDependencies = h.noDependencies(ctx, ev.Manifests)
	there := map[string]bool{}
	err := files.Walk(ctx, ".", func(name string, fi engine.FileInfo) bool {
		there[path.Clean(name)] = true
		if !fi.Mode.IsDir() && len(ev.Tree) < maxTree {
			ev.Tree = append(ev.Tree, line(name, maxArgument))
		}
		return len(there) >= 100_000
	})
	h.missed(ctx, "files", err)
	if h.track == nil || err != nil {
		return
	}
	h.gatherChanges(ctx, ev, there)
}

// gatherChanges finds what differs from the last good checkpoint, and what is
// missing that it or git has.
func (h *heal) gatherChanges(ctx context.Context, ev *playbook.Evidence, there map[string]bool) {
	add := func(p, tree string) {
		known := slices.ContainsFunc(ev.Missing, func(m playbook.Missing) bool { return m.Path == p })
		if !there[path.Clean(p)] && !strings.HasSuffix(p, "/") && !known && len(ev.Missing) < maxMissing {
			ev.Missing = append(ev.Missing, playbook.Missing{Path: p, Tree: tree})
		}
	}
	dirty, ok, _, err := h.box.Checkpoints().Dirty(ctx)
	h.missed(ctx, "dirty paths", err)
	if ok && err == nil {
		for _, p := range dirty {
			add(p, "")
		}
	}
	if h.good.Tree == "" {
		return
	}
	d, err := h.box.Checkpoints().Diff(ctx, h.good.Tree, h.track.last)
	if err != nil {
		h.missed(ctx, "changes", err)
		return
	}
	ev.Changed = d.Changes
	ev.Patch = bound(clean(h.redact(d.Patch)), patchKept)
	for _, c := range d.Changes {
		if c.Status == engine.Deleted {
			add(c.Path, h.good.Tree)
		}
	}
}

// envMissing are the names that .env.example has and .env lacks.
func (h *heal) envMissing(ctx context.Context) []string {
	example, err := h.box.Files().ReadFile(ctx, ".env.example", 0, maxManifest)
	if err != nil {
		return nil
	}
	have := map[string]bool{}
	if env, err := h.box.Files().ReadFile(ctx, ".env", 0, maxManifest); err == nil {
		for _, name := range envNames(string(env.Data)) {
			have[name] = true
		}
	}
	var lacks []string
	for _, name := range envNames(string(example.Data)) {
		if _, set := h.sb.Spec.App.Env[name]; !have[name] && !set && name != "PORT" {
			lacks = append(lacks, name)
		}
	}
	return lacks
}

// envNames are the names that a dotenv file sets; never their values.
func envNames(text string) []string {
	var names []string
	for l := range strings.Lines(text) {
		l = strings.TrimPrefix(strings.TrimSpace(l), "export ")
		name, _, ok := strings.Cut(l, "=")
		if name = strings.TrimSpace(name); ok && name != "" && !strings.ContainsAny(name, "# \t'\"") {
			names = append(names, line(name, 80))
		}
	}
	return names
}

// noDependencies says that the directory of installed dependencies is missing
// or empty, for a project that names some.
func (h *heal) noDependencies(ctx context.Context, have map[string]string) string {
	pkg := have["package.json"]
	if !strings.Contains(pkg, `"dependencies"`) && !strings.Contains(pkg, `"devDependencies"`) {
		return ""
	}
	list, err := h.box.Files().ReadDir(ctx, "node_modules")
	switch {
	case engine.AsCode(err) == engine.NotFound:
		return "node_modules is missing"
	case err == nil && len(list) == 0:
		return "node_modules is empty"
	}
	return ""
}

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
	for _, m := range ev.Missing[:min(len(ev.Missing), 10)] {
		say("missing file: %s (%s has it)", m.Path, m.Source())
	}
	return f
}
