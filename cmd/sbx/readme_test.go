package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sbx/engine"
	"sbx/engine/spec"
)

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDiagrams(t *testing.T) {
	text := readme(t)
	for _, want := range []string{engine.LifeDiagram(), engine.HealthDiagram()} {
		if !strings.Contains(text, "```mermaid\n"+want+"```") {
			t.Errorf("README.md shows another diagram than the table:\n%s", want)
		}
	}
}

func TestTheSpecOfTheReadmeParses(t *testing.T) {
	m := regexp.MustCompile("(?s)```toml\n(.*?)```").FindStringSubmatch(readme(t))
	if m == nil {
		t.Fatal("README.md shows no spec")
	}
	sp, err := spec.Parse("README.md", []byte(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	if sp.App.Health != "/health" || sp.Heal.Attempts != 3 {
		t.Errorf("it parses to %+v", sp)
	}
}

// TestTheReadmeNamesEveryCommand: a command that is not in the README can't be
// found, and one that is there must exist.
func TestTheReadmeNamesEveryCommand(t *testing.T) {
	text := readme(t)
	root := newRootCmd(newCLI(nil, nil, nil, nil))
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && !regexp.MustCompile(`sbx [a-z ]*\b`+cmd.Name()+`\b`).MatchString(text) {
			t.Errorf("sbx %s is not in README.md", cmd.Name())
		}
		if !cmd.Hidden && cmd.Example == "" {
			t.Errorf("sbx %s has no example", cmd.Name())
		}
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllString(text, -1)
	for _, m := range regexp.MustCompile("(?m)^sbx ([a-z]+)").FindAllStringSubmatch(strings.Join(blocks, "\n"), -1) {
		if cmd, _, err := root.Find([]string{m[1]}); err != nil || cmd == root {
			t.Errorf("README.md runs sbx %s, which does not exist", m[1])
		}
	}
}
