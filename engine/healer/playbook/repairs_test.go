package playbook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

func TestDamageCallsForItsRepair(t *testing.T) {
	exit := func(code int, log string) func(*Evidence) {
		return func(ev *Evidence) { ev.Log, ev.Process.Exit = log, &engine.Exit{Code: code} }
	}
	lockOf := func(log string, others int, locks ...Lock) func(*Evidence) {
		return func(ev *Evidence) { ev.Log, ev.Others, ev.Locks = log, others, locks }
	}
	gomod := func(log string) func(*Evidence) {
		return func(ev *Evidence) { ev.Log = log; ev.Manifests["go.mod"] = "module x" }
	}
	full := func(log string, caches ...string) func(*Evidence) {
		return func(ev *Evidence) { ev.Log, ev.Caches = log, caches }
	}
	for _, c := range []struct {
		name   string
		ev     Evidence
		first  string
		reason string
	}{
		{"node: syntax error in a package", base(node("/w/node_modules/greet/index.js:1\nfunction gre\n\n\nSyntaxError: Unexpected end of input\n    at wrapSafe")), "reinstall", "package greet is corrupt"},
		{"node: syntax error of its own", base(node("/w/server.js:1\nfunction gre\n\nSyntaxError: Unexpected end of input\n at /w/node_modules/x/y.js:3")), "", ""},
		{"node: other binary", base(node("The module '/w/node_modules/x/b.node' was compiled against a different Node.js version using")), "reinstall", "corrupt"},
		{"yarn: state", base(node("Usage Error: The project in package.json doesn't seem to have been installed - couldn't find the node_modules state file")), "reinstall", "lock file"},
		{"pnpm", base(node(" ERR_PNPM_OUTDATED_LOCKFILE  Cannot install")), "reinstall", "lock file"},
		{"a tool without its mode", base(exit(126, "sh: 1: node_modules/.bin/vite: Permission denied")), "reinstall", "corrupt"},
		{"python: syntax error in a module", base(python("  File \"/w/.venv/greet/__init__.py\", line 1\n    def gre\n    ^\nSyntaxError: invalid syntax")), "reinstall", "module greet is corrupt"},
		{"python: partly there", base(python("ImportError: cannot import name 'greet' from 'greet' (/w/.venv/greet/__init__.py)")), "reinstall", "partly"},
		{"python: the project's own", base(python("ImportError: cannot import name 'x' from 'app' (/w/app/__init__.py)")), "", ""},
		{"go: vendor", base(gomod("go: inconsistent vendoring in /w:")), "reinstall", "inconsistent vendoring"},
		{"go: not provided", base(gomod("main.go:3:8: no required module provides package x/y; to add it:")), "reinstall", "x/y"},
		{"dependencies on disk, while it runs", base(func(ev *Evidence) {
			ev.NoDependencies, ev.Process.State, ev.Spec.App.Health = "the package x is missing", engine.ProcessRunning, "/"
		}), "reinstall", "package x"},

		{"git's lock", base(lockOf("fatal: Unable to create '/w/.git/index.lock': File exists.", 0, Lock{Path: ".git/index.lock"})), "stale lock", ".git/index.lock is left"},
		{"git's lock while somebody works", base(lockOf("index.lock", 1, Lock{Path: ".git/index.lock"})), "restart", ""},
		{"its own pid file while somebody works", base(lockOf("server.pid", 1, Lock{Path: "tmp/pids/server.pid"})), "stale lock", "server.pid"},
		{"a lock of an app that answers", base(func(ev *Evidence) {
			ev.Locks, ev.Process.State, ev.Probe.OK = []Lock{{Path: "a.lock"}}, engine.ProcessRunning, true
		}), "restart", ""},

		{"unreadable", base(func(ev *Evidence) {
			ev.Log, ev.Denied = "PermissionError: [Errno 13] Permission denied: 'conf.json'", []Denied{{"conf.json", "r"}, {"d", "rx"}}
		}), "file modes", "conf.json can't be read by its own owner (and 1 more)"},
		{"a script that may not run", base(func(ev *Evidence) {
			exit(126, "sh: 1: ./start.sh: Permission denied")(ev)
			ev.Denied = []Denied{{"start.sh", "x"}}
		}), "file modes", "may not be executed"},
		{"unreadable, and nobody minds", base(func(ev *Evidence) { ev.Log, ev.Denied = "boom", []Denied{{"a", "r"}} }), "restart", ""},

		{"no more processes", base(logs("sh: 1: Cannot fork")), "runaway children", "Cannot fork"},
		{"node: no more processes", base(logs("Error: spawn /bin/sh EAGAIN")), "runaway children", "EAGAIN"},
		{"nearly all processes", base(func(ev *Evidence) { ev.Spec.Limits.Processes, ev.Usage.Processes = 100, 95 }), "runaway children", "95 processes of the 100"},

		{"disk full", base(full("Error: ENOSPC: no space left on device, write", ".cache")), "free disk", ".cache can be made again"},
		{"disk nearly at its limit", base(func(ev *Evidence) {
			ev.Caches, ev.Spec.Limits.Disk, ev.Usage.Disk = []string{".next/cache"}, 1000, 980
		}), "free disk", "of disk that it may"},
		{"disk full, no caches", base(full("No space left on device")), "restart", ""},
		{"watchers, not space", base(full("Error: ENOSPC: System limit for number of file watchers reached", ".cache")), "restart", ""},
		{"a bad cache", base(full("ImportError: bad magic number in 'app': b'x'", "__pycache__")), "corrupt cache", "bad magic number"},
		{"a bad bundler cache", base(full("SyntaxError: /w/.cache/b.json: Unexpected end of JSON input", ".cache")), "corrupt cache", ""},
		{"a word about a cache", base(full("cache miss: rebuilding", ".cache")), "restart", ""},

		{"supervisor state", base(func(ev *Evidence) { ev.State = []string{".pm2/dump.pm2"} }), "supervisor state", ".pm2/dump.pm2"},
		{"supervisor state of one that runs", base(func(ev *Evidence) {
			ev.State, ev.Process.State = []string{".pm2/dump.pm2"}, engine.ProcessRunning
		}), "restart", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, why, ok := Next(c.ev, map[string]bool{})
			got := ""
			if ok {
				got = p.Name()
			}
			if got != c.first || !strings.Contains(why, c.reason) {
				t.Errorf("%q because %q, want %q because …%s…", got, why, c.first, c.reason)
			}
		})
	}
}

