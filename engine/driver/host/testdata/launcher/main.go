//go:build linux

// Command launcher is the launcher and the shim alone, for tests: a test binary,
// above all one with the race detector in it, takes long to start.
package main

import (
	"os"

	"sbx/engine/driver/host"
	"sbx/engine/shim"
)

// The main thread is the shim's: see [shim.OnMainThread].
var _ = shim.OnMainThread(os.Args)

func main() {
	if os.Args[1] == "shim" {
		os.Exit(shim.Main(os.Args[2:]))
	}
	os.Exit(host.ConfineMain(os.Args[2:]))
}
