package fake

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"

	"sbx/engine"
	"sbx/engine/driver"
)

// Driver makes boxes in memory. The zero value works; Programs must be set
// before the first Start.
type Driver struct {
	// Programs are what commands can run beside the built-in echo, cat, sleep,
	// exit, true, false and env, by name.
	Programs map[string]Program

	mu    sync.Mutex
	boxes map[engine.SandboxID]*Box
	port  int
}

var _ driver.Driver = (*Driver)(nil)

// Isolation says that everything is confined: there is nothing outside.
func (d *Driver) Isolation() engine.Isolation {
	return engine.Isolation{Name: "fake", Confines: true, Facts: []string{"everything is in memory"}}
}

// Boot makes a box; a template's files are all that an origin can give it.
func (d *Driver) Boot(ctx context.Context, b driver.Boot) (driver.Box, error) {
	if !strings.HasPrefix(string(b.ID), engine.SandboxPrefix) {
		return nil, engine.Errorf(engine.Invalid, "%q is no sandbox id", b.ID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if box := d.boxes[b.ID]; box != nil {
		return box, nil
	}
	box := &Box{driver: d, id: b.ID, procs: map[engine.ProcessID]*proc{}, ports: map[int]*listener{}, trees: map[string]map[string]file{}}
	box.files.files = map[string]file{}
	switch {
	case b.Archive != nil:
		if err := (tree{box}).Unpack(ctx, b.Archive); err != nil {
			return nil, err
		}
	case b.Template != nil:
		if err := b.Template(templateWriter{&box.files}); err != nil {
			return nil, err
		}
	}
	if d.boxes == nil {
		d.boxes = map[engine.SandboxID]*Box{}
	}
	d.boxes[b.ID] = box
	return box, nil
}

// Attach finds a box.
func (d *Driver) Attach(_ context.Context, id engine.SandboxID) (driver.Box, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if box := d.boxes[id]; box != nil {
		return box, nil
	}
	return nil, engine.Errorf(engine.NotFound, "%s has no box here", id)
}

// Reap finds nothing: a goroutine dies with its engine.
func (d *Driver) Reap(context.Context) ([]string, error) { return nil, nil }

// Close kills what runs.
func (d *Driver) Close() error {
	d.mu.Lock()
	boxes := slices.Collect(maps.Values(d.boxes))
	d.mu.Unlock()
	for _, b := range boxes {
		if err := b.killAll(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) nextPort() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.port = d.port%1000 + 1
	return 20000 + d.port
}

// Box is a sandbox in memory.
type Box struct {
	driver *Driver
	id     engine.SandboxID
	files  files

	mu    sync.Mutex
	procs map[engine.ProcessID]*proc
	ports map[int]*listener
	trees map[string]map[string]file

	staged map[engine.UploadID][]byte
}

var _ driver.Box = (*Box)(nil)

// Dial connects to a program that listens.
func (b *Box) Dial(ctx context.Context, port int) (net.Conn, error) {
	b.mu.Lock()
	l := b.ports[port]
	b.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errRefused}
	if l == nil {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// FreePort is the next that nothing listens on.
func (b *Box) FreePort(ctx context.Context, taken func(int) bool) (int, error) {
	for range 1000 {
		port := b.driver.nextPort()
		b.mu.Lock()
		held := b.ports[port] != nil
		b.mu.Unlock()
		if !held && (taken == nil || !taken(port)) {
			return port, ctx.Err()
		}
	}
	return 0, engine.Errorf(engine.Exhausted, "no port is free")
}

// PortHolder says which process listens.
func (b *Box) PortHolder(_ context.Context, port int) (driver.Holder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.ports[port]
	if l == nil {
		return driver.Holder{}, nil
	}
	return driver.Holder{Held: true, Own: true, Live: true, PID: l.proc.pid, Name: l.proc.name}, nil
}

// KillStrays finds none.
func (b *Box) KillStrays(context.Context) ([]string, error) { return nil, nil }

// Files are the workspace's.
func (b *Box) Files() driver.Files { return &b.files }

// Usage counts the processes.
func (b *Box) Usage(ctx context.Context) (engine.Usage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return engine.Usage{Processes: len(b.procs)}, ctx.Err()
}

// Disk is what its files are, in bytes.
func (b *Box) Disk(ctx context.Context) (engine.Size, error) {
	return b.files.size(), ctx.Err()
}

// Location is no place on this machine.
func (b *Box) Location() string { return "memory:" + string(b.id) }

// Destroy kills what runs and forgets the box.
func (b *Box) Destroy(ctx context.Context) error {
	if err := b.killAll(ctx); err != nil {
		return err
	}
	b.driver.mu.Lock()
	defer b.driver.mu.Unlock()
	delete(b.driver.boxes, b.id)
	return nil
}

func (b *Box) killAll(ctx context.Context) error {
	b.mu.Lock()
	procs := slices.Collect(maps.Values(b.procs))
	b.mu.Unlock()
	for _, p := range procs {
		if err := p.Kill(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}
