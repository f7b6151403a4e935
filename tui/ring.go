package tui

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"sbx/engine"
	"sbx/tui/clean"
)

const (
	// keptLines and keptBytes bound what a log pane holds.
	keptLines = 10_000
	keptBytes = 16 << 20
	// shownBytes is how much of one line is ever drawn.
	shownBytes = 8 << 10
)

// logLine is a line with what was found out when it was first shown.
type logLine struct {
	engine.LogLine
	shown string // clean, with its own colours; "" until drawn
	level level
	known bool
	gap   *gap // it isn't a line: here the connection was lost
}

// gap is a time without connection, and what was caught up on after it.
type gap struct {
	since, until time.Time // until is zero while it lasts
	lines        int
	lost         int64
}

// words are the gap's line in the log.
func (g *gap) words(now time.Time) string {
	if g.until.IsZero() {
		return "── without connection since " + clock(g.since) + ", " + span(now.Sub(g.since)) + " ──"
	}
	caught, lost := "nothing was written", ", none lost"
	if g.lines > 0 {
		caught = plural(g.lines, "line") + " caught up"
	}
	if g.lost > 0 {
		lost = fmt.Sprintf(", %d bytes lost", g.lost)
	}
	return "── " + span(g.until.Sub(g.since)) + " without connection: " + caught + lost + " ──"
}

// level is how serious a line looks.
type level int

const (
	levelNone level = iota
	levelWarn
	levelError
)

var (
	errorWords = regexp.MustCompile(`(?i)\b(error|fatal|panic|exception|uncaught|unhandled|traceback)\b|[a-z]Error\b`)
	warnWords  = regexp.MustCompile(`(?i)\bwarn(ing)?\b`)
)

// prepare makes the line fit to be drawn.
func (l *logLine) prepare() {
	if l.shown == "" {
		l.shown = clean.Colors(l.Text[:min(len(l.Text), shownBytes)])
	}
	l.rate()
}

// rate finds the level out. Who writes a level writes it early in the line.
func (l *logLine) rate() {
	if l.known {
		return
	}
	l.known = true
	switch text := l.Text[:min(len(l.Text), 512)]; {
	case errorWords.MatchString(text):
		l.level = levelError
	case warnWords.MatchString(text):
		l.level = levelWarn
	}
}

// ring keeps the latest lines. A line's number stays the same while others
// fall off.
type ring struct {
	lines []logLine
	first int // number of lines[0]
	bytes int
	lost  int64 // bytes that fell off before they were read
	gaps  int   // of lines
	open  *gap  // that lines still belong to

	only    string // lines without it are left out
	matches []int  // the numbers of those with it
}

func (r *ring) add(lines []engine.LogLine) {
	for _, l := range lines {
		r.lost += l.Lost
		r.caught(l)
		r.lines = append(r.lines, logLine{LogLine: l})
		r.bytes += len(l.Text)
		if r.only != "" && contains(l.Text, r.only) {
			r.matches = append(r.matches, r.first+len(r.lines)-1)
		}
	}
	r.trim()
}

// mark notes that the connection was lost.
func (r *ring) mark(since time.Time) {
	if r.open != nil && r.open.until.IsZero() {
		return
	}
	r.open = &gap{since: since}
	end := r.end()
	r.lines = append(r.lines, logLine{LogLine: engine.LogLine{Pos: end, Next: end}, known: true, gap: r.open})
	r.gaps++
}

// back notes that it is there again.
func (r *ring) back(now time.Time) {
	if r.open != nil && r.open.until.IsZero() {
		r.open.until = now
	}
}

// caught counts a line that was written while there was no connection.
func (r *ring) caught(l engine.LogLine) {
	if r.open == nil {
		return
	}
	if !r.open.until.IsZero() && l.Time.After(r.open.until) {
		r.open = nil
		return
	}
	r.open.lines++
	r.open.lost += l.Lost
}

// count is how many lines there are, gaps left out.
func (r *ring) count() int { return len(r.lines) - r.gaps }

// trim drops the oldest, some more than it must so that it needn't each time.
func (r *ring) trim() {
	n := 0
	if len(r.lines) > keptLines+keptLines/8 {
		n = len(r.lines) - keptLines
	}
	for size := r.bytes; size > keptBytes && n < len(r.lines)-1; n++ {
		size -= len(r.lines[n].Text)
	}
	if n == 0 {
		return
	}
	for _, l := range r.lines[:n] {
		r.bytes -= len(l.Text)
		if l.gap != nil {
			r.gaps--
		}
	}
	r.lines = append(make([]logLine, 0, keptLines+keptLines/4), r.lines[n:]...)
	r.first += n
	for len(r.matches) > 0 && r.matches[0] < r.first {
		r.matches = r.matches[1:]
	}
}

func (r *ring) filter(only string) {
	r.only, r.matches = only, nil
	if only == "" {
		return
	}
	for i, l := range r.lines {
		if contains(l.Text, only) {
			r.matches = append(r.matches, r.first+i)
		}
	}
}

// size is how many lines show.
func (r *ring) size() int {
	if r.only != "" {
		return len(r.matches)
	}
	return len(r.lines)
}

// at is the i-th line that shows.
func (r *ring) at(i int) *logLine {
	if r.only != "" {
		i = r.matches[i] - r.first
	}
	return &r.lines[i]
}

// number is the lasting number of the i-th line that shows, index the way back.
func (r *ring) number(i int) int {
	switch {
	case r.size() == 0:
		return 0
	case r.only != "":
		return r.matches[min(i, len(r.matches)-1)]
	}
	return r.first + i
}

func (r *ring) index(number int) int {
	if r.only == "" {
		return max(0, number-r.first)
	}
	for i, n := range r.matches {
		if n >= number {
			return i
		}
	}
	return max(0, len(r.matches)-1)
}

// end is where a reader goes on.
func (r *ring) end() engine.LogPosition {
	if len(r.lines) == 0 {
		return 0
	}
	return r.lines[len(r.lines)-1].Next
}

// contains looks for want, in any case.
func contains(text, want string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(want))
}