func TestRepairsDoTheirPartAndRestart(t *testing.T) {
	ev := base(func(ev *Evidence) {
		ev.Locks, ev.Caches, ev.State = []Lock{{Path: "a.pid"}}, []string{".cache"}, []string{".pm2/dump.pm2"}
		ev.Denied = []Denied{{"b", "r"}, {"d", "rx"}, {"s", "x"}, {"c", "r"}}
	})
	for _, c := range []struct {
		p    Playbook
		want []string
	}{
		{lock{}, []string{"kill", "remove [a.pid]", "restart"}},
		{mode{}, []string{"allow rx [d]", "allow r [b c]", "allow x [s]", "restart"}},
		{children{}, []string{"kill", "restart"}},
		{disk{}, []string{"remove [.cache]", "restart"}},
		{cache{}, []string{"remove [.cache]", "restart"}},
		{state{}, []string{"aside .pm2/dump.pm2", "restart"}},
	} {
		for i := range c.want {
			d := &diary{fail: c.want[i]}
			if err := c.p.Apply(t.Context(), ev, d); err == nil {
				t.Errorf("%s hides that %s failed", c.p.Name(), c.want[i])
			}
			if diff := cmp.Diff(c.want[:i+1], d.did); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.p.Name(), diff)
			}
		}
	}
}

func TestACleanInstallRepairsWhatIsThere(t *testing.T) {
	locked := map[string]bool{"package-lock.json": true}
	for _, c := range []struct {
		shell string
		files map[string]bool
		want  string
	}{
		{"npm ci --offline", locked, "npm ci --offline"},
		{"npm install --no-audit", locked, "npm ci --no-audit"},
		{"npm i", nil, "rm -rf node_modules && npm i"},
		{"npm install express", locked, "npm install express"},
		{"npm install && npm run build", locked, "npm install && npm run build"},
		{"yarn", nil, "rm -rf node_modules && yarn"},
		{"yarn install --immutable", nil, "yarn install --immutable"},
		{"pnpm install --frozen-lockfile", nil, "pnpm install --force --frozen-lockfile"},
		{"uv sync", nil, "uv sync --reinstall"},
		{"pip install -r requirements.txt", nil, "pip install --force-reinstall -r requirements.txt"},
		{"go mod vendor", nil, "go mod vendor"},
		{"make deps", nil, "make deps"},
	} {
		if got := CleanInstall(c.shell, c.files); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.shell, got, c.want)
		}
	}
}

func TestOnlyLeftoversCountAsLocks(t *testing.T) {
	for _, c := range []struct {
		name, content string
		want          bool
	}{
		{".git/index.lock", "DIRC", true},
		{".git/config", "", false},
		{"tmp/pids/server.pid", "4711\n", true},
		{"server.pid", "my notes", false},
		{".next/dev/lock", "", true},
		{".next/dev/lock", `{"pid":1,"port":3000}`, true},
		{"yarn.lock", "", false},
		{"sub/poetry.lock", "1", false},
		{"a.lock", "version = 1", false},
	} {
		if got := IsLock(c.name, c.content); got != c.want {
			t.Errorf("%s with %q: %v", c.name, c.content, got)
		}
	}
	got := LockNames("Unable to create '/w/.git/index.lock': File exists.\nremove tmp/pids/server.pid. Also yarn.lock, block, unlock; .next/dev/lock")
	if diff := cmp.Diff([]string{"/w/.git/index.lock", "tmp/pids/server.pid", ".next/dev/lock"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestALogNamesWhatWasDenied(t *testing.T) {
	got := DeniedNames("sh: 1: ./start.sh: Permission denied\nError: EACCES: permission denied, open '/w/conf/a.json'\nError: spawn bin/x EACCES\n/bin/sh: line 1: run.sh: Permission denied")
	if diff := cmp.Diff([]string{"start.sh", "/w/conf/a.json", "bin/x", "run.sh"}, got); diff != "" {
		t.Error(diff)
	}
}
