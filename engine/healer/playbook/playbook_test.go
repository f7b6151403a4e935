package playbook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// base is an app with an install command that gave up.
func base(change func(ev *Evidence)) Evidence {
	ev := Evidence{
		Spec:      engine.Spec{App: engine.ProcessSpec{Command: "run", Install: "install"}},
		Signal:    engine.Signal{Kind: engine.ExitSignal},
		Process:   engine.Process{Name: engine.AppName, State: engine.ProcessFailed, Port: 4000, Exits: make([]engine.Exit, 2)},
		Manifests: map[string]string{},
		Undoable:  true,
	}
	change(&ev)
	return ev
}

func logs(text string) func(*Evidence) { return func(ev *Evidence) { ev.Log = text } }

func node(text string) func(*Evidence) {
	return func(ev *Evidence) {
		ev.Log = text
		ev.Manifests["package.json"] = `{"dependencies":{"express":"4"}}`
	}
}

func python(text string) func(*Evidence) {
	return func(ev *Evidence) {
		ev.Log = text
		ev.Manifests["requirements.txt"] = "Flask==3.0 # web\npython-dotenv\nmy_lib>=1\n"
	}
}

func missing(log string, files ...string) func(*Evidence) {
	return func(ev *Evidence) {
		ev.Log = log
		for _, f := range files {
			ev.Missing = append(ev.Missing, Missing{Path: f})
		}
	}
}

