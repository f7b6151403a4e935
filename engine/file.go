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
// replaces. "" is a file that isn't there. Of a file larger than [MaxFile] it
// names the moment of its last change instead.
type Version string

// File is a file in a workspace with its content.
type File struct {
	FileInfo
	Version Version `json:"version"`
	Data    []byte  `json:"data"`
}

// MaxFile is the largest file that [Files] reads or writes in one piece.
// Larger ones are streams: [Files.OpenFile] and [Files.Upload].
const MaxFile = 8 << 20

// Checkpoint is a workspace as it was, kept outside of it.
type Checkpoint struct {
	ID      CheckpointID `json:"id"`
	Sandbox SandboxID    `json:"sandbox"`
	Run     RunID        `json:"run,omitempty"` // made for this run
	// Good: the sandbox had been ready for a minute.
	Good bool   `json:"good,omitempty"`
	Note string `json:"note,omitempty"`
	// Manual: somebody asked for it.
	Manual bool `json:"manual,omitempty"`
	// Change is what was done to the files after this was saved, by an action
	// that [Undo] can take back.
	Change *FileChange `json:"change,omitempty"`
	// Tree is the driver's name for the content.
	Tree    string    `json:"tree"`
	Created time.Time `json:"created"`
}

// FileChange is what an operator's action did to the files of a workspace.
type FileChange struct {
	By    Actor  `json:"by"`
	Words string `json:"words"` // "write src/index.js"
	// Paths are what it changed, at most [MaxChangePaths] of More+len(Paths).
	Paths []string `json:"paths,omitempty"`
	More  int      `json:"more,omitempty"`
	// After is the driver's name for the content after it.
	After string `json:"after"`
	// Undone: it was taken back. Undoes is the change that this one took back.
	Undone bool         `json:"undone,omitempty"`
	Undoes CheckpointID `json:"undoes,omitempty"`
}

// MaxChangePaths is how many paths a [FileChange] lists.
const MaxChangePaths = 100

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

// UploadID names what was brought by [Files.Upload].
type UploadID string

// FindQuery looks for files in a workspace. Rebuildable directories and .git
// are not looked into, binary files and those over [MaxFile] not searched.
type FindQuery struct {
	Sandbox SandboxID `json:"sandbox"`
	Dir     string    `json:"dir,omitempty"`
	// Name selects files: a pattern as in *.go, or a part of the path; case
	// doesn't count.
	Name string `json:"name,omitempty"`
	// Text selects lines. Without it files are found, not lines.
	Text string `json:"text,omitempty"`
	// Regexp: Text is a regular expression. Fold: case doesn't count.
	Regexp bool `json:"regexp,omitempty"`
	Fold   bool `json:"fold,omitempty"`
	// After resumes behind a line that was found.
	After FindPosition `json:"after,omitzero"`
	Limit int          `json:"limit,omitempty"` // 0 or more than MaxFound: MaxFound
}

// MaxFound is how much one [Files.Find] yields at most.
const MaxFound = 10_000

// FindPosition is a place in what is found: a path and a line in it.
type FindPosition struct {
	Name string `json:"name"`
	Line int    `json:"line,omitempty"`
}

// Found is a file, or a line of one.
type Found struct {
	FindPosition
	Text string `json:"text,omitempty"` // of the line, at most 400 bytes of it
	Size int64  `json:"size,omitempty"` // of the file
}
