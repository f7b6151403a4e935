package tui

import (
	"cmp"
	"slices"
	"strings"

	"sbx/engine"
)

// need is how much attention a sandbox needs.
type need int

const (
	needsYou need = iota
	healing
	theRest
)

// grouping is what the fleet's rows stand together by.
type grouping int

const (
	byHealth grouping = iota
	perOwner
	perLife
	flat
	groupings
)

func (g grouping) String() string {
	return [groupings]string{"health", "owner", "life", "none"}[g]
}

// sorting is the order of the fleet.
type sorting int

const (
	byAttention sorting = iota
	byName
	byLife
	byOwner
	bySeen
	sortings
)

func (s sorting) String() string {
	return [sortings]string{"attention", "name", "life", "owner", "seen"}[s]
}

// entry is a sandbox's place in the order: all that sorting and counting need.
type entry struct {
	id     engine.SandboxID
	group  int    // its group's place among the groups
	title  string // of its group
	need   need
	num    int64
	text   string
	name   string
	health engine.Health
	state  engine.State
}

// order keeps the fleet sorted while single sandboxes change: a change moves
// one entry, it doesn't sort ten thousand.
type order struct {
	sort    sorting
	group   grouping
	entries []*entry
	at      map[engine.SandboxID]*entry
	// version changes whenever entries does.
	version int

	health map[engine.Health]int
	state  map[engine.State]int
	// widest are the cells of the longest name and owner there have been: so
	// wide are their columns at most.
	widest struct{ name, owner int }
}

func (o *order) reset(s *engine.Snapshot) {
	o.entries = o.entries[:0]
	o.at = make(map[engine.SandboxID]*entry, len(s.Sandboxes))
	o.health, o.state = map[engine.Health]int{}, map[engine.State]int{}
	for _, sb := range s.Sandboxes {
		e := o.entry(sb)
		o.at[sb.ID] = e
		o.entries = append(o.entries, e)
		o.count(e, 1)
	}
	slices.SortFunc(o.entries, compare)
	o.version++
}

func (o *order) put(sb engine.Sandbox) {
	e := o.entry(sb)
	if old, ok := o.at[sb.ID]; ok {
		if *old == *e {
			return
		}
		o.drop(sb.ID)
	}
	i, _ := slices.BinarySearchFunc(o.entries, e, compare)
	o.entries = slices.Insert(o.entries, i, e)
	o.at[sb.ID] = e
	o.count(e, 1)
	o.version++
}

func (o *order) drop(id engine.SandboxID) {
	old, ok := o.at[id]
	if !ok {
		return
	}
	if i, found := slices.BinarySearchFunc(o.entries, old, compare); found {
		o.entries = slices.Delete(o.entries, i, i+1)
	}
	delete(o.at, id)
	o.count(old, -1)
	o.version++
}

func (o *order) count(e *entry, n int) {
	o.health[e.health] += n
	o.state[e.state] += n
}

func (o *order) entry(sb engine.Sandbox) *entry {
	e := &entry{id: sb.ID, name: sb.Name, health: sb.Health, state: sb.State}
	e.group, e.title = o.groupOf(sb)
	o.widest.name = max(o.widest.name, len(sb.Name))
	o.widest.owner = max(o.widest.owner, len(sb.Owner))
	switch o.sort {
	case byAttention:
		e.need = attention(sb.Health)
		if e.need != theRest {
			e.num = -sb.HealthChanged.UnixMilli() // what happened last is on top
		}
	case byLife:
		e.num = -lifeRank(sb.State)
	case byOwner:
		e.text = sb.Owner
	case bySeen:
		e.num = -sb.Active.UnixMilli()
	}
	return e
}

// groupOf is a sandbox's group: its place among the groups, and its title.
func (o *order) groupOf(sb engine.Sandbox) (int, string) {
	switch o.group {
	case byHealth:
		n := attention(sb.Health)
		return int(n), [...]string{"NEEDS YOU", "HEALING", "READY & POOL"}[n]
	case perOwner:
		if sb.Owner == "" {
			return 1, "(pool)"
		}
		return 0, sb.Owner
	case perLife:
		return -int(lifeRank(sb.State)), strings.ToUpper(string(sb.State))
	}
	return 0, ""
}

func attention(h engine.Health) need {
	switch h {
	case engine.Broken:
		return needsYou
	case engine.Healing:
		return healing
	}
	return theRest
}

func lifeRank(s engine.State) int64 {
	return int64(slices.Index([]engine.State{
		engine.Cold, engine.Warming, engine.Warm, engine.Waiting, engine.Running,
	}, s))
}

func compare(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(a.group, b.group),
		strings.Compare(a.title, b.title),
		cmp.Compare(a.need, b.need),
		cmp.Compare(a.num, b.num),
		strings.Compare(a.text, b.text),
		natural(a.name, b.name),
		cmp.Compare(a.id, b.id),
	)
}

// natural compares names so that web-2 comes before web-10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