func TestEvidenceCallsForPlaybooks(t *testing.T) {
	for _, c := range []struct {
		name   string
		ev     Evidence
		first  string
		reason string
	}{
		{"nothing special", base(logs("boom")), "restart", "passing"},
		{"code that can't run", base(logs("  SyntaxError: Unexpected token")), "", ""},
		{"code that failed once", base(func(ev *Evidence) { ev.Log = "SyntaxError: x"; ev.Process.Exits = nil }), "restart", "passing"},
		{"runs, no answer", base(func(ev *Evidence) { ev.Process.State = engine.ProcessRunning }), "restart", "does not answer"},
		{"own stale holder", base(func(ev *Evidence) { ev.Holder = Holder{Held: true, Own: true, PID: 7, Name: "node"} }), "kill stray", "port 4000 is held by node (pid 7), left over"},
		{"the app itself on the port", base(func(ev *Evidence) {
			ev.Holder, ev.Process.State = Holder{Held: true, Own: true, Live: true}, engine.ProcessRunning
		}), "restart", ""},
		{"a command of the sandbox on the port", base(func(ev *Evidence) { ev.Holder = Holder{Held: true, Own: true, Live: true, Name: "python3", PID: 8} }), "another port", "the sandbox's own python3"},
		{"stranger on the port", base(func(ev *Evidence) { ev.Holder = Holder{Held: true, PID: 9, Name: "nginx"} }), "another port", "nginx (pid 9), which is not"},
		{"stranger on a port that the spec fixes", base(func(ev *Evidence) {
			ev.Holder = Holder{Held: true}
			ev.Spec.App.Port = 4000
		}), "restart", ""},
		{"node: package", base(node("Error: Cannot find module 'express'\nRequire stack:")), "reinstall", "package express"},
		{"node: scoped package, subpath", base(node("ERR_MODULE_NOT_FOUND: Cannot find package '@acme/ui/button' imported from /w/a.js")), "reinstall", "@acme/ui is"},
		{"node: part of a package", base(node("Cannot find module '/w/node_modules/vite/dist/cli.js'")), "reinstall", "part of the package vite"},
		{"node: bundler", base(node(`Module not found: Error: Can't resolve 'react-dom' in '/w'`)), "reinstall", "react-dom"},
		{"node: relative path", base(node("Error: Cannot find module './routes'")), "restart", ""},
		{"node: absolute path of the project", base(node("Error: Cannot find module '/w/src/routes.js'")), "restart", ""},
		{"node: builtin", base(node("Error: Cannot find module 'node:nope'")), "restart", ""},
		{"node: no package.json", base(logs("Cannot find module 'express'")), "restart", ""},
		{"node: corrupt", base(node("SyntaxError: /w/node_modules/a/package.json: Unexpected end of JSON input")), "reinstall", "corrupt"},
		{"node_modules missing", base(func(ev *Evidence) { ev.NoDependencies = "node_modules is missing" }), "reinstall", "node_modules is missing"},
		{"python: listed", base(python("ModuleNotFoundError: No module named 'flask'")), "reinstall", "flask"},
		{"python: another name", base(python("ModuleNotFoundError: No module named 'dotenv'")), "reinstall", "dotenv"},
		{"python: underscore", base(python("ModuleNotFoundError: No module named 'my_lib.sub'")), "reinstall", "my_lib"},
		{"python: not listed", base(python("ModuleNotFoundError: No module named 'app.routes'")), "restart", ""},
		{"python: only in a comment", base(python("ModuleNotFoundError: No module named 'web'")), "restart", ""},
		{"go: sum", base(func(ev *Evidence) {
			ev.Log = "main.go:4:2: missing go.sum entry for module providing package x"
			ev.Manifests["go.mod"] = "module x"
		}), "reinstall", "missing go.sum entry"},
		{"demo", base(logs("demo: cannot find part: wheels")), "reinstall", "the part wheels"},
		{"no install command", base(func(ev *Evidence) { node("Cannot find module 'express'")(ev); ev.Spec.App.Install = "" }), "restart", ""},
		{"no checkpoint", base(func(ev *Evidence) { node("Cannot find module 'express'")(ev); ev.Undoable = false }), "restart", ""},
		{"missing file, named by path", base(missing("ENOENT: open '/w/src/routes.js'", "src/routes.js")), "put back", "src/routes.js, which is missing; the last commit"},
		{"missing file, imported", base(missing("Cannot find module './routes'", "src/routes.js")), "put back", ""},
		{"missing python module", base(missing("No module named 'app.routes'", "app/routes.py")), "put back", ""},
		{"missing file that nobody asks for", base(missing("boom", "README.md")), "restart", ""},
		{"missing file with a longer name", base(missing("open my-routes.js.bak", "routes.js")), "restart", ""},
		{"both: the cheaper first", base(func(ev *Evidence) {
			missing("Cannot find module 'express' ... routes.js", "routes.js")(ev)
			ev.Manifests["package.json"] = "{}"
		}), "put back", ""},
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

func TestEachPlaybookIsTriedOnce(t *testing.T) {
	ev := base(func(ev *Evidence) {
		missing("Cannot find module 'express', routes.js", "routes.js")(ev)
		ev.Manifests["package.json"] = "{}"
		ev.Holder = Holder{Held: true, Own: true}
	})
	tried := map[string]bool{}
	var order []string
	for {
		p, _, ok := Next(ev, tried)
		if !ok {
			break
		}
		tried[p.Name()] = true
		order = append(order, p.Name())
	}
	if diff := cmp.Diff([]string{"kill stray", "put back", "reinstall", "restart"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// diary is a Workbench that writes down what is done.
type diary struct {
	did  []string
	fail string
}

func (d *diary) do(what string) error {
	d.did = append(d.did, what)
	if d.fail == what {
		return engine.Errorf(engine.Unavailable, "no")
	}
	return nil
}

func (d *diary) Restart(context.Context) error    { return d.do("restart") }
func (d *diary) Install(context.Context) error    { return d.do("install") }
func (d *diary) KillStrays(context.Context) error { return d.do("kill") }
func (d *diary) MovePort(context.Context) error   { return d.do("move") }
func (d *diary) PutBack(_ context.Context, m Missing) error {
	return d.do("put " + m.Path)
}

func (d *diary) Remove(_ context.Context, paths []string) error {
	return d.do(fmt.Sprint("remove ", paths))
}

func (d *diary) Allow(_ context.Context, lacks string, paths []string) error {
	return d.do(fmt.Sprint("allow ", lacks, " ", paths))
}

func (d *diary) Aside(_ context.Context, p string) error { return d.do("aside " + p) }

func TestPlaybooksDoTheirPartAndRestart(t *testing.T) {
	ev := base(missing("a.js b.js", "a.js", "b.js", "c.js"))
	for _, c := range []struct {
		p    Playbook
		want []string
	}{
		{restart{}, []string{"restart"}},
		{stray{}, []string{"kill", "restart"}},
		{port{}, []string{"move", "restart"}},
		{install{}, []string{"install", "restart"}},
		{putBack{}, []string{"put a.js", "put b.js", "restart"}},
	} {
		d := &diary{}
		if err := c.p.Apply(t.Context(), ev, d); err != nil {
			t.Errorf("%s: %v", c.p.Name(), err)
		}
		if diff := cmp.Diff(c.want, d.did); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.p.Name(), diff)
		}
		d = &diary{fail: c.want[0]}
		if err := c.p.Apply(t.Context(), ev, d); err == nil {
			t.Errorf("%s hides that %s failed", c.p.Name(), c.want[0])
		}
	}
}
