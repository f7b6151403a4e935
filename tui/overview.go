package tui

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
)

// overview is the first tab: how a sandbox is, and what can be done.
type overview struct {
	w             *world
	c             *commands
	acts          []action
	width, height int
	id            engine.SandboxID

	signals     []engine.Signal  // latest first
	runs        []engine.HealRun // ended ones, latest first
	checkpoints []engine.Checkpoint
	asked       string // the sandbox's latest signal and run when asked
	err         error
	scroll      int
	lines       int // that there were to scroll through
}

func newOverview(w *world, c *commands, acts []action) *overview {
	return &overview{w: w, c: c, acts: acts}
}

// historyLimit is how many records of the healer the overview reads.
const historyLimit = 200

func (o *overview) show(id engine.SandboxID) tea.Cmd {
	if id != o.id {
		o.signals, o.runs, o.checkpoints, o.scroll = nil, nil, nil, 0
	}
	o.id = id
	return o.ask()
}

func (o *overview) hide() {}

func (o *overview) ask() tea.Cmd {
	o.asked = o.latest()
	return tea.Batch(o.c.heals(engine.HealQuery{Sandbox: o.id, Limit: historyLimit}), o.c.checkpoints(o.id))
}

// latest names what the history has newest, so that it is read again only when
// there is more.
func (o *overview) latest() string {
	if o.w.snap == nil {
		return ""
	}
	r, sig := o.w.snap.Runs[o.id], o.w.snap.Signals[o.id]
	return fmt.Sprint(r.ID, r.Outcome, sig.ID, sig.Verdict != nil)
}

// SetSize is the size of the tab.
func (o *overview) SetSize(width, height int) { o.width, o.height = width, height }

// ShortHelp are the keys of the footer.
func (o *overview) ShortHelp() []key.Binding {
	k := o.w.keys
	sb, _ := o.w.sandbox(o.id)
	if sb.Health == engine.Healing {
		return []key.Binding{k.Abort, k.Restart, k.Pause, k.Stop}
	}
	return []key.Binding{k.Heal, k.Restart, k.Pause, as(k.Stop, stopTitle(o.w, sb)), k.Copy}
}

// FullHelp are the keys of the help.
func (o *overview) FullHelp() [][]key.Binding { return nil }

// Update takes history, and asks for it again when the sandbox has changed.
func (o *overview) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case frameMsg:
		if o.asked != o.latest() && o.w.link.state == live {
			return o.ask()
		}
	case healsMsg:
		if msg.query.Sandbox == o.id && msg.query.Run == "" {
			o.learn(msg)
		}
	case checkpointsMsg:
		if msg.id == o.id && msg.err == nil {
			o.checkpoints = msg.list
		}
	case tea.KeyPressMsg:
		o.pressed(msg)
	}
	return nil
}

func (o *overview) pressed(msg tea.KeyPressMsg) {
	k := o.w.keys
	switch {
	case key.Matches(msg, k.Down):
		o.scroll++
	case key.Matches(msg, k.Up):
		o.scroll--
	case key.Matches(msg, k.HalfDown, k.PageDown):
		o.scroll += o.height / 2
	case key.Matches(msg, k.HalfUp, k.PageUp):
		o.scroll -= o.height / 2
	case key.Matches(msg, k.Top):
		o.scroll = 0
	case key.Matches(msg, k.Bottom):
		o.scroll = o.lines
	}
	o.scroll = max(0, min(o.scroll, o.lines-o.height))
}

func (o *overview) learn(msg healsMsg) {
	if o.err = msg.err; o.err != nil {
		return
	}
	signals, runs := map[engine.SignalID]engine.Signal{}, []engine.HealRun(nil)
	for _, rec := range msg.records {
		switch b := rec.Body.(type) {
		case engine.SignalRaised:
			signals[b.Signal.ID] = b.Signal
		case engine.SignalJudged:
			signals[b.Signal.ID] = b.Signal
		case engine.HealFinished:
			runs = append(runs, b.Run)
		}
	}
	o.signals = o.signals[:0:0]
	for _, s := range signals {
		o.signals = append(o.signals, s)
	}
	slices.SortFunc(o.signals, func(a, b engine.Signal) int { return int(b.ID - a.ID) })
	slices.Reverse(runs)
	o.runs = runs
}

// View is one column on narrow screens, two on wide ones.
func (o *overview) View() string {
	sb, ok := o.w.sandbox(o.id)
	if !ok {
		p := &panel{w: o.w, width: o.width, height: o.height}
		p.blank()
		p.add(p.pen().Gap(2).Put(themes.Text, "This sandbox was removed. Esc goes back to the fleet."))
		return p.text()
	}
	if o.width < middleWidth {
		p := &panel{w: o.w, width: o.width, height: o.height + mostLines}
		o.now(p, sb)
		o.processes(p, sb)
		o.signalList(p)
		o.history(p)
		o.can(p, sb)
		return o.scrolled(p)
	}
	side := 51
	if o.width < wideWidth {
		side = 40
	}
	left := &panel{w: o.w, width: o.width - side - 1, height: o.height + mostLines}
	o.now(left, sb)
	o.processes(left, sb)
	o.signalList(left)
	o.history(left)
	right := &panel{w: o.w, width: side, height: o.height}
	o.charts(right, sb)
	o.can(right, sb)
	return beside(o.w, o.scrolled(left), right.text())
}

