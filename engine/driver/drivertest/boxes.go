package drivertest

import (
	"errors"
	"strings"

	"sbx/engine"
	"sbx/engine/driver"
)

func bootTwice(e *env) {
	id, box := e.boot()
	if _, err := box.Files().WriteFile(e.context(), "mine.txt", "", []byte("mine")); err != nil {
		e.Fatal(err)
	}
	again, err := e.driver.Boot(e.context(), bootOf(id))
	e.must(err)
	if again.Location() != box.Location() {
		e.Errorf("the second boot is at %s, the first at %s", again.Location(), box.Location())
	}
	f, err := again.Files().ReadFile(e.context(), "mine.txt", 0, 0)
	e.must(err)
	if string(f.Data) != "mine" {
		e.Errorf("the workspace has %q after the second boot", f.Data)
	}
}

func attach(e *env) {
	id, box := e.boot()
	found, err := e.driver.Attach(e.context(), id)
	e.must(err)
	if found.Location() != box.Location() {
		e.Errorf("attached %s, booted %s", found.Location(), box.Location())
	}
	for _, id := range []engine.SandboxID{"sb-nothere234", "", "../..", "sb-../../x"} {
		if _, err := e.driver.Attach(e.context(), id); !errors.Is(err, engine.NotFound) {
			e.Errorf("attach %q: %v, want not found", id, err)
		}
	}
}

func templateIsThere(e *env) {
	_, box := e.boot()
	if got := e.output(box, "cat sub/file.txt"); got != "from the template\n" {
		e.Errorf("the file has %q", got)
	}
}

func destroy(e *env) {
	id := engine.SandboxID(engine.NewID(engine.SandboxPrefix))
	box, err := e.driver.Boot(e.context(), bootOf(id))
	e.must(err)
	r := e.start(box, "sleep 600")
	e.must(box.Destroy(e.context()))
	if exit := e.wait(r); !exit.Killed {
		e.Errorf("what ran ended as %+v, want killed", exit)
	}
	if _, err := e.driver.Attach(e.context(), id); !errors.Is(err, engine.NotFound) {
		e.Errorf("attach after destroy: %v, want not found", err)
	}
}

func boxesApart(e *env) {
	_, one := e.boot()
	_, two := e.boot()
	if _, err := one.Files().WriteFile(e.context(), "secret.txt", "", []byte("of one")); err != nil {
		e.Fatal(err)
	}
	if _, err := two.Files().ReadFile(e.context(), "secret.txt", 0, 0); !errors.Is(err, engine.NotFound) {
		e.Errorf("read from the other box: %v, want not found", err)
	}
	if !e.driver.Isolation().Confines {
		return // its user may read what its user owns
	}
	if got := e.output(two, "cat "+one.Location()+"/secret.txt"); strings.Contains(got, "of one") {
		e.Errorf("a command read the other box's file: %q", got)
	}
}

func freePorts(e *env) {
	_, box := e.boot()
	seen := map[int]bool{}
	for range 20 {
		port, err := box.FreePort(e.context(), func(p int) bool { return seen[p] || p%2 == 0 })
		e.must(err)
		if seen[port] || port%2 == 0 || port < 1 || port > 65535 {
			e.Fatalf("got port %d, which was taken", port)
		}
		seen[port] = true
	}
}

func nobodyHolds(e *env) {
	_, box := e.boot()
	port, err := box.FreePort(e.context(), func(int) bool { return false })
	e.must(err)
	holder, err := box.PortHolder(e.context(), port)
	e.must(err)
	if holder.Held {
		e.Errorf("a free port is held by %+v", holder)
	}
}

func usage(e *env) {
	_, box := e.boot()
	r := e.start(box, "sleep 600")
	u, err := box.Usage(e.context())
	e.must(err)
	if u.Processes < 1 {
		e.Errorf("%d processes while one runs", u.Processes)
	}
	e.must(r.Kill(e.context(), 0))
	e.wait(r)
	u, err = box.Usage(e.context())
	e.must(err)
	if u.Processes != 0 {
		e.Errorf("%d processes while none runs", u.Processes)
	}
}

func reapSpares(e *env) {
	_, box := e.boot()
	r := e.startCommand(box, driver.Command{Command: engine.Command{Shell: "cat"}, Profile: driver.ProfileApp, Stdin: true})
	if killed, err := e.driver.Reap(e.context()); err != nil || len(killed) != 0 {
		e.Errorf("reap killed %q, %v", killed, err)
	}
	if killed, err := box.KillStrays(e.context()); err != nil || len(killed) != 0 {
		e.Errorf("kill strays killed %q, %v", killed, err)
	}
	e.must(r.Input().Close())
	if exit := e.wait(r); exit.Code != 0 || exit.Killed {
		e.Errorf("it ended as %+v, want exit 0", exit)
	}
}
