//go:build linux

package shim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
)

// oomFile says how soon the kernel ends this process when the host is out of
// memory: from 1000, first, to -1000, never. Children inherit it.
const oomFile = "/proc/self/oom_score_adj"

// protection is what this process is protected by: it is one for all threads.
var protection struct {
	sync.Mutex
	known bool
	score int
}

// Protect has the kernel end others first when the host is out of memory. It
// is refused to who has no privilege, and then everything is as it was.
func Protect(score int) error {
	protection.Lock()
	defer protection.Unlock()
	if err := os.WriteFile(oomFile, []byte(strconv.Itoa(score)), 0); err != nil {
		return fmt.Errorf("be spared when memory runs out: %w", err)
	}
	protection.known, protection.score = true, score
	return nil
}

// expose gives up the protection of this process, whoever gave it that, until
// the returned function is called: what is forked meanwhile is born without.
func expose() (again func()) {
	protection.Lock()
	if !protection.known {
		data, _ := os.ReadFile(oomFile) // none: nothing is protected
		protection.score, _ = strconv.Atoi(string(bytes.TrimSpace(data)))
		protection.known = true
	}
	score := protection.score
	if score >= 0 || os.WriteFile(oomFile, []byte("0"), 0) != nil {
		protection.Unlock()
		return func() {}
	}
	return func() {
		defer protection.Unlock()
		_ = os.WriteFile(oomFile, []byte(strconv.Itoa(score)), 0) // it was allowed before
	}
}
