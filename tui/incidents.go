package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// ranges are how far back the timeline goes.
var ranges = []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}

var rangeNames = []string{"1 h", "6 h", "24 h", "7 d"}

// incidents is the screen of what the healer did across the fleet: a lane for
// each heal run, time to the right.
type incidents struct {
	w             *world
	c             *commands
	width, height int

	zoom    int // of ranges
	back    int // how many tenths of the range the right edge lies before now
	byCause bool
	cursor  engine.RunID
	place   int
	top     int
	err     error
	asked   time.Duration // the longest range that the history was asked for
}

func newIncidents(w *world, c *commands) *incidents { return &incidents{w: w, c: c} }

// SetSize is the size of the screen's body.
func (n *incidents) SetSize(width, height int) { n.width, n.height = width, height }

// ShortHelp are the keys of the footer.
func (n *incidents) ShortHelp() []key.Binding {
	k := n.w.keys
	return []key.Binding{
		as(k.Open, "its healer"), both(k.Left, k.Right, "time"), both(k.ZoomIn, k.ZoomOut, "zoom"), as(k.Watch, "I'm on it"),
		as(k.Group, "by cause"), as(k.Save, "export"), k.Copy, as(k.Back, "fleet"),
	}
}

// FullHelp are the keys of the help.
func (n *incidents) FullHelp() [][]key.Binding { return [][]key.Binding{n.w.keys.ofIncidents().keys} }

// show asks for the history of the range that shows, unless it is known.
func (n *incidents) show() tea.Cmd {
	if n.asked >= n.span() {
		return nil
	}
	n.asked = n.span()
	return n.c.heals(engine.HealQuery{Since: n.w.now.Add(-n.span())})
}

func (n *incidents) span() time.Duration { return ranges[n.zoom] }

// list is what shows, in its order.
func (n *incidents) list() []*episode {
	list := n.w.chronicle.list(n.w.now.Add(-n.span()), func(id engine.SandboxID) bool {
		sb, _ := n.w.sandbox(id)
		return sb.Health == engine.Broken
	})
	if n.byCause {
		sortByCause(list)
	}
	return list
}

// sortByCause puts episodes of one cause together, the commonest cause first.
func sortByCause(list []*episode) {
	count := map[string]int{}
	for _, e := range list {
		count[causeOf(e)]++
	}
	slices.SortStableFunc(list, func(a, b *episode) int {
		ca, cb := causeOf(a), causeOf(b)
		return cmp.Or(count[cb]-count[ca], strings.Compare(ca, cb))
	})
}

// selected is the episode under the cursor.
func (n *incidents) selected() *episode {
	list := n.list()
	if len(list) == 0 {
		return nil
	}
	if i := slices.IndexFunc(list, func(e *episode) bool { return e.run.ID == n.cursor }); i >= 0 {
		n.place = i
	}
	n.place = max(0, min(n.place, len(list)-1))
	n.cursor = list[n.place].run.ID
	return list[n.place]
}

func (n *incidents) move(by int) {
	n.selected()
	list := n.list()
	if len(list) == 0 {
		return
	}
	n.place = max(0, min(n.place+by, len(list)-1))
	n.cursor = list[n.place].run.ID
}

// Update answers keys.
func (n *incidents) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case healsMsg:
		n.err = msg.err
		if msg.err != nil {
			n.asked = 0
		}
	case tea.KeyPressMsg:
		return n.pressed(msg)
	}
	return nil
}

func (n *incidents) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := n.w.keys
	page := max(1, n.lanes()-1)
	switch {
	case key.Matches(msg, k.Down):
		n.move(1)
	case key.Matches(msg, k.Up):
		n.move(-1)
	case key.Matches(msg, k.HalfDown, k.PageDown):
		n.move(page)
	case key.Matches(msg, k.HalfUp, k.PageUp):
		n.move(-page)
	case key.Matches(msg, k.Top):
		n.move(-keptEpisodes)
	case key.Matches(msg, k.Bottom):
		n.move(keptEpisodes)
	case key.Matches(msg, k.Left):
		n.back = min(n.back+1, 10)
	case key.Matches(msg, k.Right):
		n.back = max(n.back-1, 0)
	case key.Matches(msg, k.ZoomIn):
		n.zoom, n.back = max(n.zoom-1, 0), 0
	case key.Matches(msg, k.ZoomOut):
		n.zoom, n.back = min(n.zoom+1, len(ranges)-1), 0
		return n.show()
	case key.Matches(msg, k.Group):
		n.byCause = !n.byCause
	case key.Matches(msg, k.Retry):
		n.asked = 0
		return n.show()
	default:
		return n.opened(msg)
	}
	return nil
}

