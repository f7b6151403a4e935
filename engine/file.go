package engine

import (
	"io/fs"
	"time"
)

// FileInfo is one entry of a directory in a workspace.
type FileInfo struct {
	Name    string      `json:"name"`
	Size    int64       `json:"size"`
	Mode    fs.FileMode `json:"mode"`
	ModTime time.Time   `json:"modTime"`
	// Target is where a symbolic link points.
	Target string `json:"target,omitempty"`
}

// Version names the content of a file, so that a save can say what it
// replaces. "" is a file that isn't there.
type Version string

// File is a file in a workspace with its content.
type File struct {
	FileInfo
	Version Version `json:"version"`
	Data    []byte  `json:"data"`
}

// MaxFile is the largest file that [Files] reads or writes.
const MaxFile = 8 << 20

// Checkpoint is a workspace as it was, kept outside of it.
type Checkpoint struct {
	ID      CheckpointID `json:"id"`
	Sandbox SandboxID    `json:"sandbox"`
	Run     RunID        `json:"run,omitempty"` // made for this run
	// Good: the sandbox had been ready for a minute.
	Good bool   `json:"good,omitempty"`
	Note string `json:"note,omitempty"`
	// Tree is the driver's name for the content.
	Tree    string    `json:"tree"`
	Created time.Time `json:"created"`
}

// Change is one path that differs between two moments of a workspace.
type Change struct {
	Path   string     `json:"path"`
	Status ChangeKind `json:"status"`
	// Before and After name the contents; "" where there is none.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// ChangeKind is how a path differs.
type ChangeKind string

// The kinds of changes, as git letters them.
const (
	Added    ChangeKind = "A"
	Modified ChangeKind = "M"
	Deleted  ChangeKind = "D"
)

// Diff is what changed between two checkpoints.
type Diff struct {
	Changes []Change `json:"changes"`
	// Patch is the unified diff, at most 256 KiB of it.
	Patch string `json:"patch"`
	Cut   bool   `json:"cut,omitempty"` // the patch was cut there
}
