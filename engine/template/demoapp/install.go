package demoapp

import (
	"bufio"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
)

// store is where parts come from: what a package registry is to real apps.
//
//go:embed parts
var store embed.FS

const (
	partsDir = "parts"
	lockFile = "parts.lock"
)

// Install puts the parts that parts.lock lists into parts/, each as the lock
// has it, and returns the exit code. A part that is there and right stays
// untouched.
func Install(dir string, stdout, stderr io.Writer) int {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed(stderr, err)
	}
	defer root.Close()
	locked, err := readLock(root)
	if err != nil {
		return failed(stderr, err)
	}
	if err := root.Mkdir(partsDir, 0o755); err != nil && !os.IsExist(err) {
		return failed(stderr, err)
	}
	put := 0
	for _, p := range locked {
		done, err := p.install(root)
		if err != nil {
			return failed(stderr, err)
		}
		if done {
			put++
		}
	}
	fmt.Fprintf(stdout, "installed %d of %d parts\n", put, len(locked))
	return 0
}

// lockedPart is a line of parts.lock: a name and the sum of its content.
type lockedPart struct{ name, sum string }

func readLock(root *os.Root) ([]lockedPart, error) {
	f, err := root.Open(lockFile)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", lockFile, reason(err))
	}
	defer f.Close()
	var parts []lockedPart
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) != 2:
			return nil, fmt.Errorf("%s:%d: want a name and a sum", lockFile, n)
		default:
			parts = append(parts, lockedPart{fields[0], fields[1]})
		}
	}
	return parts, lines.Err()
}

// install reports whether the part had to be written.
func (p lockedPart) install(root *os.Root) (bool, error) {
	file := partsDir + "/" + p.name
	if have, err := root.ReadFile(file); err == nil && sum(have) == p.sum {
		return false, nil
	}
	data, err := store.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("there is no part %q", p.name)
	}
	if sum(data) != p.sum {
		return false, fmt.Errorf("part %s is another one than %s says", p.name, lockFile)
	}
	return true, root.WriteFile(file, data, 0o644)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
