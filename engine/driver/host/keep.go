//go:build linux

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/shim"
)

// Shims are the processes that run what is to outlive the engine.
type Shims struct {
	// Args lead this binary to [shim.Main].
	Args []string
	// Logs is the directory of logs.
	Logs string
	// Per is how many sandboxes share one; 0: 64.
	Per int
	// Idle is how long one stays that has nothing to do; 0: a minute.
	Idle time.Duration
}

const shimsPer = 64

// keeping is what a Host knows of its shims.
type keeping struct {
	mu     sync.Mutex
	shims  map[string]*shim.Client // by directory
	of     map[engine.SandboxID]*shim.Client
	next   int
	closed bool
}

// shimBox is a box that keeps.
type shimBox struct{ *box }

var (
	_ driver.Keeper    = shimBox{}
	_ driver.Inheritor = (*Host)(nil)
)

func (h *Host) shimsDir() string { return filepath.Join(h.cfg.Dir, "shims") }

// version tells one build of this program from another.
func (h *Host) version() string { return shim.BuildOf(h.exe) }

// Inherit takes over what shims keep for this data directory.
func (h *Host) Inherit(ctx context.Context) ([]driver.KeptProcess, error) {
	if err := h.inherit(ctx); err != nil {
		return nil, err
	}
	var list []driver.KeptProcess
	for _, b := range h.open() {
		b.mu.Lock()
		for id, p := range b.kept {
			list = append(list, driver.KeptProcess{Sandbox: b.id, Process: id, Exited: p.child != nil && p.isOver()})
		}
		b.mu.Unlock()
	}
	return list, nil
}

