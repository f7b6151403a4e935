package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The bounds of STYLE: a file is one idea, a function fits on a screen.
const (
	maxFileLines = 400
	maxFuncLines = 60
)

var todo = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)

func TestTheCodeKeepsItsShape(t *testing.T) {
	documented := map[string]bool{}
	fset := token.NewFileSet()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || strings.HasPrefix(d.Name(), "_")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		checkFile(t, fset, path, documented)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: the package has no comment that says what it is for and its one rule", dir)
		}
	}
}

func checkFile(t *testing.T, fset *token.FileSet, path string, documented map[string]bool) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(src), "\n"); n > maxFileLines {
		t.Errorf("%s has %d lines: over %d is more than one idea", path, n, maxFileLines)
	}
	if m := todo.FindString(string(src)); m != "" && !strings.HasSuffix(path, "tidy_test.go") {
		t.Errorf("%s has a %s: do it or file it", path, m)
	}
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, "_test.go") {
		documented[filepath.Dir(path)] = documented[filepath.Dir(path)] || f.Doc != nil
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if lines := lineCount(fset, fn) - tableRows(fset, fn); lines > maxFuncLines {
			t.Errorf("%s: %s has %d lines: over %d does not fit on a screen", path, fn.Name.Name, lines, maxFuncLines)
		}
		if fn.Name.Name == "init" && fn.Recv == nil {
			t.Errorf("%s has an init: tables are variables, the rest is somebody's to call", path)
		}
	}
}

func lineCount(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

// tableRows counts the lines of a function that are rows of a table: those are
// data, and a long table is easier to read than a clever one.
func tableRows(fset *token.FileSet, fn *ast.FuncDecl) int {
	rows := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		list, ok := lit.Type.(*ast.ArrayType)
		if !ok {
			return true
		}
		if _, ok := list.Elt.(*ast.StructType); !ok {
			return true
		}
		for _, row := range lit.Elts {
			rows += lineCount(fset, row)
		}
		return false
	})
	return rows
}
