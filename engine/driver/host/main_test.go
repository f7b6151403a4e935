package host_test

import (
	"os"
	"testing"

	"sbx/engine/driver/host"
)

// TestMain is this test binary as the launcher and as a second engine, as
// cmd/sbx is for an engine.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "confine":
			os.Exit(host.ConfineMain(os.Args[2:]))
		case "engine":
			os.Exit(engineMain(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}