// inherit finds the shims of engines before this one, has those of another
// build execute this one, and takes over what they keep.
func (h *Host) inherit(ctx context.Context) error {
	if h.cfg.Shims == nil {
		return nil
	}
	if err := os.MkdirAll(h.shimsDir(), 0o700); err != nil {
		return fmt.Errorf("make the shims' directory: %w", err)
	}
	entries, err := os.ReadDir(h.shimsDir())
	if err != nil {
		return fmt.Errorf("look for shims: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(h.shimsDir(), e.Name())
		n, _ := strconv.Atoi(e.Name())
		h.kept.next = max(h.kept.next, n)
		if err := h.inheritShim(ctx, dir); err != nil {
			h.cfg.Log.Warn("taking over a shim", "dir", dir, "err", err)
		}
	}
	return nil
}

func (h *Host) inheritShim(ctx context.Context, dir string) error {
	c, err := shim.Connect(ctx, dir, h.cfg.Log)
	if errors.Is(err, engine.Unavailable) {
		return h.inheritExits(dir)
	}
	if err != nil {
		return err
	}
	if was := c.Hello(); was.Boot != shim.BootID() {
		c.Close()
		return fmt.Errorf("it is of another boot")
	}
	upgrade, cancel := context.WithTimeout(ctx, killTimeout)
	changed, err := c.Upgrade(upgrade, h.exe, h.version())
	cancel()
	switch {
	case err != nil:
		h.cfg.Log.Warn("a shim goes on with its old binary", "dir", dir, "err", err)
	case changed:
		h.cfg.Log.Info("a shim executes this binary now", "dir", dir, "pid", c.Hello().PID)
	}
	procs := map[string]*proc{}
	list, err := c.Adopt(ctx, func(s shim.State) shim.Hooks {
		p := h.inheritedProc(s)
		procs[s.ID] = p
		return p.hooks()
	})
	if err != nil {
		c.Close()
		return err
	}
	h.hold(dir, c)
	for _, r := range list {
		p := procs[r.State().ID]
		if p == nil {
			p = h.inheritedProc(r.State())
		}
		h.takeOver(ctx, p, r, c)
	}
	return nil
}

// inheritExits takes over what a shim that is gone has left to be told.
func (h *Host) inheritExits(dir string) error {
	exits, err := shim.Exits(dir)
	if err != nil {
		return err
	}
	if len(exits) == 0 {
		return os.RemoveAll(dir)
	}
	for _, s := range exits {
		h.takeOver(context.Background(), h.inheritedProc(s), shim.Left(dir, s), nil)
	}
	return nil
}

func (h *Host) inheritedProc(s shim.State) *proc {
	return &proc{
		id: engine.ProcessID(s.ID), mark: strings.TrimPrefix(s.Tree.Mark, h.marker("")), cg: s.Tree.Cgroup,
		begun: make(chan struct{}), gone: make(chan struct{}),
	}
}

// takeOver gives a process to its box. One whose box is gone has no business
// here.
func (h *Host) takeOver(ctx context.Context, p *proc, r *shim.Remote, c *shim.Client) {
	s := r.State()
	found, err := h.Attach(ctx, engine.SandboxID(s.Box))
	if err != nil {
		close(p.begun)
		h.cfg.Log.Warn("killing a process without a sandbox", "process", s.ID, "sandbox", s.Box, "err", err)
		go func() { // it is heard by its shim, or found as a stray
			ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
			defer cancel()
			if r.Kill(ctx, 0) == nil {
				r.Forget()
			}
		}()
		return
	}
	b := plain(found)
	p.box = b
	b.mu.Lock()
	p.child = r
	b.kept[p.id] = p
	if s.Exit == nil {
		b.procs[p.id] = p
	}
	b.mu.Unlock()
	if c != nil {
		h.kept.mu.Lock()
		h.kept.of[b.id] = c
		h.kept.mu.Unlock()
	}
	close(p.begun)
}

// Kept is what goes on in a data directory whose engine is gone; it only looks.
func Kept(ctx context.Context, dir string) (list []driver.KeptProcess) {
	ctx, cancel := context.WithTimeout(ctx, peekWithin)
	defer cancel()
	dirs, _ := filepath.Glob(filepath.Join(dir, "shims", "[0-9]*")) // the pattern is right
	for _, dir := range dirs {
		states, err := shim.Peek(ctx, dir)
		if err != nil {
			continue // it has ended, or can't be asked: nothing is known to go on
		}
		for _, s := range states {
			list = append(list, driver.KeptProcess{
				Sandbox: engine.SandboxID(s.Box), Process: engine.ProcessID(s.ID), Exited: s.Exit != nil,
			})
		}
	}
	return list
}

// peekWithin bounds a look at all shims.
const peekWithin = 5 * time.Second

// plain is the box behind what Attach returns.
func plain(b driver.Box) *box {
	if s, ok := b.(shimBox); ok {
		return s.box
	}
	return b.(*box)
}

// hold keeps a shim's connection until the shim is gone.
func (h *Host) hold(dir string, c *shim.Client) {
	h.kept.mu.Lock()
	defer h.kept.mu.Unlock()
	h.kept.shims[dir] = c
	go h.watchShim(dir, c)
}

// watchShim forgets a shim that has ended. It ends with its connection, too.
func (h *Host) watchShim(dir string, c *shim.Client) {
	select {
	case <-c.Dead():
	case <-c.Ended():
		return
	}
	h.kept.mu.Lock()
	defer h.kept.mu.Unlock()
	delete(h.kept.shims, dir)
	shim.Tidy(dir)
	for id, of := range h.kept.of {
		if of == c {
			delete(h.kept.of, id)
		}
	}
}

// shimOf is the shim that runs a sandbox, or is to.
func (h *Host) shimOf(ctx context.Context, id engine.SandboxID) (*shim.Client, error) {
	h.kept.mu.Lock()
	defer h.kept.mu.Unlock()
	if h.kept.closed {
		return nil, engine.Errorf(engine.Unavailable, "the engine is leaving")
	}
	if c := h.kept.of[id]; c != nil && c.Alive() {
		return c, nil
	}
	load := map[*shim.Client]int{}
	for _, c := range h.kept.of {
		load[c]++
	}
	for _, c := range h.kept.shims {
		if load[c] < h.shimsPer() && c.Alive() {
			h.kept.of[id] = c
			return c, nil
		}
	}
	c, err := h.launchShim(ctx)
	if err != nil {
		return nil, err
	}
	h.kept.of[id] = c
	return c, nil
}

func (h *Host) shimsPer() int {
	if h.cfg.Shims.Per > 0 {
		return h.cfg.Shims.Per
	}
	return shimsPer
}

// launchShim starts one more. The caller holds the lock.
func (h *Host) launchShim(ctx context.Context) (*shim.Client, error) {
	h.kept.next++
	dir := filepath.Join(h.shimsDir(), strconv.Itoa(h.kept.next))
	idle := h.cfg.Shims.Idle
	if idle <= 0 {
		idle = shim.DefaultIdle
	}
	c, err := shim.Launch{
		Exe: h.exe, Name: h.cfg.Helper[0], Args: append(h.cfg.Helper[1:], h.cfg.Shims.Args...), Dir: dir,
		Logs: h.cfg.Shims.Logs, Idle: idle, Log: h.cfg.Log,
	}.Run(context.WithoutCancel(ctx))
	if err != nil {
		_ = os.RemoveAll(dir) // of no use
		return nil, err
	}
	h.kept.shims[dir] = c
	go h.watchShim(dir, c)
	return c, nil
}

// release forgets which shim ran a sandbox that is gone.
func (h *Host) releaseShim(id engine.SandboxID) {
	h.kept.mu.Lock()
	defer h.kept.mu.Unlock()
	delete(h.kept.of, id)
}

// leaveShims hangs up; what they run goes on.
func (h *Host) leaveShims() {
	h.kept.mu.Lock()
	h.kept.closed = true
	var all []*shim.Client
	for _, c := range h.kept.shims {
		all = append(all, c)
	}
	h.kept.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}
