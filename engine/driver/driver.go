// Package driver is the port to what a sandbox runs on. Engine code speaks to
// a Driver; only a driver knows what a local pid or directory is.
//
// The one rule: paths that cross it are relative to the workspace, processes
// are named by engine ids, and a port is asked of the Box, never assumed to be
// on localhost. Package drivertest is the contract.
package driver

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"sbx/engine"
)

// A Driver makes sandboxes and finds those that it made before.
type Driver interface {
	// Isolation is the confinement in force on this host.
	Isolation() engine.Isolation
	// Boot makes the box of a new sandbox, its workspace included, and returns
	// it. A box that is there already is returned as by Attach, its workspace
	// as it was: booting twice makes nothing twice.
	Boot(ctx context.Context, b Boot) (Box, error)
	// Attach finds the box of a sandbox that was booted before, after an engine
	// restart too; engine.NotFound if there is none.
	Attach(ctx context.Context, id engine.SandboxID) (Box, error)
	// Reap kills everything that boxes left running which no Box of this
	// Driver has started: what an engine that was killed left behind. It
	// returns when that is gone, with what it killed in words.
	Reap(ctx context.Context) ([]string, error)
	// Close releases what the driver holds. Boxes must have been released.
	Close() error
}

// Boot is what a new box is made of.
type Boot struct {
	ID     engine.SandboxID
	Spec   engine.Spec
	Origin engine.Origin
	// Template unpacks a template into the empty workspace; set when
	// Origin.Kind is engine.FromTemplate. It writes regular files only.
	Template func(w FileWriter) error
	// Archive, if set, is a tar by [Archives.Pack]: the workspace is made of it
	// instead of the origin. Boot reads it to its end, and nothing is made if
	// that fails.
	Archive io.Reader
	// Anew makes the workspace of a box that has lost it; the box's own things
	// stay. An adopted workspace is never made.
	Anew bool
}

// ErrWorkspaceGone is the error of a box whose workspace somebody deleted
// behind the engine's back.
var ErrWorkspaceGone = errors.New("its workspace is gone")

// IsWorkspaceGone reports whether that is what an error says.
func IsWorkspaceGone(err error) bool { return errors.Is(err, ErrWorkspaceGone) }

// FileWriter takes the files of a template.
type FileWriter interface {
	WriteFile(name string, mode uint32, data []byte) error
}

// Box is one sandbox's place to run: a workspace and its processes.
type Box interface {
	// Start starts a process. Its output goes to out and err, which the box
	// closes when the process's last writer has gone, or soon after its exit
	// (a grandchild may hold the pipe); err nil: both streams go to out.
	// The error says what is wrong with the command, and is engine.Unavailable
	// when the host is short of something.
	Start(ctx context.Context, id engine.ProcessID, cmd Command, out, err io.WriteCloser) (Proc, error)
	// Dial connects to a port that a process in the box listens on.
	Dial(ctx context.Context, port int) (net.Conn, error)
	// FreePort finds a port that nothing listens on and that is not in taken.
	FreePort(ctx context.Context, taken func(int) bool) (int, error)
	// PortHolder says who listens on a port, as far as the host tells.
	PortHolder(ctx context.Context, port int) (Holder, error)
	// KillStrays kills processes of this box that are no live Proc's: orphans
	// of an earlier start. It returns what it killed in words.
	KillStrays(ctx context.Context) ([]string, error)
	Files() Files
	Tree() Tree
	Checkpoints() Checkpoints
	// Archives are of the workspace as one stream.
	Archives() Archives
	Usage(ctx context.Context) (engine.Usage, error)
	// Disk is what the sandbox's files take. It is cheap to ask for again and
	// again, and may be some moments old.
	Disk(ctx context.Context) (engine.Size, error)
	// Location is where the workspace lies, for people.
	Location() string
	// Destroy kills what runs and deletes the workspace (an adopted one stays)
	// and all that belongs to it.
	Destroy(ctx context.Context) error
}

// Profile is what a process may do, weakest confinement first.
type Profile string

// The profiles. In all of them nothing outside the workspace is writable, the
// engine's directory and other workspaces can't be seen, and the environment
// is PATH HOME LANG TERM TZ and Command.Env.
const (
	// ProfileApp is for what the sandbox runs itself: the app, spawned
	// commands, install and check.
	ProfileApp Profile = "app"
	// ProfileAgent is for what a model asked for: protected paths and .git are
	// read-only, and there is no network unless Command.Network is set.
	ProfileAgent Profile = "agent"
)

// Command is a command and the confinement it runs in.
type Command struct {
	engine.Command
	Profile   Profile
	Protected []string // workspace paths that are read-only; for ProfileAgent
	Network   bool     // for ProfileAgent; an app always has it
	Stdin     bool     // keep an input open; else it reads end-of-file
	// Limits are those of the whole sandbox from now on, where the host can
	// enforce them; nil: as they are.
	Limits *engine.Limits
	// Terminal: run it on a terminal of its own, which its three streams are.
	// Input then types, and what is printed is the one output.
	Terminal *Terminal
}

// Terminal is how a command's terminal begins.
type Terminal struct {
	Size engine.TermSize
}