// opened answers the keys that are about the selected episode.
func (n *incidents) opened(msg tea.KeyPressMsg) tea.Cmd {
	e := n.selected()
	if e == nil {
		return nil
	}
	k := n.w.keys
	switch {
	case key.Matches(msg, k.Open):
		return func() tea.Msg { return openMsg{e.run.Sandbox, tabHealer} }
	case key.Matches(msg, k.Watch):
		return n.watch(e)
	}
	return nil
}

// watchMsg says on the status row why nobody could be noted as watching.
type watchMsg struct{ why string }

// watch says to other operators that somebody is on it, or takes that back.
func (n *incidents) watch(e *episode) tea.Cmd {
	in, ok := n.w.snap.Incidents[e.run.Incident]
	why := ""
	switch {
	case n.w.link.state != live:
		why = "waits for the engine"
	case n.w.cfg.ReadOnly != "":
		why = n.w.cfg.ReadOnly
	case !ok:
		why = "this run is of no open incident: one is opened when several sandboxes fail alike"
	}
	if why != "" {
		return func() tea.Msg { return watchMsg{why} }
	}
	off := in.Watcher.Name != ""
	words := "watch " + string(in.ID)
	if off {
		words = "stop watching " + string(in.ID)
	}
	return n.c.act(words, engine.WatchIncident{Incident: in.ID, Off: off})
}

// texts are the selected episode in a line, and all as Markdown.
func (n *incidents) texts() (line, all string) {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the healer did in the last %s, as of %s\n\n", rangeNames[n.zoom], n.w.now.Local().Format("2006-01-02 15:04"))
	b.WriteString("| start | sandbox | signal | attempts | outcome | took | cost | commit | what |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range n.list() {
		r := e.run
		cells := []string{
			r.Started.Local().Format("01-02 15:04:05"), e.name, n.signal(e), fmt.Sprint(r.Attempt), outcomeWord(r),
			span(e.end(n.w.now).Sub(r.Started)), price(r.Spent), r.Commit, oneLine(cmp.Or(r.Summary, r.Cause)),
		}
		for i, c := range cells {
			cells[i] = strings.NewReplacer("|", "\\|", "\n", " ").Replace(c)
		}
		row := "| " + strings.Join(cells, " | ") + " |"
		if r.ID == n.cursor {
			line = row
		}
		b.WriteString(row + "\n")
	}
	for _, p := range patternsOf(n.list()) {
		fmt.Fprintf(&b, "\n%s fail on %q since %s\n", plural(p.sandboxes, "sandbox"), p.cause, clock(p.since))
	}
	return line, b.String()
}

func (n *incidents) signal(e *episode) string {
	if e.signal.ID != 0 {
		return signalWord(e.signal)
	}
	if e.run.Signal == 0 {
		return "by hand"
	}
	return oneLine(e.run.Cause)
}

func outcomeWord(r engine.HealRun) string {
	switch {
	case r.Open():
		return "healing"
	case gaveUp(r):
		return "gave up"
	}
	return string(r.Outcome)
}

// sign is how an episode is marked.
func (n *incidents) sign(e *episode) (string, themes.Role) {
	g := n.w.glyphs
	switch {
	case e.run.Open():
		return g.Healing, themes.HealthHealing
	case e.run.Outcome == engine.Healed:
		return g.Ready, themes.HealthReady
	case gaveUp(e.run):
		return g.Broken, themes.Error
	}
	return g.None, themes.Muted
}
