package healer

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/healer/playbook"
)

// Bounds of the look at damage.
const (
	maxDenied = 200
	maxCaches = 200
	maxDirect = 200 // dependencies that a package.json names
)

// damage is what of the evidence lies in the files: gathered in one walk, and
// a look at the few places that the log names.
type damage struct {
	h  *heal
	ev *playbook.Evidence
	// named are paths in the log that may not be used.
	named map[string]bool
}

func (h *heal) newDamage(ev *playbook.Evidence) *damage {
	d := &damage{h: h, ev: ev, named: map[string]bool{}}
	for _, name := range playbook.DeniedNames(ev.Log) {
		if p, ok := h.inWorkspace(name); ok {
			d.named[p] = true
		}
	}
	return d
}

// inWorkspace is a path that a log names as one of the workspace.
func (h *heal) inWorkspace(name string) (string, bool) {
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(h.box.Location(), "/")+"/"); ok {
		name = rest
	}
	p := path.Clean(name)
	return p, !path.IsAbs(p) && p != "." && p != ".." && !strings.HasPrefix(p, "../")
}

// see takes note of one entry of the walk.
func (d *damage) see(name string, fi engine.FileInfo) {
	base, perm := path.Base(name), fi.Mode.Perm()
	switch {
	case fi.Mode.IsDir():
		if playbook.AnyCaches[base] && len(d.ev.Caches) < maxCaches {
			d.ev.Caches = append(d.ev.Caches, name)
		}
		if perm&0o500 != 0o500 {
			d.deny(name, "rx")
		}
	case fi.Mode.IsRegular():
		if perm&0o400 == 0 {
			d.deny(name, "r")
		}
		if d.named[name] && perm&0o100 == 0 {
			d.deny(name, "x")
		}
	}
}

func (d *damage) deny(name, lacks string) {
	if len(d.ev.Denied) < maxDenied {
		d.ev.Denied = append(d.ev.Denied, playbook.Denied{Path: name, Lacks: lacks})
	}
}

// end looks at what no walk enters.
func (d *damage) end(ctx context.Context) {
	d.scripts(ctx)
	for _, name := range playbook.RootCaches {
		if _, ok := d.entry(ctx, name); ok {
			d.ev.Caches = append(d.ev.Caches, name)
		}
	}
	d.ev.Caches = d.h.untracked(ctx, d.ev.Caches)
	d.locks(ctx)
	d.state(ctx)
}

// scripts keeps of what lacks the right to be executed only what is a script:
// what can't be opened for another reason is no program.
func (d *damage) scripts(ctx context.Context) {
	d.ev.Denied = slices.DeleteFunc(d.ev.Denied, func(one playbook.Denied) bool {
		if one.Lacks != "x" {
			return false
		}
		f, err := d.h.box.Files().ReadFile(ctx, one.Path, 0, 2)
		return err != nil || string(f.Data) != "#!"
	})
}

// entry is a file as its directory shows it.
func (d *damage) entry(ctx context.Context, name string) (engine.FileInfo, bool) {
	list, err := d.h.box.Files().ReadDir(ctx, path.Dir(name))
	if err != nil {
		return engine.FileInfo{}, false
	}
	i := slices.IndexFunc(list, func(fi engine.FileInfo) bool { return path.Base(fi.Name) == path.Base(name) })
	if i < 0 {
		return engine.FileInfo{}, false
	}
	return list[i], true
}

// locks finds those that the log names.
func (d *damage) locks(ctx context.Context) {
	for _, name := range playbook.LockNames(d.ev.Log) {
		p, ok := d.h.inWorkspace(name)
		if !ok {
			continue
		}
		places := []string{p}
		if !strings.Contains(name, "/") {
			places = places[:0]
			for _, dir := range playbook.LockDirs {
				places = append(places, path.Join(dir, p))
			}
		}
		for _, place := range places {
			d.lock(ctx, place)
		}
	}
}

func (d *damage) lock(ctx context.Context, name string) {
	fi, ok := d.entry(ctx, name)
	if !ok || slices.ContainsFunc(d.ev.Locks, func(l playbook.Lock) bool { return l.Path == name }) {
		return
	}
	switch {
	case fi.Mode.Type() == fs.ModeSocket:
		d.ev.Locks = append(d.ev.Locks, playbook.Lock{Path: name, Socket: true})
	case fi.Mode.IsRegular():
		content := ""
		if fi.Size > 0 && !strings.HasPrefix(name, ".git/") {
			f, err := d.h.box.Files().ReadFile(ctx, name, 0, 512)
			if err != nil {
				return
			}
			content = string(f.Data)
		}
		if playbook.IsLock(name, content) && len(d.h.untracked(ctx, []string{name})) > 0 {
			d.ev.Locks = append(d.ev.Locks, playbook.Lock{Path: name})
		}
	}
}

