package engine

import (
	"context"
	"strconv"
	"strings"
)

// FindProcess is the process that a person means by ref: an id, the pid of one
// that runs, or a unique prefix of an id.
func FindProcess(ctx context.Context, e Processes, ref string) (Process, error) {
	p, err := e.ProcessByID(ctx, ProcessID(ref))
	if err == nil || AsCode(err) != NotFound {
		return p, err
	}
	pid, _ := strconv.Atoi(ref)
	prefix := len(ref) > len(ProcessPrefix) && strings.HasPrefix(ref, ProcessPrefix)
	if pid <= 0 && !prefix {
		return Process{}, noProcess(ref)
	}
	all, err := e.ListProcesses(ctx, "")
	if err != nil {
		return Process{}, err
	}
	var hits []Process
	for _, p := range all {
		if prefix && strings.HasPrefix(string(p.ID), ref) || !prefix && p.Running() && p.PID == pid {
			hits = append(hits, p)
		}
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return Process{}, noProcess(ref)
	}
	return Process{}, Errorf(Invalid, "%q fits %d processes", ref, len(hits)).WithHint("type more of the id")
}

func noProcess(ref string) error {
	return Errorf(NotFound, "no process %q", cutRunes(ref, maxQuoted)).WithHint("see them with: sbx ps")
}

// KillTree ends a spawned process and all its children, and returns when they
// are gone. It reports false if there was nothing to kill: the process had
// exited, or isn't there.
func KillTree(ctx context.Context, e Engine, id ProcessID) (killed bool, err error) {
	r, err := e.Do(ctx, NewAction(KillProcess{Process: id}))
	if AsCode(err) == NotFound {
		return false, nil
	}
	if err != nil || r.Note != "" { // it had exited
		return false, err
	}
	p, err := untilOver(ctx, e, id, r.Position, func(Process) {})
	if AsCode(err) == NotFound {
		return true, nil // it went with its sandbox
	}
	if err != nil {
		return false, err
	}
	return p.Exit == nil || p.Exit.Killed, nil
}

// LogEnd is where a stream ends now: the position after its last byte.
func LogEnd(ctx context.Context, e Processes, sandbox SandboxID, id ProcessID, stream Stream) (LogPosition, error) {
	end := LogPosition(0)
	for line, err := range e.Logs(ctx, LogQuery{Sandbox: sandbox, Process: string(id), Stream: stream, Tail: 1}) {
		if err != nil {
			return 0, err
		}
		end = line.Next
	}
	return end, nil
}

// untilOver waits until a process has nothing left to happen, and tells seen
// each row that it comes by. pos is of before.
func untilOver(ctx context.Context, e Engine, id ProcessID, pos Position, seen func(Process)) (Process, error) {
	for {
		p, err := e.ProcessByID(ctx, id)
		if err != nil || p.State.Over() {
			return p, err
		}
		seen(p)
		p, err = overAfter(ctx, e, p, pos, seen)
		if AsCode(err) != Compacted {
			return p, err
		}
		if pos, err = positionOf(ctx, e); err != nil {
			return p, err
		}
	}
}

// overAfter is the row of a process when it is over, from events after pos.
func overAfter(ctx context.Context, e Journal, p Process, pos Position, seen func(Process)) (Process, error) {
	for ev, err := range e.Events(ctx, pos) {
		if err != nil {
			return p, err
		}
		switch b := ev.Body.(type) {
		case ProcessChanged:
			if b.Process.ID != p.ID {
				continue
			}
			if seen(b.Process); b.Process.State.Over() {
				return b.Process, nil
			}
		case SandboxRemoved:
			if b.ID == p.Sandbox {
				return p, Errorf(NotFound, "sandbox %s was removed, and process %s with it", b.ID, p.ID)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return p, err
	}
	return p, Errorf(Unavailable, "the journal ended")
}

func positionOf(ctx context.Context, e Journal) (Position, error) {
	s, err := e.Snapshot(ctx)
	if err != nil {
		return Position{}, err
	}
	return s.Position, nil
}
