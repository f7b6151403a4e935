// Package redact hides secrets in text: those that it was told of, and what has
// the shape of a known kind of key.
//
// The one rule: whatever leaves the engine's hands for a model, the journal, a
// commit or a bundle goes through it whole lines at a time, before it is cut to
// a length; half a secret is not recognised.
package redact

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// minSecret is the shortest secret that is hidden by its value: a shorter one
// would hide ordinary words.
const minSecret = 6

// A Redactor hides secrets. Its zero value, and a nil one, hide key shapes
// only. It may be used by many at once.
type Redactor struct {
	parent *Redactor
	known  atomic.Pointer[literals]

	mu  sync.Mutex
	all map[string]bool // by value; what known is made of
}

// New is a Redactor that also hides secrets, in the forms that they are
// usually written in.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	r.Hide(secrets...)
	return r
}

// With is a Redactor that hides what r does, now and later, and secrets.
func (r *Redactor) With(secrets ...string) *Redactor {
	child := New(secrets...)
	child.parent = r
	return child
}

// Hide adds secrets. Those that are too short to be told from words are left out.
func (r *Redactor) Hide(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := false
	for _, s := range secrets {
		for _, form := range forms(s) {
			if !r.all[form] {
				if r.all == nil {
					r.all = map[string]bool{}
				}
				r.all[form], added = true, true
			}
		}
	}
	if added {
		r.known.Store(newLiterals(r.all))
	}
}

// String is s with [Mark] for every secret.
func (r *Redactor) String(s string) string {
	var b strings.Builder
	done := 0
	r.scan(s, func(from, to int, _ string) {
		if done == 0 && b.Len() == 0 {
			b.Grow(len(s))
		}
		b.WriteString(s[done:from])
		b.WriteString(Mark)
		done = to
	})
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// Kinds names what secrets are in s, each once and never its value: "a GitHub
// token", "a secret that sbx knows".
func (r *Redactor) Kinds(s string) []string {
	var kinds []string
	r.scan(s, func(_, _ int, kind string) {
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	})
	return kinds
}

// Added names what secrets a unified diff adds, as [Redactor.Kinds] does.
func (r *Redactor) Added(diff string) []string {
	var b strings.Builder
	for l := range strings.Lines(diff) {
		if strings.HasPrefix(l, "+") && !strings.HasPrefix(l, "+++ ") {
			b.WriteString(l[1:])
		}
	}
	return r.Kinds(b.String())
}

// scan finds secrets from left to right, none inside of another.
func (r *Redactor) scan(s string, found func(from, to int, kind string)) {
	sets := r.sets()
	for i := 0; i < len(s); {
		from, to, kind := i, i, known
		for _, set := range sets {
			to = max(to, i+set.at(s, i))
		}
		if to == i && shapeStarts[s[i]] {
			from, to, kind = shapeAt(s, i)
		}
		if to <= i {
			i++
			continue
		}
		found(from, to, kind)
		i = to
	}
}

// known is the kind of a secret that is known by its value.
const known = "a secret that sbx knows"

func (r *Redactor) sets() []*literals {
	var sets []*literals
	for ; r != nil; r = r.parent {
		if set := r.known.Load(); set != nil {
			sets = append(sets, set)
		}
	}
	return sets
}
