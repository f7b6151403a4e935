package healer

import (
	"context"
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
	h.gatherTools(ctx, &ev)
	if ctx.Err() != nil {
		return ev, context.Cause(ctx)
	}
	return ev, h.tellEvidence(ctx, ev)
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
		if err != nil {
			return err
		}
		all, err := tx.ProcessesOf(h.sb.ID)
		for _, p := range all {
			if p.Once() && p.State.Alive() {
				ev.Others++
			}
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
	ev.Lockfiles = map[string]bool{}
	if f, err := files.ReadFile(ctx, "package-lock.json", 0, 1); err == nil && f.Name != "" {
		ev.Lockfiles["package-lock.json"] = true
	}
	ev.NoDependencies = h.noDependencies(ctx, ev)
	there := map[string]bool{}
	d := h.newDamage(ev)
	err := files.Walk(ctx, ".", func(name string, fi engine.FileInfo) bool {
		there[path.Clean(name)] = true
		d.see(path.Clean(name), fi)
		if !fi.Mode.IsDir() && len(ev.Tree) < maxTree {
			ev.Tree = append(ev.Tree, line(name, maxArgument))
		}
		return len(there) >= 100_000
	})
	h.missed(ctx, "files", err)
	d.end(ctx)
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
