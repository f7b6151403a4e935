//go:build linux

// Package host is the driver for the machine that the engine runs on: a box is
// a directory of the data directory, and processes that are kept in it.
//
//	Dir/boxes/<sandbox>/box.json     what is remembered; written last, so that it makes the box
//	                    workspace/   unless it is adopted
//	                    home/        HOME of the app
//	                    checkpoints  the workspace as it was
//
// The one rule: nothing of a sandbox runs in the engine's name. Every program
// is started by the launcher ([ConfineMain]: this binary again), which gives
// up all privileges before it becomes the program; what it may see and write is
// decided before that, by descriptors and not by names that a sandbox could
// change meanwhile.
//
//	engine ── ForkExec on one locked thread, born in a cgroup
//	   └─ bwrap ── namespaces, what is in view ── launcher ── protects, drops, execs ── /bin/sh -c …
//	   └─ launcher ── Landlock and seccomp instead ── /bin/sh -c …
//
// # Decisions
//
// The workspace lies at its true path inside, too. Context: it could be mounted
// at one fixed path. Because a Python environment, an adopted directory's
// caches and every debugger name files by their path. Costs: a sandbox learns
// where the data directory is, though not what is in it.
//
// Protected paths are mounted by the launcher, inside, not by bubblewrap.
// Because bubblewrap follows links in the workspace while the sandbox may be
// changing them, and has no way to take a descriptor before 0.10. Costs: the
// launcher has CAP_SYS_ADMIN over its own mounts for a moment; an ordinary
// user's agent has no pseudo-terminals.
//
// A protected path that is missing gets a stand-in: see mask.
//
// The environment travels in a memory file, never in bwrap's own: bwrap may be
// root and is linked dynamically, and a sandbox may set LD_PRELOAD.
//
// Exits are read from pidfds in the runtime's poller: no thread per child.
package host
