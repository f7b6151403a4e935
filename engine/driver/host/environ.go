//go:build linux

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx/engine"
)

// markerName is the variable by which processes of a data directory are found
// again when nothing else tells them from strangers.
const markerName = "SBX_BOX"

// newMark is what tells one start of a process from every other, of this
// engine and of earlier ones.
func newMark(box engine.SandboxID, id engine.ProcessID) string {
	return string(box) + "/" + string(id) + "/" + engine.NewID("")
}

// marker is the variable for a mark.
func (h *Host) marker(mark string) string { return markerName + "=" + h.tag + "/" + mark }

// allowed are the variables of the engine that a sandbox gets, with what they
// are where the engine has none.
var allowed = []struct{ name, otherwise string }{{"LANG", "C.UTF-8"}, {"TERM", "dumb"}, {"TZ", ""}}

// readEnv takes what every sandbox's environment begins with.
func (h *Host) readEnv(path []string) {
	h.env = []string{"PATH=" + strings.Join(path, ":")}
	for _, v := range allowed {
		value, ok := os.LookupEnv(v.name)
		if !ok || strings.ContainsRune(value, '\n') {
			value = v.otherwise
		}
		if value != "" {
			h.env = append(h.env, v.name+"="+value)
		}
	}
}

// environ is the environment of a launch: the allow-list, then its own, the
// later of a name winning.
func (b *box) environ(l launch, home, tmp string) []string {
	env := append(slices.Clone(b.host.env), "HOME="+home)
	if tmp != "" {
		env = append(env, "TMPDIR="+tmp)
	}
	for _, kv := range l.Env {
		name, _, _ := strings.Cut(kv, "=")
		if name == markerName {
			continue
		}
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, kv)
	}
	return env
}

// defaultPath is where programs are when the engine's own PATH says nothing.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// enginePath is the engine's PATH without what is relative or not there.
func enginePath() []string {
	value := os.Getenv("PATH")
	if value == "" {
		value = defaultPath
	}
	var dirs []string
	for _, dir := range filepath.SplitList(value) {
		dir = filepath.Clean(dir)
		if fi, err := os.Stat(dir); err == nil && fi.IsDir() && filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
