package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx/engine"
)

func TestABundleHasTheStoryAndNoSecret(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	w := newWorld(t, nil, "DEPLOY_TOKEN=canary-9Zq3xW81rTq")
	source := w.patient()
	if err := os.WriteFile(filepath.Join(source, ".env"), []byte("API_SECRET=sings-4Kd82nfQw1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ok("create", "--from", source, "--name", "shop")
	w.ok("exec", "shop", "--", "echo key sings-4Kd82nfQw1 and canary-9Zq3xW81rTq; "+infection)
	w.run("restart", "shop") // there is no model: it stays broken
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	w.ok("bundle", "shop", "--output", file)
	files, err := readBundle(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		for _, secret := range []string{"canary-9Zq3xW81rTq", "sings-4Kd82nfQw1"} {
			if bytes.Contains(b, []byte(secret)) {
				t.Errorf("%s has the secret %s", name, secret)
			}
		}
	}
	if !strings.Contains(string(files["missing.json"]), "null") {
		t.Errorf("something could not be had: %s", files["missing.json"])
	}
	out := w.ok("bundle", "show", file)
	for _, want := range []string{"shop", "broken", "signal", "playbooks", "heals.ndjson", "logs/ps-"} {
		if !strings.Contains(out, want) {
			t.Errorf("the bundle shows no %q:\n%s", want, out)
		}
	}
	if r := w.run("bundle", "shop", "--output", file); r.code != exitUsage {
		t.Errorf("a file that is there was written over: %d", r.code)
	}
}

func TestAHostileBundleIsRefused(t *testing.T) {
	t.Parallel()
	entry := func(h tar.Header) []byte {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		w := tar.NewWriter(zip)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_ = w.Flush() // of one that says it is huge, the rest is missing
		_ = w.Close()
		if err := zip.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, b := range map[string][]byte{
		"no archive":      []byte("hello"),
		"empty":           entry(tar.Header{Name: "other.json", Typeflag: tar.TypeReg}),
		"a way out":       entry(tar.Header{Name: "../../etc/passwd", Typeflag: tar.TypeReg}),
		"an absolute one": entry(tar.Header{Name: "/etc/passwd", Typeflag: tar.TypeReg}),
		"a link":          entry(tar.Header{Name: "bundle.json", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
		"a device":        entry(tar.Header{Name: "bundle.json", Typeflag: tar.TypeChar}),
		"too much":        entry(tar.Header{Name: "bundle.json", Typeflag: tar.TypeReg, Size: 1 << 40}),
	} {
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readBundle(file); engine.AsCode(err) != engine.Invalid || engine.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
