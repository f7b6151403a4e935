package drivertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

func completeOutput(e *env) {
	_, box := e.boot()
	const lines = 10_000
	r := e.start(box, fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done", lines))
	e.wait(r)
	got := strings.Split(strings.TrimSuffix(r.out.String(), "\n"), "\n")
	if len(got) != lines {
		e.Fatalf("%d lines at the exit, want %d", len(got), lines)
	}
	for i, line := range got {
		if line != fmt.Sprintf("line %d", i) {
			e.Fatalf("line %d is %q", i, line)
		}
	}
}

func grandchild(e *env) {
	_, box := e.boot()
	begun := time.Now()
	r := e.start(box, "echo before; (sleep 600) & exit 7")
	exit := e.wait(r)
	if exit.Code != 7 || r.out.String() != "before\n" {
		e.Errorf("it ended as %+v with %q", exit, r.out)
	}
	select {
	case <-r.out.Closed():
	case <-e.context().Done():
		e.Error("the writer was not closed")
	}
	if took := time.Since(begun); took > patience/2 {
		e.Errorf("the exit took %s", took)
	}
	e.must(r.Kill(e.context(), 0)) // the grandchild, if it lives on
}

func signalCode(e *env) {
	_, box := e.boot()
	for name, code := range map[string]int{"SIGKILL": 137, "SIGTERM": 143, "SIGSEGV": 139} {
		exit := e.wait(e.start(box, fmt.Sprintf("kill -%s $$; sleep 600", strings.TrimPrefix(name, "SIG"))))
		if exit.Code != code || exit.Signal != name || exit.Killed {
			e.Errorf("%s: %+v, want code %d", name, exit, code)
		}
	}
}

// grace: everything in the tree hears TERM and gets the time to end by itself,
// also when the shell before it has ended already.
func grace(e *env) {
	_, box := e.boot()
	r := e.start(box, `sh -c 'trap "n=0; while [ \$n -lt 20 ]; do n=\$((n+1)); sleep 0.01; done; echo goodbye; exit 0" TERM; echo ready; while :; do sleep 0.02; done' & wait`)
	e.must(r.out.Await(e.context(), "ready"))
	e.must(r.Kill(e.context(), patience))
	exit := e.wait(r)
	e.must(r.out.Await(e.context(), "goodbye")) // else the server behind the shell was cut off
	if !exit.Killed || exit.Code != 143 {
		e.Errorf("it ended as %+v, want the shell's own end by TERM", exit)
	}
}

// evilTree is a tree that doesn't want to end: TERM is ignored, children fork
// twice, leave their session, and one forks without end.
const evilTree = `trap '' TERM HUP INT
echo alive > alive
(setsid sh -c 'trap "" TERM; while :; do date +%s%N > alive; sleep 0.01; done' &) &
(setsid setsid sh -c 'trap "" TERM HUP; (sh -c "trap \"\" TERM; while :; do date +%s%N > alive; sleep 0.01; done" &)' &)
sh -c 'loop() { (exec sleep 0.05) & (exec sleep 0.001); loop; }; loop' &
echo ready
sleep 600`

func killTree(e *env) {
	_, box := e.boot()
	r := e.start(box, evilTree)
	e.must(r.out.Await(e.context(), "ready"))
	e.must(r.Kill(e.context(), 50*time.Millisecond))
	if exit := e.wait(r); !exit.Killed {
		e.Errorf("it ended as %+v, want killed", exit)
	}
	// What is left would write the file again.
	files := box.Files()
	f, err := files.ReadFile(e.context(), "alive", 0, 0)
	e.must(err)
	if _, err := files.WriteFile(e.context(), "alive", f.Version, []byte("dead")); err != nil {
		e.Fatalf("something still writes: %v", err)
	}
	if got := e.output(box, "sleep 0.2; cat alive"); got != "dead" {
		e.Errorf("something still lives: the file has %q", got)
	}
	if killed, err := box.KillStrays(e.context()); err != nil || len(killed) > 0 {
		e.Errorf("there were strays: %q, %v", killed, err)
	}
}

func environment(e *env) {
	_, box := e.boot()
	r := e.startCommand(box, driver.Command{
		Command: engine.Command{Shell: "env", Env: map[string]string{"OWN": "of the spec", "TZ": "UTC"}}, Profile: driver.ProfileApp,
	})
	e.wait(r)
	allowed := []string{"PATH", "HOME", "LANG", "TERM", "TZ", "OWN", "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "SBX_BOX", "SBX_BIN"}
	for line := range strings.Lines(r.out.String()) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !slices.Contains(allowed, name) {
			e.Errorf("the environment has %s", name)
		}
		if name == "OWN" && value != "of the spec" {
			e.Errorf("OWN is %q", value)
		}
	}
	for _, want := range []string{"PATH=", "HOME=", "OWN=", "TZ=UTC\n"} {
		if !strings.Contains("\n"+r.out.String(), "\n"+want) {
			e.Errorf("the environment has no %s: %q", want, r.out)
		}
	}
}

func workingDirectory(e *env) {
	_, box := e.boot()
	r := e.startCommand(box, driver.Command{Command: engine.Command{Shell: "cat file.txt", Dir: "sub"}, Profile: driver.ProfileApp})
	if e.wait(r); r.out.String() != "from the template\n" {
		e.Errorf("got %q, %q", r.out, r.err)
	}
	e.wait(e.start(box, "ln -s /etc out"))
	_, err := box.Start(e.context(), "ps-outside", driver.Command{Command: engine.Command{Shell: "pwd", Dir: "out"}, Profile: driver.ProfileApp}, NewOutput(), nil)
	if err == nil {
		e.Error("a link led out of the workspace")
	}
}

func reopenOutput(e *env) {
	_, box := e.boot()
	if got := e.output(box, "echo one; echo two > /dev/stdout; echo three; echo four > /dev/stderr"); got != "one\ntwo\nthree\nfour\n" {
		e.Errorf("got %q", got)
	}
}
