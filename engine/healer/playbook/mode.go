package playbook

import (
	"context"
	"fmt"
	"strings"
)

// mode lets the sandbox read its own files and run its own scripts again.
type mode struct{}

func (mode) Name() string { return "file modes" }

// Edits is false: a mode is no content, and no checkpoint can be made of a
// file that can't be read.
func (mode) Edits() bool { return false }

var denied = lazily(`(?i)permission denied|EACCES|PermissionError|operation not permitted|not executable`)

func (mode) Applies(ev Evidence) (string, bool) {
	if len(ev.Denied) == 0 || !denied().MatchString(ev.Log) && !notExecutable(ev) {
		return "", false
	}
	d := ev.Denied[0]
	what := "can't be read by its own owner"
	if d.Lacks == "x" {
		what = "may not be executed, and the app runs it"
	}
	return fmt.Sprintf("%s %s%s", d.Path, what, andMore(len(ev.Denied)-1)), true
}

func (mode) Apply(ctx context.Context, ev Evidence, w Workbench) error {
	byMode := map[string][]string{}
	for _, d := range ev.Denied {
		byMode[d.Lacks] = append(byMode[d.Lacks], d.Path)
	}
	for _, lacks := range []string{"rx", "r", "x"} { // directories first: what they hold may be among the others
		if paths := byMode[lacks]; len(paths) > 0 {
			if err := w.Allow(ctx, lacks, paths); err != nil {
				return err
			}
		}
	}
	return w.Restart(ctx)
}

// Denied is a file of the sandbox that its own mode keeps it from using.
type Denied struct {
	Path string
	// Lacks is what its owner lacks: "r", "x", or "rx" of a directory.
	Lacks string
}

func notExecutable(ev Evidence) bool {
	return ev.Process.Exit != nil && ev.Process.Exit.Code == 126
}

var deniedName = lazily(`EACCES: permission denied[^\n]*?'([^'\n]+)'|[Pp]ermission denied: '([^'\n]+)'|spawn ([^\s]+) EACCES|([\w@.+/-]+): [Pp]ermission denied`)

// DeniedNames are the files that a log says may not be used.
func DeniedNames(log string) []string {
	var names []string
	for _, m := range deniedName().FindAllStringSubmatch(log, 50) {
		for _, name := range m[1:] {
			if name != "" {
				names = append(names, strings.TrimPrefix(name, "./"))
			}
		}
	}
	return names
}