// Proc is a started process with all its descendants.
type Proc interface {
	PID() int
	// Wait returns when the process has exited, from the kernel's own notice.
	// It may be called by many and again.
	Wait(ctx context.Context) (engine.Exit, error)
	// Signal sends a signal ("SIGTERM") to the whole tree.
	Signal(ctx context.Context, name string) error
	// Kill sends TERM to the whole tree, KILL after grace, and returns when
	// nothing of it is left. The exit then has Killed set.
	Kill(ctx context.Context, grace time.Duration) error
	// Input is the process's stdin; nil without Command.Stdin or a terminal.
	// Closing a terminal's does nothing: its program has one way out, its own.
	Input() io.WriteCloser
	// Resize gives its terminal a size, and tells the program if that is
	// another one. Without a terminal it is a Conflict.
	Resize(ctx context.Context, size engine.TermSize) error
}

// Holder is who listens on a port.
type Holder struct {
	Held bool
	// Own: a process of this box does; Live: of one of its live Procs.
	Own, Live bool
	PID       int
	Name      string // of the program
}

// Files are those of a workspace. No name leaves it, symbolic links included.
type Files interface {
	ReadDir(ctx context.Context, dir string) ([]engine.FileInfo, error)
	// ReadFile reads a regular file of at most engine.MaxFile bytes; offset and
	// limit (0: all) read a part of a larger one.
	ReadFile(ctx context.Context, name string, offset, limit int64) (engine.File, error)
	// WriteFile replaces a file or makes one with its directories, beside and
	// renamed, keeping mode and owner. replaces is engine.Version of what is
	// there ("" nothing); another one is a Conflict. Symbolic links, hard links
	// and whatever is no regular file are refused.
	WriteFile(ctx context.Context, name string, replaces engine.Version, data []byte) (engine.Version, error)
	// Walk calls fn for every entry but those of rebuildable directories
	// (node_modules, .venv, …) and .git, sorted, until fn says stop.
	Walk(ctx context.Context, dir string, fn func(name string, fi engine.FileInfo) (stop bool)) error
}

// Checkpoints keep a workspace's content outside of it and of its own git.
// Rebuildable directories are in none. Everything runs confined, as the
// workspace's owner.
type Checkpoints interface {
	// Save keeps the workspace as it is and returns its name. Saving what has
	// not changed is cheap. Unavailable, saying so, where there is no git.
	Save(ctx context.Context, note string) (tree string, err error)
	// Diff is what changed from one saved tree to another.
	Diff(ctx context.Context, from, to string) (engine.Diff, error)
	// Restore puts paths back as they were in tree: content, executable bit,
	// link target, or absence. Nothing else changes.
	Restore(ctx context.Context, tree string, paths []string) error
	// Drop forgets trees but those in keep.
	Drop(ctx context.Context, keep []string) error

	// Dirty are the paths that the workspace's own git repository shows as
	// changed, staged or untracked. ok is false if there is no repository;
	// why then says so, or why a commit is impossible (a merge in progress).
	Dirty(ctx context.Context) (paths []string, ok bool, why string, err error)
	// Commit commits exactly paths to the workspace's own repository through a
	// private index, hooks off. The user's index keeps what was staged.
	Commit(ctx context.Context, paths []string, message string) (commit string, err error)
}

// Tree is the workspace's files as people and scripts handle them: streamed,
// moved, deleted. Names are as in [Files], and no part of one that is changed
// may be a symbolic link.
type Tree interface {
	// Open is engine.Files.OpenFile.
	Open(ctx context.Context, name string, offset int64) (engine.File, io.ReadCloser, error)
	// Stage keeps what r has, outside of the workspace, until Place takes it.
	// What nothing took for a day is deleted by a later Stage.
	Stage(ctx context.Context, id engine.UploadID, r io.Reader) error
	// Place puts a staged upload at its place, as [Files.WriteFile] does.
	Place(ctx context.Context, p engine.PlaceFile) (engine.Version, error)
	// MakeDir makes a directory and those above it; made is false if it was there.
	MakeDir(ctx context.Context, name string) (made bool, err error)
	Rename(ctx context.Context, from, to string, overwrite bool) error
	Remove(ctx context.Context, name string, recursive bool) error
}

// Archives make one stream of a workspace and a workspace of one. Everything
// is in it but rebuildable directories, unless they are asked for: the
// repository, links, modes, times, empty directories. Owners aren't: what is
// restored is the sandbox's. Sockets, FIFOs and devices are left out.
type Archives interface {
	// Fingerprint tells this state of the workspace from any other by its
	// files' names, sizes and times; "" while one is so young that it couldn't.
	Fingerprint(ctx context.Context, rebuildable bool) (string, error)
	// Pack writes the workspace as a tar.
	Pack(ctx context.Context, w io.Writer, rebuildable bool) (Packed, error)
	// Unpack makes the workspace what a tar by Pack has: beside it first, then
	// swapped, so that one that fails changes nothing. Processes must be down.
	Unpack(ctx context.Context, r io.Reader) error
}

// Packed is what Pack wrote.
type Packed struct {
	Files, Bytes int64
	Fingerprint  string
	// LeftOut are entries that no archive can hold or that the sandbox itself
	// can't read; Unsettled are files that changed while they were read. At
	// most 100 of each.
	LeftOut, Unsettled []string
}
