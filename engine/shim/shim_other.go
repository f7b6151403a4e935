//go:build !linux

// Package shim needs Linux: elsewhere it is here so that sbx builds.
package shim

import (
	"fmt"
	"os"
)

// OnMainThread is for Linux.
func OnMainThread([]string) bool { return false }

// Main says that there are no shims here.
func Main([]string) int {
	fmt.Fprintln(os.Stderr, "sbx shim: sandboxes need Linux")
	return 1
}
