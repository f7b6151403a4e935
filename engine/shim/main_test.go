//go:build linux

package shim

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sbx/engine"
	"sbx/engine/logs"
)

// This test's binary is the shim, too.
var isShim = OnMainThread(os.Args)

func TestMain(m *testing.M) {
	if isShim {
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// den is a directory with a shim.
type den struct {
	t         *testing.T
	dir, logs string
	idle      time.Duration
}

func newDen(t *testing.T, idle time.Duration) *den {
	t.Helper()
	base := t.TempDir()
	return &den{t: t, dir: filepath.Join(base, "1"), logs: filepath.Join(base, "logs"), idle: idle}
}

// launch starts the shim, which ends with the test.
func (d *den) launch() *Client {
	d.t.Helper()
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		d.t.Fatal(err)
	}
	defer exe.Close()
	c, err := Launch{
		Exe: exe, Name: os.Args[0], Args: []string{"shim"}, Dir: d.dir, Logs: d.logs, Idle: d.idle, Log: quiet(),
	}.Run(bounded(d.t))
	if err != nil {
		d.t.Fatal(err)
	}
	self := c.self
	d.t.Cleanup(func() {
		SignalOne(self, 9)
		until(d.t, "the shim is gone", func() bool { return !alive(self) })
	})
	d.t.Cleanup(c.Close)
	return c
}

// connect is another engine's connection.
func (d *den) connect() *Client {
	d.t.Helper()
	c, err := Connect(bounded(d.t), d.dir, quiet())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(c.Close)
	return c
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func alive(s Stat) bool {
	now, ok := StatOf(s.PID)
	return ok && now.Start == s.Start && !now.Dead()
}

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// until waits for what only another process can make true.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); _ = Pause(context.Background(), 5*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func shell(id, command string) Order {
	return Order{
		ID: id, Box: "sb-test", Mark: "SBX_BOX=test/" + id, Argv: []string{"/bin/sh", "-c", command},
		Env: []string{"PATH=" + os.Getenv("PATH"), "SBX_BOX=test/" + id}, Log: &Log{Final: true},
	}
}

func (d *den) start(c *Client, o Order) *Remote {
	d.t.Helper()
	r, err := c.Start(bounded(d.t), o, Hooks{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { // the shim's end may leave it
		for _, s := range r.Members() {
			SignalOne(s, 9)
		}
	})
	return r
}

func (d *den) ended(r *Remote) engine.Exit {
	d.t.Helper()
	exit, err := r.Wait(bounded(d.t))
	if err != nil {
		d.t.Fatal(err)
	}
	return exit
}

// said is what a child's log holds.
func (d *den) said(id string) (text string) {
	d.t.Helper()
	s, err := logs.Open(d.logs, logs.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	for m, err := range s.Moments(bounded(d.t), engine.ProcessID(id), engine.Stdout) {
		if err != nil {
			return text
		}
		text += string(m.Data)
	}
	return text
}
