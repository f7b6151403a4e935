package spec

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"sbx/engine"
)

// The keys of each table, in the order of SPEC §3.
var (
	rootKeys    = []string{"app", "process", "limits", "heal"}
	appKeys     = []string{"command", "port", "health", "start_timeout", "max_restarts", "min_uptime", "restart_delay", "stop_grace", "install", "check", "env"}
	processKeys = append([]string{"name"}, appKeys...)
	limitKeys   = []string{"memory", "cpu", "disk", "processes"}
	healKeys    = []string{"attempts", "protected"}
)

// The most that a spec may ask for.
const (
	maxProcesses   = 64
	maxRestarts    = 1000
	maxAttempts    = 20
	maxThreads     = 1 << 22 // as the kernel's pid_max
	maxCommand     = 32 << 10
	maxHealth      = 1024
	maxProcessName = 32
)

func (r *reader) spec(doc map[string]any) engine.Spec {
	root := r.table("", doc, rootKeys...)
	s := engine.Spec{
		App:       r.process("app", r.table("app", root["app"], appKeys...)),
		Processes: r.processes(root["process"]),
		Limits:    r.limits(r.table("limits", root["limits"], limitKeys...)),
		Heal:      r.heal(r.table("heal", root["heal"], healKeys...)),
	}
	r.distinct(s)
	return s
}

func (r *reader) process(at string, t map[string]any) engine.ProcessSpec {
	return engine.ProcessSpec{
		Command:      r.command(at+".command", t["command"]),
		Port:         r.number(at+".port", t["port"], 0, 0, 65535),
		Health:       r.health(at+".health", t["health"]),
		StartTimeout: r.duration(at+".start_timeout", t["start_timeout"], engine.DefaultStartTimeout, 1),
		MaxRestarts:  r.number(at+".max_restarts", t["max_restarts"], engine.DefaultMaxRestarts, 0, maxRestarts),
		MinUptime:    r.duration(at+".min_uptime", t["min_uptime"], engine.DefaultMinUptime, 0),
		RestartDelay: r.duration(at+".restart_delay", t["restart_delay"], engine.DefaultRestartDelay, 0),
		StopGrace:    r.duration(at+".stop_grace", t["stop_grace"], engine.DefaultStopGrace, 0),
		Install:      r.shell(at+".install", t["install"]),
		Check:        r.shell(at+".check", t["check"]),
		Env:          r.env(at+".env", t["env"]),
	}
}

func (r *reader) processes(v any) []engine.ProcessSpec {
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	switch {
	case !ok:
		r.fail("process", "must be [[process]], once for each, not %s", kind(v))
	case len(list) > maxProcesses:
		r.fail("process", "there are %d, and may be %d", len(list), maxProcesses)
		return nil
	}
	var out []engine.ProcessSpec
	for i, e := range list {
		at := "process." + strconv.Itoa(i)
		t := r.table(at, e, processKeys...)
		p := r.process(at, t)
		p.Name = r.name(at+".name", t["name"])
		out = append(out, p)
	}
	return out
}

// shell is a command line; blank ones are none.
func (r *reader) shell(at string, v any) string {
	s := r.text(at, v)
	if len(s) > maxCommand {
		r.fail(at, "is longer than %d KiB: put it into a script", maxCommand>>10)
	}
	return strings.TrimSpace(s)
}

func (r *reader) command(at string, v any) string {
	s := r.shell(at, v)
	if _, isText := v.(string); s == "" && (v == nil || isText) {
		r.missing(at, `say what to run, as in command = "npm start"`)
	}
	return s
}

func (r *reader) health(at string, v any) string {
	s := r.text(at, v)
	switch {
	case s == "":
	case !strings.HasPrefix(s, "/"):
		r.fail(at, "%q must begin with a slash: it is a path on the port", s)
	case len(s) > maxHealth:
		r.fail(at, "is longer than %d bytes", maxHealth)
	case strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) || c == '#' }):
		r.fail(at, "%q has characters that a path in a request can't have", s)
	}
	return s
}

// name is that of a further process: it becomes part of file names and of
// lines in logs.
func (r *reader) name(at string, v any) string {
	s := r.text(at, v)
	switch {
	case v == nil || s == "":
		r.missing(at, "a further process needs a name")
	case s == engine.AppName:
		r.fail(at, "%q is the app's own", s)
	case len(s) > maxProcessName || !isWord(s):
		r.fail(at, "%q can't be a name: use up to %d letters, digits, - and _, a letter or digit first", s, maxProcessName)
	}
	return s
}

func isWord(s string) bool {
	for i, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return s != ""
}

func (r *reader) env(at string, v any) map[string]string {
	t, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			r.fail(at, "must be a table, not %s", kind(v))
		}
		return nil
	}
	env := make(map[string]string, len(t))
	for _, k := range slices.Sorted(maps.Keys(t)) {
		key := at + "." + k
		switch {
		case k == "PORT":
			r.fail(key, "is set by the engine: use port")
		case !isVariable(k):
			r.fail(key, "%q can't be a variable's name", k)
		}
		env[k] = r.text(key, t[k])
	}
	return env
}

func isVariable(s string) bool {
	for i, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (r *reader) limits(t map[string]any) engine.Limits {
	return engine.Limits{
		Memory:    r.size("limits.memory", t["memory"], 4*engine.MiB),
		CPU:       r.cores("limits.cpu", t["cpu"]),
		Disk:      r.size("limits.disk", t["disk"], engine.MiB),
		Processes: r.number("limits.processes", t["processes"], 0, 0, maxThreads),
	}
}

func (r *reader) heal(t map[string]any) engine.HealSpec {
	h := engine.HealSpec{Attempts: r.number("heal.attempts", t["attempts"], engine.DefaultAttempts, 0, maxAttempts)}
	for _, p := range r.texts("heal.protected", t["protected"]) {
		h.Protected = append(h.Protected, r.protected(p))
	}
	return h
}

// protected is a path inside the workspace.
func (r *reader) protected(p string) string {
	const at = "heal.protected"
	clean := path.Clean(p)
	switch {
	case p == "":
		r.fail(at, "has an empty path")
	case path.IsAbs(p), clean == "..", strings.HasPrefix(clean, "../"):
		r.fail(at, "%q is outside: name paths relative to the workspace", p)
	case clean == ".":
		r.fail(at, "%q is everything: for a healer that writes nothing, set attempts = 0", p)
	case strings.Contains(p, "*"):
		r.fail(at, "%q is a pattern: name the directory or file itself", p)
	case strings.ContainsFunc(p, unicode.IsControl):
		r.fail(at, "%q has control characters", p)
	}
	return clean
}

// distinct checks what must differ between processes.
func (r *reader) distinct(s engine.Spec) {
	names, ports := map[string]bool{}, map[int]bool{s.App.Port: s.App.Port != 0}
	for i, p := range s.Processes {
		at := "process." + strconv.Itoa(i)
		if p.Name != "" && names[p.Name] {
			r.fail(at+".name", "there are two processes called %q", p.Name)
		}
		if p.Port != 0 && ports[p.Port] {
			r.fail(at+".port", "port %d is another process's, too", p.Port)
		}
		names[p.Name], ports[p.Port] = true, true
	}
}
