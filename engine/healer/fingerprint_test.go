package healer

import (
	"strings"
	"testing"

	"sbx/engine"
)

func crashed(code int) (engine.Signal, *engine.Exit) {
	e := engine.Exit{Code: code}
	return engine.Signal{Kind: engine.ExitSignal, Exit: &e}, &e
}

func TestTheSameFaultHasOneFingerprint(t *testing.T) {
	for name, logs := range map[string][2]string{
		"a module": {
			"Error: Cannot find module 'express'\nRequire stack:\n- /work/sb-aaaaaaaaaa/app.js\n    at Module._resolve (node:internal/modules/cjs/loader:1228:15)\n\nNode.js v22.1.0",
			"starting\nError: Cannot find module 'express'\nRequire stack:\n- /srv/other/app.js\n    at Module._resolve (node:internal/modules/cjs/loader:1228:15)",
		},
		"a port": {
			"Error: listen EADDRINUSE: address already in use 127.0.0.1:20001",
			"Error: listen EADDRINUSE: address already in use 127.0.0.1:20417",
		},
		"an exception with a time and a level": {
			"2026-11-20T14:32:07Z [app] ModuleNotFoundError: No module named 'flask'",
			"\x1b[31m2026-11-21 09:00:01,123 [app] ModuleNotFoundError: No module named 'flask'\x1b[0m",
		},
		"a panic": {
			"panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/b/main.go:9 +0x1d",
			"panic: runtime error: index out of range [7] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n\t/c/main.go:9 +0x99",
		},
		"a path": {
			"open /work/sb-aaaaaaaaaa/config/db.json: no such file or directory",
			"open /work/sb-bbbbbbbbbb/config/db.json: no such file or directory",
		},
		"what follows the error": {
			"TypeError: x is not a function\n    at app.js:1\nbye",
			"TypeError: x is not a function\n    at app.js:2\nclosing 3 connections",
		},
	} {
		sig, exit := crashed(1)
		a, title := fingerprint(sig, exit, logs[0])
		b, _ := fingerprint(sig, exit, logs[1])
		if a != b || a == noFingerprint || title == "" {
			t.Errorf("%s: %q and %q (%s), want one fingerprint", name, a, b, title)
		}
	}
}

func TestDifferentFaultsHaveDifferentFingerprints(t *testing.T) {
	seen := map[string]string{}
	for _, log := range []string{
		"Error: Cannot find module 'express'",
		"Error: Cannot find module 'koa'",
		"SyntaxError: Unexpected token '}'",
		"ModuleNotFoundError: No module named 'flask'",
		"panic: assignment to entry in nil map",
		"sh: 1: vite: not found",
	} {
		sig, exit := crashed(1)
		got, _ := fingerprint(sig, exit, log)
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", log, other, got)
		}
		seen[got] = log
	}
	sig, exit := crashed(1)
	one, _ := fingerprint(sig, exit, "Error: boom")
	sig, exit = crashed(2)
	two, _ := fingerprint(sig, exit, "Error: boom")
	oom := engine.Exit{Code: 137, Signal: "SIGKILL", OOM: true}
	three, _ := fingerprint(engine.Signal{Kind: engine.ExitSignal, Exit: &oom}, &oom, "Error: boom")
	if one == two || two == three {
		t.Errorf("exit 1, exit 2 and out of memory are %q, %q and %q", one, two, three)
	}
}

func TestWhatSaysNothingHasNoFingerprint(t *testing.T) {
	sig, exit := crashed(1)
	for _, log := range []string{"", "\n\n", "listening on 3000\nbye\n", "GET / 200 3ms"} {
		if got, _ := fingerprint(sig, exit, log); got != noFingerprint {
			t.Errorf("%q: %q, want none: sandboxes that have nothing in common are no incident", log, got)
		}
	}
}

func TestAFingerprintIsBoundedAndHarmless(t *testing.T) {
	sig, exit := crashed(1)
	got, title := fingerprint(sig, exit, "Error: "+strings.Repeat("x", 1<<20)+"\x1b]0;title\x07")
	if len(got) > maxFingerprint || len(title) > maxCause || strings.ContainsAny(got+title, "\x1b\x07\n") {
		t.Errorf("%d and %d bytes: %.80q", len(got), len(title), title)
	}
}
