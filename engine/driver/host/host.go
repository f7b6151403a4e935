//go:build linux

package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/driver/host/limit"
	"sbx/engine/shim"
)

// Config is what a [Host] needs to know. Dir and Helper must be set.
type Config struct {
	// Dir is the engine's data directory; boxes are in Dir/boxes.
	Dir string
	// Helper is the argv with which this binary is run again to reach
	// [ConfineMain]; "confine" is appended. {"/proc/self/exe"} for sbx.
	Helper []string
	// Isolation is "bubblewrap", "landlock" or "none"; "" is the strongest
	// that works here.
	Isolation string
	// Require is the weakest that will do; "" is any. Open fails where there is
	// nothing stronger.
	Require string
	// AllowRoot lets an adopted workspace that belongs to root run as root.
	AllowRoot bool
	// PortRange is where FreePort looks, both ends included; zero: 20000 to
	// 29999, below what the kernel hands out by itself.
	PortRange [2]int
	// NoCgroups does without cgroups, as on a host where none can be made.
	NoCgroups bool
	// Protect spares this process when the host's memory runs out, where that is
	// allowed; sandboxes are not spared.
	Protect bool
	// Shims run what is to outlive the engine; nil: nothing does.
	Shims *Shims
	Log   *slog.Logger
}

// Host is the driver for this machine: a box is a directory and the processes
// in it. Open it before use and Close it after.
type Host struct {
	cfg     Config
	root    bool   // the engine runs as root
	tag     string // names this data directory in cgroups and markers
	confine confiner
	iso     engine.Isolation
	env     []string // the allow-list, but HOME
	view    view     // what boxes see of this machine
	exe     *os.File // this binary, to be run as the launcher
	runner  *shim.Runner
	cgroups *cgroups // nil: none here
	limits  *limit.Limiter
	procs   procTable
	kept    keeping

	mu    sync.Mutex
	boxes map[engine.SandboxID]*box
	port  int // where FreePort looks next; engines of one host begin at different places
	uid   int // the next to be tried, of uids
	uids  uidRange
}

var _ driver.Driver = (*Host)(nil)

// engineScore is how unlikely the kernel's choice of the engine is when memory
// runs out.
const engineScore = -900

// New returns a Host that must be opened.
func New(cfg Config) *Host {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.PortRange == [2]int{} {
		cfg.PortRange = [2]int{20000, 29999}
	}
	return &Host{
		cfg: cfg, root: os.Geteuid() == 0, boxes: map[engine.SandboxID]*box{}, port: cfg.PortRange[0],
		kept: keeping{shims: map[string]*shim.Client{}, of: map[engine.SandboxID]*shim.Client{}},
	}
}

// Open finds out what this machine offers, chooses the confinement, and starts
// the thread that processes are started from.
func (h *Host) Open(ctx context.Context) error {
	if err := h.openDir(); err != nil {
		return err
	}
	exe, err := os.Open(h.cfg.Helper[0])
	if err != nil {
		return fmt.Errorf("open the launcher: %w", err)
	}
	h.exe = exe
	keepFilesHome()
	h.runner = shim.OpenRunner(exe)
	if h.cfg.Protect {
		if err := shim.Protect(engineScore); err != nil {
			h.cfg.Log.DebugContext(ctx, "the engine is not protected", "err", err)
		}
	}
	h.see()
	if !h.cfg.NoCgroups {
		h.cgroups = openCgroups(ctx, h)
	}
	h.openLimits()
	err = h.chooseConfiner(ctx)
	if err == nil {
		err = h.checkRequired()
	}
	if err != nil {
		h.Close()
		return err
	}
	if err := h.showBinary(); err != nil {
		h.Close()
		return err
	}
	return h.openBoxesDir()
}

// openDir makes the data directory's path real: mounts and rules name it.
func (h *Host) openDir() error {
	if err := os.MkdirAll(filepath.Join(h.cfg.Dir, "boxes"), 0o700); err != nil {
		return fmt.Errorf("make the boxes' directory: %w", err)
	}
	tries, _ := filepath.Glob(filepath.Join(h.cfg.Dir, "boxes", "try-*")) // the pattern is right
	for _, dir := range tries {
		_ = removeTree(dir) // of an engine that was killed while it began
	}
	dir, err := filepath.EvalSymlinks(h.cfg.Dir)
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return fmt.Errorf("find the data directory: %w", err)
	}
	h.cfg.Dir = dir
	sum := sha256.Sum256([]byte(dir))
	h.tag = hex.EncodeToString(sum[:6])
	h.uids = rangeOf(sum[8:16], readUIDMap())
	h.uid = h.uids.first
	h.port += int(binary.BigEndian.Uint32(sum[6:]) % uint32(h.cfg.PortRange[1]-h.cfg.PortRange[0]+1))
	return nil
}

// openBoxesDir lets boxes through to their own directory: a box's is its own
// group's. Where the confinement hides the data directory, its mode stays.
func (h *Host) openBoxesDir() error {
	if !h.root {
		return nil
	}
	dirs := []string{h.boxesDir()}
	if !h.confine.hides() {
		dirs = append(dirs, h.cfg.Dir)
	}
	for _, dir := range dirs {
		fi, err := os.Stat(dir)
		if err == nil {
			err = os.Chmod(dir, fi.Mode().Perm()|0o011)
		}
		if err != nil {
			return fmt.Errorf("let boxes through %s: %w", dir, err)
		}
	}
	return nil
}

// keepFilesHome closes what this process has inherited to its children: Go's
// own descriptors are closed to them already.
func keepFilesHome() {
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // an old kernel: then not
}

func (h *Host) boxesDir() string { return filepath.Join(h.cfg.Dir, "boxes") }

// Isolation is the confinement in force.
func (h *Host) Isolation() engine.Isolation { return h.iso }

// Close kills what still runs but in shims, waits for it, and ends the starting
// thread. Closing again does nothing.
func (h *Host) Close() error {
	if h.runner == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	for _, b := range h.open() {
		if err := b.killOurs(ctx); err != nil {
			h.cfg.Log.Warn("close the driver", "sandbox", b.id, "err", err)
		}
	}
	h.leaveShims()
	h.runner.Close()
	h.runner = nil
	if h.cgroups != nil {
		h.cgroups.close()
	}
	h.limits.Close()
	return h.exe.Close()
}

// open are the boxes that this Host has handed out.
func (h *Host) open() []*box {
	h.mu.Lock()
	defer h.mu.Unlock()
	boxes := make([]*box, 0, len(h.boxes))
	for _, b := range h.boxes {
		boxes = append(boxes, b)
	}
	return boxes
}
