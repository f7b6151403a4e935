//go:build !linux

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops the keys that nobody has read.
func flushInput(f *os.File) error { return unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCFLUSH, 1) } // FREAD