// state finds what a supervisor keeps and can't read: no JSON any more.
func (d *damage) state(ctx context.Context) {
	for _, dir := range playbook.StateDirs {
		if !strings.Contains(d.ev.Log, dir) {
			continue
		}
		list, err := d.h.box.Files().ReadDir(ctx, dir)
		if err != nil {
			continue
		}
		for _, fi := range list {
			name := path.Join(dir, path.Base(fi.Name))
			if !fi.Mode.IsRegular() || !playbook.IsState(name) || !playbook.Names(d.ev.Log, name) {
				continue
			}
			f, err := d.h.box.Files().ReadFile(ctx, name, 0, 0)
			if err == nil && !json.Valid(f.Data) {
				d.ev.State = append(d.ev.State, name)
			}
		}
	}
}

// untracked are the paths of which git keeps nothing: what is in a commit is a
// person's, whatever it is called. Git runs confined.
func (h *heal) untracked(ctx context.Context, paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	shell := "git --no-optional-locks --literal-pathspecs -c core.fsmonitor=false -c core.hooksPath=/dev/null ls-files -z --"
	for _, p := range paths {
		shell += " " + quote(p)
	}
	cmd := h.command(shell, driver.ProfileAgent)
	cmd.Env = map[string]string{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}
	out := newPipe(1 << 20)
	exit, err := h.execInto(ctx, cmd, h.p.UndoTimeout, out)
	list, whole := out.whole()
	if err != nil || !whole {
		return nil
	}
	if exit.Code != 0 {
		return paths // no repository, no git
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		for kept := range strings.SplitSeq(list, "\x00") {
			if kept == p || strings.HasPrefix(kept, p+"/") {
				return true
			}
		}
		return false
	})
}

// noDependencies says what of the installed dependencies is missing or damaged
// for a project that names some; "" if nothing is known to be.
func (h *heal) noDependencies(ctx context.Context, ev *playbook.Evidence) string {
	var pkg struct {
		Dependencies    map[string]string `json:"dependencies"`
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if json.Unmarshal([]byte(ev.Manifests["package.json"]), &pkg) != nil || len(pkg.Dependencies)+len(pkg.DevDependencies) == 0 {
		return h.noVenv(ctx, ev)
	}
	list, err := h.box.Files().ReadDir(ctx, "node_modules")
	switch {
	case engine.AsCode(err) == engine.NotFound:
		return "node_modules is missing"
	case err == nil && len(list) == 0:
		return "node_modules is empty"
	case err != nil || slices.ContainsFunc(list, func(fi engine.FileInfo) bool { return path.Base(fi.Name) == ".pnp.cjs" }):
		return ""
	}
	seen := 0
	for name := range pkg.Dependencies {
		if seen++; seen > maxDirect {
			break
		}
		if why := h.brokenPackage(ctx, list, name); why != "" {
			return why
		}
	}
	return ""
}

// brokenPackage says that a package which package.json names is not there or
// lacks what every package has.
func (h *heal) brokenPackage(ctx context.Context, installed []engine.FileInfo, name string) string {
	top, _, _ := strings.Cut(name, "/")
	i := slices.IndexFunc(installed, func(fi engine.FileInfo) bool { return path.Base(fi.Name) == top })
	if i < 0 {
		return "the package " + line(name, 100) + " is not installed"
	}
	if installed[i].Target != "" || strings.HasPrefix(name, "@") {
		return "" // a link is followed by node alone; scopes are left to the log
	}
	f, err := h.box.Files().ReadFile(ctx, path.Join("node_modules", name, "package.json"), 0, maxManifest)
	switch {
	case engine.AsCode(err) == engine.NotFound:
		return "the package " + line(name, 100) + " is only partly there"
	case err == nil && len(f.Data) < maxManifest && !json.Valid(f.Data):
		return "the package " + line(name, 100) + " is corrupt"
	}
	return ""
}

// noVenv: the environment that install makes is not there, or its interpreter
// leads nowhere.
func (h *heal) noVenv(ctx context.Context, ev *playbook.Evidence) string {
	install := ev.Spec.App.Install
	if !strings.Contains(install, ".venv") && !strings.Contains(install, "uv sync") {
		return ""
	}
	list, err := h.box.Files().ReadDir(ctx, ".venv")
	switch {
	case engine.AsCode(err) == engine.NotFound:
		return ".venv is missing"
	case err == nil && len(list) == 0:
		return ".venv is empty"
	}
	return ""
}
