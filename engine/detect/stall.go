package detect

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"sbx/engine"
	"sbx/store"
)

// StallPolicy says which log has stopped in the middle of something. The zero
// value of a field is its default.
type StallPolicy struct {
	// Pattern is what the last line says then; nil: it is bundling.
	Pattern *regexp.Regexp
	For     time.Duration // 20 s without another byte
	Scale   float64       // 1; multiplies For
}

// bundling is a line that says, after a tag or a time at most, that bundling
// has begun, and ends as it says so: "Bundling…", "[web] Bundling index.js...".
var bundling = lazily(`(?i)^\W*(?:\[[^\]]{1,40}\]\W*|\d[\d:.,tz+-]*\W+)*bundling\b.*(?:…|\.\.\.)\W*$`)

// ended are words for bundling that is over: "Bundling finished, watching for
// changes..." is a quiet healthy server.
var ended = lazily(`(?i)\b(?:finished|complete[d]?|done|succeeded|success|failed|error|ready|watching|waiting|listening|took|in \d)`)

// escapes colour a line.
var escapes = lazily(`\x1b\[[0-9;:?]*[A-Za-z]`)

func (p StallPolicy) patience() time.Duration { return scaled(p.Scale, or(p.For, 20*time.Second)) }

// stuck reports whether a line says that something goes on which then should
// have said more.
func (p StallPolicy) stuck(line string) bool {
	line = strings.TrimSpace(escapes().ReplaceAllString(line, ""))
	if p.Pattern != nil {
		return p.Pattern.MatchString(line)
	}
	return bundling().MatchString(line) && !ended().MatchString(line)
}

// Stall raises a signal for an app whose log stopped at "Bundling…": its
// process runs and its port may be open, so exits and probes both miss it.
// Fields are set before Run.
type Stall struct {
	Store *store.Store
	// Line is the last line that a process wrote, from memory.
	Line func(engine.ProcessID) string
	// End is where a process's log ends. It is asked of suspects only.
	End    func(engine.ProcessID) (engine.LogPosition, error)
	Policy StallPolicy
	Log    *slog.Logger
}

// suspect is an app whose last line says that it is busy.
type suspect struct {
	life   life
	line   string
	end    engine.LogPosition
	since  time.Time
	raised time.Time
}

// Run watches the fleet's last lines until ctx ends.
func (s *Stall) Run(ctx context.Context) error {
	suspects := map[engine.SandboxID]suspect{}
	every := max(s.Policy.patience()/4, time.Millisecond)
	return patrol(ctx, s.Store, every, nil, func(ctx context.Context, r roster, gap time.Duration) {
		forgetGone(suspects, r)
		for id, sb := range r.sandboxes {
			was, known := suspects[id]
			if gap > late {
				was.since = time.Now() // in the gap nobody could have written
			}
			now, ok := s.look(ctx, sb, r.apps[id], was, known)
			if ok {
				suspects[id] = now
			} else if known {
				delete(suspects, id)
			}
		}
	})
}

// look returns what is suspected of an app, if anything is.
func (s *Stall) look(ctx context.Context, sb engine.Sandbox, app engine.Process, was suspect, known bool) (suspect, bool) {
	if !stallable(sb, app) {
		return was, false
	}
	line := s.Line(app.ID)
	known = known && was.life == lifeOf(app) && was.line == line
	if !known && !s.Policy.stuck(line) {
		return was, false
	}
	now := time.Now()
	if known && now.Sub(was.since) < s.Policy.patience() {
		return was, true
	}
	end, err := s.End(app.ID)
	switch {
	case err != nil:
		logOf(s.Log).Warn("where a log ends is unknown", "process", app.ID, "err", err)
		return was, false
	case end <= engine.LogPosition(app.LogStart):
		return was, false // that line is of an earlier start
	case !known || end != was.end:
		return suspect{life: lifeOf(app), line: line, end: end, since: now}, true
	case !was.raised.IsZero() && now.Sub(was.raised) < scaled(s.Policy.Scale, raiseAgain):
		return was, true
	}
	was.raised = now
	return was, s.raise(ctx, sb.ID, was, now)
}

// stallable: while it is healing or broken somebody knows already.
func stallable(sb engine.Sandbox, app engine.Process) bool {
	quiet := sb.Health == engine.Unknown && sb.Spec.App.Health != "" // nobody has heard of it yet
	return working(sb, app) && !quiet
}

func (s *Stall) raise(ctx context.Context, id engine.SandboxID, w suspect, now time.Time) bool {
	err := raise(ctx, s.Store, w.life, engine.Signal{
		Sandbox: id, Kind: engine.StalledSignal,
		Observed: fmt.Sprintf("the log says %q and nothing more for %s", shown(w.line), now.Sub(w.since).Round(time.Second)),
	})
	if err != nil && !movedOn(err) && ctx.Err() == nil {
		logOf(s.Log).Error("raise a signal", "sandbox", id, "kind", engine.StalledSignal, "err", err)
	}
	return err == nil
}

// Stuck is the last line of an app that says it is busy, if the app has
// written it since it was started; else "".
func (s *Stall) Stuck(app engine.Process) string {
	line := s.Line(app.ID)
	if !s.Policy.stuck(line) {
		return ""
	}
	end, err := s.End(app.ID)
	if err != nil || end <= engine.LogPosition(app.LogStart) {
		return ""
	}
	return shown(line)
}

// shown is a line as it is quoted: without colours, bounded.
func shown(line string) string { return cut(strings.TrimSpace(escapes().ReplaceAllString(line, ""))) }

// lazily compiles an expression at its first use: this package is in a program
// that starts for every process of a sandbox and for every command line.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
