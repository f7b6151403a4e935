//go:build linux

package host

import (
	"path/filepath"
	"strings"
	"testing"

	"sbx/engine"
)

// hostileNames are paths that no caller may use, however they are dressed up.
func hostileNames() []string {
	ups := []string{"..", "../", "../x", "a/..", "a/../b", "a/../../b", "./..", "a/./../b", "../../../../etc/passwd", "x/../../x"}
	wraps := []string{"%s", "%s/x", "a/%s", "./%s", "a//%s", "%s/", "a/b/c/%s", "%s//x", "%s/./x", " /%s"}
	var names []string
	for _, up := range ups {
		for _, w := range wraps {
			names = append(names, strings.Replace(w, "%s", up, 1))
		}
	}
	marks := []string{"\x00", "\\", "\xff", "\xc0\xae\xc0\xae", "\xc0\xaf", "\xed\xa0\x80", "..\\", "a\\..\\b", "\xf8\x88\x80\x80\xaf", "\x80"}
	for _, m := range marks {
		for _, w := range wraps {
			names = append(names, strings.Replace(w, "%s", m, 1), strings.Replace(w, "%s", "a"+m+"b", 1))
		}
	}
	names = append(names, "/", "//", "/etc/passwd", "/proc/self/environ", "///x", "/./x", "/..", "/a")
	return append(names, strings.Repeat("a", 256), strings.Repeat("a/", 2049), strings.Repeat("x", 1<<20), "ok/"+strings.Repeat("é", 200))
}

func TestHostileNamesAreRefusedAlikeAndDoNothing(t *testing.T) {
	b := newTestBox(t)
	lay(t, b, map[string]string{"a/b/c/file": "x"})
	names := hostileNames()
	if len(names) < 200 {
		t.Fatalf("only %d names", len(names))
	}
	f := b.Files()
	for _, name := range names {
		_, err1 := f.ReadFile(t.Context(), name, 0, 0)
		_, err2 := f.ReadDir(t.Context(), name)
		_, err3 := f.WriteFile(t.Context(), name, "", []byte("x"))
		err4 := f.Walk(t.Context(), name, func(string, engine.FileInfo) bool { return false })
		errs := []error{err1, err2, err3, err4}
		if badKept(name) != "" { // else git knows names that people can't type
			errs = append(errs, b.Checkpoints().Restore(t.Context(), strings.Repeat("0", 40), []string{name}))
		}
		for _, err := range errs {
			wantCode(t, err, engine.Invalid)
			if strings.Contains(err.Error(), b.workspace) {
				t.Fatalf("%q: the error tells the host's path: %v", name, err)
			}
		}
	}
	if got := look(t, b); len(got) != 1 {
		t.Fatalf("the workspace is %v now", got)
	}
}

func FuzzName(f *testing.F) {
	for _, name := range hostileNames() {
		f.Add(name)
	}
	f.Add("src/index.js")
	f.Add("")
	f.Add("...")
	f.Add("a/...b/.c")
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := cleanName(name)
		if err != nil {
			wantCode(t, err, engine.Invalid)
			return
		}
		if !filepath.IsLocal(clean) || strings.Contains(clean, "..") && strings.Contains("/"+clean+"/", "/../") {
			t.Fatalf("%q became %q", name, clean)
		}
		if again, err := cleanName(clean); err != nil || again != clean {
			t.Fatalf("%q became %q and then %q, %v", name, clean, again, err)
		}
	})
}
