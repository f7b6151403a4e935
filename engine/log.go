package engine

import "time"

// LogPosition is a byte offset in one stream's log. It stays true for ever:
// what falls off the old end keeps its numbers.
type LogPosition int64

// Stream is which output of a process.
type Stream string

// The streams. An app has one ("out" holds both); a spawned command has two.
const (
	Stdout Stream = "out"
	Stderr Stream = "err"
)

// LogLine is one line that a process wrote. Text is what it wrote, without the
// line's end; it is hostile until sanitised.
type LogLine struct {
	Process ProcessID `json:"process"`
	Stream  Stream    `json:"stream,omitempty"`
	// Pos is the position of the line's first byte, Next that of the line after
	// it: what a reader resumes from.
	Pos  LogPosition `json:"pos"`
	Next LogPosition `json:"next"`
	Time time.Time   `json:"time"` // when it arrived, to about a second
	Text string      `json:"text"`
	// Lost is how many bytes before this line fell off before they were read.
	Lost int64 `json:"lost,omitempty"`
	// Partial: the line goes on in the next LogLine (it is longer than
	// [MaxLogLine]), or, when not following, has no end yet.
	Partial bool `json:"partial,omitempty"`
}

// MaxLogLine is the longest text of one [LogLine].
const MaxLogLine = 64 << 10

// LogQuery selects lines of one process.
type LogQuery struct {
	Sandbox SandboxID `json:"sandbox"`
	// Process is whose log: an id, or a supervised process's name; "": the app.
	Process string `json:"process,omitempty"`
	Stream  Stream `json:"stream,omitempty"` // "": Stdout
	// After is where to begin. With Tail set, the last Tail lines if After is 0.
	After LogPosition `json:"after,omitempty"`
	Tail  int         `json:"tail,omitempty"`
	Since time.Time   `json:"since,omitzero"`
	// SinceStart begins at the process's last start.
	SinceStart bool `json:"sinceStart,omitempty"`
	// Follow waits for more at the end, until ctx ends.
	Follow bool `json:"follow,omitempty"`
}
