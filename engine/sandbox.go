package engine

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Sandbox is a workspace, what should run in it, and how it is.
type Sandbox struct {
	ID               SandboxID         `json:"id"`
	Name             string            `json:"name"` // unique in the fleet
	Owner            string            `json:"owner,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	Template         string            `json:"template,omitempty"`
	TemplateRevision string            `json:"templateRevision,omitempty"`
	Spec             Spec              `json:"spec"`
	Origin           Origin            `json:"origin"`
	// Keep: neither eviction, idle sweep nor cold cleanup touches it.
	Keep        bool        `json:"keep,omitempty"`
	Maintenance Maintenance `json:"maintenance,omitzero"`
	// Session is the one that it belongs to, if any.
	Session SessionID `json:"session,omitempty"`
	// PreWarmed: the pool made it, and nobody has claimed it.
	PreWarmed bool `json:"preWarmed,omitempty"`
	// Leaving: it was evicted, and its place in the pool is another's. What is
	// left of it goes, or stays cold if there turns out to be room.
	Leaving bool `json:"leaving,omitempty"`
	// Ending is why it was taken down the last time.
	Ending Termination `json:"ending,omitempty"`
	// Restore is whose workspace it takes over when it is booted.
	Restore SandboxID `json:"restore,omitempty"`

	// Wanted is what somebody asked for; State is what is.
	Wanted Wanted `json:"wanted"`
	State  State  `json:"state"`
	Health Health `json:"health"`
	// Reason stands beside every health that isn't ready.
	Reason string `json:"reason,omitempty"`
	// Run is the open heal run, or the last one that ended.
	Run RunID `json:"run,omitempty"`
	// Chat is the turn of a chat that is under way: the healer then leaves the
	// sandbox alone.
	Chat MessageID `json:"chat,omitempty"`
	// Isolation is the confinement in force, as the driver named it at boot.
	Isolation string `json:"isolation,omitempty"`
	// Resumed is when somebody last gave it back to the healer's loop, by a heal,
	// a restart or a start of a broken one: heals before that are forgiven.
	Resumed time.Time `json:"resumed,omitzero"`

	Created       time.Time `json:"created"`
	StateChanged  time.Time `json:"stateChanged"`
	HealthChanged time.Time `json:"healthChanged"`
	Active        time.Time `json:"active"` // last request, exec or session call
	// Seq is the position of the last change of this row: what IfSeq is held against.
	Seq Seq `json:"seq"`
}

// Wanted is what an operator or the pool asked a sandbox to be. It is what
// tells a stop from a crash.
type Wanted string

// What can be wanted.
const (
	Up   Wanted = "up"
	Down Wanted = "down"
	// Removed: take it down, then delete its record and files.
	Removed Wanted = "removed"
)

// OriginKind is where a workspace came from.
type OriginKind string

// The origins of SPEC §3.
const (
	FromTemplate OriginKind = "template"
	FromCopy     OriginKind = "from"  // a directory, copied as it is
	FromAdopted  OriginKind = "adopt" // a directory, used in place and never deleted
	FromGit      OriginKind = "git"
)

// Origin is where a sandbox's workspace came from. Where it lies now only the
// driver knows.
type Origin struct {
	Kind OriginKind `json:"kind"`
	Ref  string     `json:"ref,omitempty"` // template name, directory or URL
}

// Maintenance is the healer's loop leaving a sandbox alone.
type Maintenance struct {
	On bool `json:"on,omitempty"`
	// Until is when it ends by itself; zero: until resumed.
	Until  time.Time `json:"until,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Active reports whether maintenance is on at now.
func (m Maintenance) Active(now time.Time) bool {
	return m.On && (m.Until.IsZero() || now.Before(m.Until))
}

// MaxName is how many characters a name may have.
const MaxName = 64

// CheckName refuses a name that couldn't be shown, typed or told from an id.
// Letters of any script, digits, spaces and punctuation are welcome; control
// and invisible characters aren't.
func CheckName(name string) error {
	bad := func(why string) error {
		return Errorf(Invalid, "name %q %s", cutRunes(name, maxQuoted), why).WithHint("use 1 to %d visible characters, for example api-1", MaxName)
	}
	switch {
	case !utf8.ValidString(name):
		return bad("is not valid UTF-8")
	case strings.TrimSpace(name) == "":
		return bad("is empty")
	case name != strings.TrimSpace(name):
		return bad("begins or ends with a space")
	case utf8.RuneCountInString(name) > MaxName:
		return bad("is too long")
	case strings.HasPrefix(name, SandboxPrefix):
		return bad("looks like an id")
	case strings.HasPrefix(name, "-"):
		return bad("looks like a flag")
	case strings.ContainsAny(name, `/\`):
		return bad("has a slash")
	}
	if strings.ContainsFunc(name, invisible) {
		return bad("has an invisible or control character")
	}
	return nil
}

// CheckOwner refuses an owner that couldn't be shown. Whoever names people has
// the say on everything else: "Dana", "dana@example.com", `CORP\dana`.
func CheckOwner(owner string) error {
	if utf8.ValidString(owner) && utf8.RuneCountInString(owner) <= MaxName && !strings.ContainsFunc(owner, invisible) {
		return nil
	}
	return Errorf(Invalid, "owner %q is too long, or has an invisible or control character", owner).
		WithHint("use at most %d visible characters, for example dana", MaxName)
}

// invisible reports whether a rune has nothing to show, or acts on what is
// around it.
func invisible(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r)
}

// PlainName is a name as it is kept and looked for: without the selectors that
// keyboards put behind an emoji, which can't be seen and which not every
// terminal gives back.
func PlainName(name string) string {
	last := rune(0)
	return strings.Map(func(r rune) rune {
		if (r == '\ufe0e' || r == '\ufe0f') && unicode.Is(unicode.So, last) {
			return -1
		}
		last = r
		return r
	}, name)
}

// maxQuoted is how much of what somebody gave as a name an error repeats.
const maxQuoted = 80

// cutRunes is at most n characters of s; one that is cut ends with "…".
func cutRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n--; n == 0 {
			return s[:i] + "…"
		}
	}
	return s
}
