package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops the keys that nobody has read.
func flushInput(f *os.File) error { return unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
