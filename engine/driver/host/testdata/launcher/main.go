//go:build linux

// Command launcher is the launcher alone, for tests: a test binary, above all
// one with the race detector in it, takes long to start.
package main

import (
	"os"

	"sbx/engine/driver/host"
)

func main() { os.Exit(host.ConfineMain(os.Args[2:])) }
