//go:build linux

package host

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// shell is the shell of whoever the box runs as, for terminals: that of the
// host's passwd file if people can use it, else bash, else sh.
func (b *box) shell() string {
	for _, path := range []string{passwdShell(b.uid), "/bin/bash"} {
		if path != "" && runnable(path) == nil {
			return path
		}
	}
	return "/bin/sh"
}

// passwdShell is the shell of a user, if it is one of the system's.
func passwdShell(uid int) string {
	f, err := os.Open("/etc/passwd")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) != 7 || fields[2] != strconv.Itoa(uid) {
			continue
		}
		shell := fields[6]
		if !strings.HasPrefix(shell, "/bin/") && !strings.HasPrefix(shell, "/usr/bin/") || strings.HasSuffix(shell, "/false") || strings.HasSuffix(shell, "nologin") {
			return ""
		}
		return shell
	}
	return ""
}
