package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule says what a package may import of the project, of third parties, and
// why. A trailing /... stands for everything below.
type rule struct {
	pkg     string
	ours    []string
	theirs  []string
	because string
}

var rules = []rule{
	{"sbx/engine", nil, nil, "it is the vocabulary; anything may speak it"},
	{"sbx/store", []string{"sbx/engine"}, []string{"modernc.org/sqlite/...", "github.com/pressly/goose/v3", "golang.org/x/sys/unix"}, "rows are vocabulary"},
	{"sbx/engine/agent", []string{"sbx/engine"}, nil, "a port to the world"},
	{"sbx/engine/agent/claude", []string{"sbx/engine", "sbx/engine/agent"}, []string{"github.com/anthropics/anthropic-sdk-go/..."}, "the one place that speaks to the provider"},
	{"sbx/engine/agent/agenttest", []string{"sbx/engine", "sbx/engine/agent"}, nil, "a scripted provider"},
	{"sbx/engine/driver", []string{"sbx/engine"}, nil, "a port to the world"},
	{"sbx/engine/driver/host/limit", []string{"sbx/engine", "sbx/engine/shim"}, []string{"golang.org/x/sys/unix", "github.com/opencontainers/cgroups/...", "github.com/opencontainers/cgroups"}, "it knows the kernel's groups, and nothing of boxes"},
	{"sbx/engine/shim", []string{"sbx/engine", "sbx/engine/logs"}, []string{"golang.org/x/sys/unix"}, "small, long-lived, must start fast: nothing of the engine's weight"},
	{"sbx/engine/driver/host", []string{"sbx/engine", "sbx/engine/driver", "sbx/engine/shim", "sbx/engine/logs", "sbx/engine/driver/host/limit"}, []string{"golang.org/x/sys/unix", "github.com/landlock-lsm/go-landlock/..."}, "the only place that knows local pids and directories"},
	{"sbx/engine/driver/fake", []string{"sbx/engine", "sbx/engine/driver"}, nil, "a driver in memory"},
	{"sbx/engine/driver/drivertest", []string{"sbx/engine", "sbx/engine/driver"}, nil, "the contract of a driver"},
	{"sbx/engine/screen", []string{"sbx/engine"}, []string{"github.com/charmbracelet/x/vt"}, "what terminals show; a hostile stream in, what is safe out"},
	{"sbx/engine/logs", []string{"sbx/engine"}, []string{"github.com/fsnotify/fsnotify", "golang.org/x/sys/unix"}, "files with positions"},
	{"sbx/engine/spec", []string{"sbx/engine"}, []string{"github.com/pelletier/go-toml/v2/..."}, "text to vocabulary"},
	{"sbx/engine/template", []string{"sbx/engine"}, nil, "files in the binary"},
	{"sbx/engine/template/demoapp", nil, nil, "an app like any other: it knows nothing of sbx"},
	{"sbx/engine/redact", nil, nil, "a filter that anything may put its words through"},
	{"sbx/engine/pool", inner, nil, "news goes by journal: inner packages never import each other"},
	{"sbx/engine/process", inner, nil, "news goes by journal: inner packages never import each other"},
	{"sbx/engine/detect", inner, nil, "news goes by journal: inner packages never import each other"},
	{"sbx/engine/healer", append([]string{"sbx/engine/healer/playbook", "sbx/engine/redact"}, inner...), []string{"golang.org/x/sync/errgroup", "github.com/aymanbagabas/go-udiff"}, "news goes by journal; what it must do to others are func fields"},
	{"sbx/engine/healer/playbook", []string{"sbx/engine"}, nil, "conditions and repairs over evidence"},
	{"sbx/engine/archive", []string{"sbx/engine", "sbx/engine/driver"}, []string{"github.com/klauspost/compress/zstd"}, "a driver's streams as files: it knows nothing of the pool"},
	{"sbx/engine/archive/s3", []string{"sbx/engine"}, []string{"github.com/minio/minio-go/v7/..."}, "the one place that speaks to object storage"},
	{"sbx/engine/local", []string{
		"sbx/engine/...", "sbx/engine", "sbx/store",
	}, nil, "wiring"},
	{"sbx/engine/gateway", []string{"sbx/engine"}, nil, "a tool for others: its look-ups are func fields"},
	{"sbx/engine/notify", []string{"sbx/engine"}, nil, "it sends, and knows no rows"},
	{"sbx/engine/server", []string{"sbx/engine"}, []string{"github.com/gorilla/websocket"}, "serves any Engine, even a client"},
	{"sbx/engine/enginetest", []string{"sbx/engine"}, []string{"github.com/google/go-cmp/cmp/...", "github.com/creack/pty"}, "what it means to be an Engine"},
	{"sbx/client", []string{"sbx/engine"}, []string{"github.com/gorilla/websocket"}, "an SDK with no engine in it"},
	{"sbx/tui/...", []string{"sbx/engine", "sbx/themes", "sbx/tui/..."}, []string{"charm.land/...", "github.com/charmbracelet/...", "github.com/rivo/uniseg", "github.com/lucasb-eyer/go-colorful"}, "it cannot tell embedded from remote"},
	{"sbx/tui", []string{"sbx/engine", "sbx/themes", "sbx/tui/..."}, []string{"charm.land/...", "github.com/charmbracelet/..."}, "it cannot tell embedded from remote"},
	{"sbx/tui/clean", nil, []string{"github.com/charmbracelet/x/ansi", "github.com/rivo/uniseg", "github.com/clipperhouse/..."}, "a sanitiser that every sink can use"},
	{"sbx/themes", nil, []string{"github.com/pelletier/go-toml/v2/..."}, "data"},
}

var inner = []string{"sbx/engine", "sbx/store", "sbx/engine/driver", "sbx/engine/logs", "sbx/engine/agent"}

type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func TestImportsFollowTheArrows(t *testing.T) {
	for _, pkg := range listPackages(t) {
		if strings.HasPrefix(pkg.ImportPath, "sbx/cmd/") {
			continue // the only place that knows everyone
		}
		r, ok := ruleOf(pkg.ImportPath)
		if !ok {
			t.Errorf("%s has no rule: say in deps_test.go what it may import, and why", pkg.ImportPath)
			continue
		}
		for _, imp := range pkg.Imports {
			if !strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") && !strings.HasPrefix(imp, "sbx/") {
				continue // the standard library
			}
			if !matches(imp, r.ours) && !matches(imp, r.theirs) {
				t.Errorf("%s imports %s: %s", pkg.ImportPath, imp, r.because)
			}
		}
	}
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Standard", "sbx/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 10 {
		t.Fatalf("go list knows %d packages only", len(list))
	}
	return list
}

// ruleOf is the rule of a package: its own, else that of a folder above it.
func ruleOf(pkg string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.pkg == pkg })
	if i < 0 {
		i = slices.IndexFunc(rules, func(r rule) bool { return matches(pkg, []string{r.pkg}) })
	}
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

func matches(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, wild := strings.CutSuffix(p, "/...")
		return pkg == p || wild && (pkg == below || strings.HasPrefix(pkg, below+"/"))
	})
}