// mostLines bounds what an overview has below the screen.
const mostLines = 60

// scrolled is the part of a panel that shows.
func (o *overview) scrolled(p *panel) string {
	o.lines = len(p.lines)
	o.scroll = max(0, min(o.scroll, o.lines-o.height))
	p.lines = p.lines[min(o.scroll, o.lines):]
	p.lines = p.lines[:min(len(p.lines), o.height)]
	p.height = o.height
	return p.text()
}

// beside puts two parts of the screen next to each other, a line between them.
func beside(w *world, left, right string) string {
	line := w.pen(1).Put(themes.Border, "│").String()
	l, r := strings.Split(left, "\n"), strings.Split(right, "\n")
	var b strings.Builder
	b.Grow(len(left) + len(right) + len(l)*(len(line)+1))
	for i := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l[i])
		b.WriteString(line)
		if i < len(r) {
			b.WriteString(r[i])
		}
	}
	return b.String()
}

func (o *overview) now(p *panel, sb engine.Sandbox) {
	w := o.w
	p.title("Now", "", themes.Muted, true)
	h, life := healthSign(w.glyphs, sb), lifeSign(w.glyphs, sb.State)
	pen := p.pen().Gap(2).Cell(themes.Muted, "health", 11).Put(h.role, h.glyph+" "+h.word)
	if p.width >= 90 {
		pen.Put(themes.Text, " since "+stamp(w.asOf(), sb.HealthChanged))
	}
	pen.Put(themes.Muted, " ("+w.sinceHealth(sb)+")")
	p.add(pen.To(secondWidth(p.width)).Cell(themes.Muted, "life", 10).Put(life.role, life.glyph+" "+life.word).
		Put(themes.Muted, " ("+ago(w.asOf(), sb.StateChanged)+")"))
	if sb.Health != engine.Ready {
		o.long(p, "why", themes.Text, sb.Reason)
	}
	o.pair(p, "owner", first(sb.Owner, "—"), "created", since(w.asOf(), sb.Created))
	o.pair(p, "from", originWords(sb), "id", string(sb.ID))
	app := w.app(sb.ID)
	o.pair(p, "app", appWords(app), "isolation", first(sb.Isolation, "—"))
	heal := fmt.Sprintf("on · %s", plural(sb.Spec.Heal.Attempts, "attempt"))
	if sb.Maintenance.Active(w.asOf()) {
		heal = pausedWords(sb.Maintenance, w.asOf())
		if sb.Maintenance.By != "" {
			heal += " by " + sb.Maintenance.By
		}
	}
	spent := "—"
	if r, ok := w.run(sb.ID); ok {
		spent = first(price(r.Spent), "—")
	}
	o.pair(p, "auto-heal", heal, "spent", spent)
	if no := first(w.snap.About.NoModel, "none configured: playbooks only"); w.snap.About.Model == "" && no != sb.Reason {
		o.long(p, "model", themes.Warning, no)
	}
	p.blank()
}

// long is a fact that may take three lines.
func (o *overview) long(p *panel, name string, role themes.Role, value string) {
	for _, l := range draw.Wrap(value, p.width-14, 3) {
		if l != "" {
			p.add(p.pen().Gap(2).Cell(themes.Muted, name, 11).Put(role, l))
		}
		name = ""
	}
}

// pair is a line with two facts, or two lines where it is narrow.
func (o *overview) pair(p *panel, name, value, name2, value2 string) {
	pen := p.pen().Gap(2).Cell(themes.Muted, name, 11)
	if p.width < 70 {
		p.add(pen.Put(themes.Text, value))
		return
	}
	pen.Cell(themes.Text, value, p.width-14-secondWidth(p.width)).Gap(1)
	p.add(pen.Cell(themes.Muted, name2, 10).Put(themes.Text, value2))
}

// secondWidth is how wide the second of two facts on a line is.
func secondWidth(width int) int {
	if width < 95 {
		return 33
	}
	return 45
}

func originWords(sb engine.Sandbox) string {
	if sb.Template != "" {
		return strings.TrimSpace("template " + sb.Template + " " + sb.TemplateRevision)
	}
	kind := map[engine.OriginKind]string{engine.FromCopy: "a copy of", engine.FromAdopted: "in place,", engine.FromGit: "git"}[sb.Origin.Kind]
	return strings.TrimSpace(first(kind, string(sb.Origin.Kind)) + " " + sb.Origin.Ref)
}

func appWords(app engine.Process) string {
	if app.ID == "" {
		return "—"
	}
	words := string(app.State)
	if app.PID > 0 {
		words += fmt.Sprintf(" · pid %d", app.PID)
	}
	if app.Port > 0 {
		words += fmt.Sprintf(" · port %d", app.Port)
	}
	return words
}
