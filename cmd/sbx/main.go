// Command sbx keeps a fleet of dev sandboxes alive: a command line and a
// dashboard that embed the engine or attach to a remote one.
//
// The one rule of this package: it is the only place that knows everyone, and
// it decides nothing but which engine to talk to and how to print.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sbx/engine/driver/host"
	"sbx/engine/shim"
	"sbx/engine/template/demoapp"
)

// A shim needs the main thread for itself, which can be had only now: by the
// time that main runs, its goroutine may be elsewhere.
var _ = shim.OnMainThread(os.Args)

func main() {
	os.Exit(run(os.Args))
}

// run is main without os.Exit. The hidden commands come before everything
// else: they run inside sandboxes, by the thousand, and must start fast.
func run(args []string) int {
	if len(args) > 1 {
		switch args[1] {
		case "confine":
			return host.ConfineMain(args[2:])
		case "shim":
			return shim.Main(args[2:])
		case "demo-app":
			return demoapp.Command(args[2:])
		}
	}
	ctx, stop := interruptible()
	defer stop()
	return newCLI(os.Stdin, os.Stdout, os.Stderr, os.Environ()).run(ctx, args[1:])
}

// interruptible ends its context at the first Ctrl-C or TERM, or when the
// terminal goes, unless somebody asked for that to be ignored (nohup). The
// second one kills: the default comes back as soon as the first was seen.
func interruptible() (context.Context, func()) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
