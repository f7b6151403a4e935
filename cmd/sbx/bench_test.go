package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sbx/engine"
	"sbx/store"
)

// benchEngine is a real engine over 200 sandboxes that are stopped.
func benchEngine(b *testing.B) (home string) {
	b.Helper()
	home = filepath.Join(b.TempDir(), "data")
	if err := os.MkdirAll(home, 0o700); err != nil {
		b.Fatal(err)
	}
	st, err := store.Open(context.Background(), home, store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	err = st.Update(context.Background(), func(tx *store.Tx) error {
		for i := range 200 {
			sb := engine.Sandbox{
				ID: engine.SandboxID(engine.NewID(engine.SandboxPrefix)), Name: fmt.Sprintf("app-%03d", i), Owner: "dana",
				Wanted: engine.Down, State: engine.Cold, Health: engine.Unknown, Created: tx.Now,
			}
			if err := tx.PutSandbox(&sb); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--detach", "--listen", "none", "--home", home)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("serve: %v\n%s", err, out)
	}
	b.Cleanup(func() { stopOwner(home) })
	return home
}

// BenchmarkLs is the whole process of listing 200 sandboxes.
func BenchmarkLs(b *testing.B) {
	home := benchEngine(b)
	for b.Loop() {
		if out, err := exec.Command(binary, "ls", "--home", home).CombinedOutput(); err != nil {
			b.Fatalf("ls: %v\n%s", err, out)
		}
	}
}

// BenchmarkFloorCobra is a bare cobra binary that fetches from a unix socket.
func BenchmarkFloorCobra(b *testing.B) {
	home := benchEngine(b)
	floor := filepath.Join(b.TempDir(), "floor")
	if out, err := exec.Command("go", "build", "-o", floor, "./internal/floor").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	b.ResetTimer()
	for b.Loop() {
		if out, err := exec.Command(floor, socketPath(home)).CombinedOutput(); err != nil {
			b.Fatalf("floor: %v\n%s", err, out)
		}
	}
}
