package tui

import (
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// panel collects the lines of a part of the screen.
type panel struct {
	w             *world
	width, height int
	lines         []string
	row           *draw.Pen // of the last line, to be used again once it was added
	inUse         bool
}

func (p *panel) full() bool { return len(p.lines) >= p.height }

func (p *panel) add(l *draw.Pen) {
	p.put(l.String())
	if l == p.row {
		p.inUse = false
	}
}

func (p *panel) put(line string) {
	if !p.full() {
		p.lines = append(p.lines, line)
	}
}

// pen is for the panel's next line.
func (p *panel) pen() *draw.Pen {
	switch {
	case p.row == nil:
		p.row = p.w.pen(p.width)
	case p.inUse:
		return p.w.pen(p.width)
	default:
		p.row.Again(style.Plain)
	}
	p.inUse = true
	return p.row
}

func (p *panel) blank() { p.add(p.pen()) }

// title begins a section: its name, a rule, and a note at the right. The
// section that has the focus is told by a heavier rule.
func (p *panel) title(name, note string, noteRole themes.Role, focus bool) {
	pen := p.pen()
	rule, role := "─", themes.Border
	if focus {
		pen.Put(themes.BorderFocus, "▌").Put(themes.Title, name)
		rule, role = "━", themes.BorderFocus
	} else {
		pen.Gap(1).Put(themes.Muted, name)
	}
	pen.Gap(1)
	note2 := 0
	if note != "" {
		note2 = draw.Width(note) + 2
	}
	pen.Rule(role, rule, pen.Left()-note2)
	if note != "" {
		pen.Gap(1).Put(noteRole, note)
	}
	p.add(pen)
}

// fact is a line "name  value".
func (p *panel) fact(name string, role themes.Role, value string) {
	if value != "" {
		p.add(p.pen().Gap(1).Cell(themes.Muted, name, 9).Put(role, value))
	}
}

// text is the panel, filled up with blank lines.
func (p *panel) text() string {
	for !p.full() {
		p.blank()
	}
	return strings.Join(p.lines[:max(0, p.height)], "\n")
}

// inspect is the sandbox under the cursor, beside the table.
func (w *world) inspect(id engine.SandboxID, acts []action, width, height int) string {
	p := &panel{w: w, width: width, height: height}
	sb, ok := w.sandbox(id)
	if !ok {
		return p.text()
	}
	h := healthSign(w.glyphs, sb)
	if sb.Health == engine.Healing {
		h.glyph = w.spinner()
	}
	p.title(sb.Name, h.glyph+" "+h.word+" "+w.sinceHealth(sb), h.role, false)
	p.facts(sb)
	do := doLines(w, sb, acts, width)
	if r, ok := w.run(id); ok && !r.Open() {
		p.ended(r)
	}
	p.steps(sb, height-len(do)-7)
	if height-len(do)-len(p.lines) > 6 {
		p.use(id)
	}
	p.lately(id, height-len(do)-1)
	for len(p.lines) < height-len(do)-1 {
		p.blank()
	}
	p.title("Do", "", themes.Muted, false)
	for _, l := range do {
		p.put(l)
	}
	return p.text()
}

func (p *panel) facts(sb engine.Sandbox) {
	w := p.w
	life := lifeSign(w.glyphs, sb.State)
	pen := p.pen().Gap(1).Cell(themes.Muted, "owner", 9).Cell(themes.Text, first(sb.Owner, "—"), 20)
	p.add(pen.Put(themes.Muted, "life ").Put(life.role, life.glyph+" "+life.word))
	p.fact("id", themes.Muted, string(sb.ID))
	app := w.app(sb.ID)
	if app.ID != "" {
		words := string(app.State)
		if app.Port > 0 {
			words += fmt.Sprintf(" · port %d", app.Port)
		}
		p.fact("app", themes.Text, words)
	}
	if sb.Health != engine.Ready {
		p.long("why", themes.Text, sb.Reason)
	}
	if sig, ok := w.snap.Signals[sb.ID]; ok {
		p.long("signal", themes.Text, clock(sig.At)+" "+sig.Observed)
		p.long("verdict", themes.Muted, verdictWords(sig.Verdict))
	}
	p.probes(sb)
	if r, ok := w.run(sb.ID); ok && (r.Attempt > 0 || r.Open()) {
		role := themes.Muted
		if r.Open() {
			role = themes.Warning
		}
		p.fact("attempt", role, w.attemptWords(r))
	}
}

// attemptWords say at which attempt a run is.
func (w *world) attemptWords(r engine.HealRun) string {
	switch {
	case r.Attempt > 0:
		return fmt.Sprintf("%s %d of %d · %s", attemptBar(w.glyphs, r.Attempt, r.MaxAttempts), r.Attempt, r.MaxAttempts, first(price(r.Spent), "no cost"))
	case w.snap.About.Model == "":
		return "playbooks"
	}
	return "playbooks, then up to " + plural(r.MaxAttempts, "attempt")
}

// long is a fact that may take two lines.
func (p *panel) long(name string, role themes.Role, value string) {
	for _, l := range draw.Wrap(value, p.width-11, 2) {
		p.fact(name, role, l)
		name = ""
	}
}

// ended is what a run that is over came to.
func (p *panel) ended(r engine.HealRun) {
	p.blank()
	p.title("Last heal run", string(r.Outcome)+" "+stamp(p.w.asOf(), r.Ended), themes.Muted, false)
	next := ""
	if r.Next != "" {
		next = "Next: " + r.Next
	}
	for _, text := range []string{sentences(r.Summary), next} {
		for _, l := range draw.Wrap(text, p.width-2, 4) {
			if text != "" {
				p.add(p.pen().Gap(1).Put(themes.Text, l))
			}
		}
	}
	if r.FixedBy != "" {
		p.fact("fixed by", themes.Text, r.FixedBy)
	}
	p.fact("commit", themes.Text, commitWords(r))
}

// commitWords are the commit that holds a fix, or why there is none.
func commitWords(r engine.HealRun) string {
	if r.Commit == "" && r.NotCommitted != "" {
		return "none: " + r.NotCommitted
	}
	return r.Commit
}

// use are cpu, memory and the last line of the log.
func (p *panel) use(id engine.SandboxID) {
	t, sample := p.w.trace(id), p.w.gauges.Sandboxes[id]
	if sb, _ := p.w.sandbox(id); len(t.cpu) == 0 || !sb.State.Live() {
		return
	}
	p.blank()
	p.title("CPU · memory, 15 min", "", themes.Muted, false)
	line := func(name string, levels []uint8, value string) {
		pen := p.pen().Gap(1).Cell(themes.Muted, name, 5)
		drawBars(pen, levels, p.width-16)
		p.add(pen.Gap(2).Put(themes.Text, value))
	}
	line("cpu", t.cpu, fmt.Sprintf("%d %%", t.load))
	line("mem", t.mem, memory(t.memory))
	if sample.LogLine != "" {
		p.add(p.pen().Gap(1).Cell(themes.Muted, "log", 5).Put(themes.Text, sample.LogLine))
	}
}

// lately is what happened to the sandbox, as much as fits above line to.
func (p *panel) lately(id engine.SandboxID, to int) {
	list := p.w.past.of(id, max(0, min(8, to-len(p.lines)-3)))
	if len(list) == 0 {
		return
	}
	p.blank()
	p.title("Lately", "", themes.Muted, false)
	for _, h := range list {
		glyph, role := h.sign(p.w)
		p.add(p.pen().Gap(1).Cell(themes.Muted, clock(h.at), 9).Put(role, glyph).Gap(1).Put(themes.Text, h.words))
	}
}

// probes are the latest answers of the app, oldest first.
func (p *panel) probes(sb engine.Sandbox) {
	t := p.w.trace(sb.ID)
	if len(t.probes) == 0 {
		return
	}
	detail := p.w.gauges.Sandboxes[sb.ID].Probe.Detail
	if !t.failing() {
		p.add(p.pen().Gap(1).Cell(themes.Muted, "probe", 9).Put(themes.HealthReady, p.w.glyphs.Ready+" ").Put(themes.Text, detail))
		return
	}
	pen := p.pen().Gap(1).Cell(themes.Muted, "probe", 9)
	if sb.Health == engine.Ready && !t.probes[len(t.probes)-1] {
		detail = "before it was healed" // the healer has probed since, and it answered
	}
	p.add(probeMarks(p.w, pen, t.probes).Gap(2).Put(themes.Muted, detail))
}

func probeMarks(w *world, pen *draw.Pen, list []bool) *draw.Pen {
	for _, ok := range list {
		if ok {
			pen.Put(themes.HealthReady, w.glyphs.Ready)
		} else {
			pen.Put(themes.Error, w.glyphs.Broken)
		}
	}
	return pen
}

// steps are the last steps of the healer, as many as fit above line to.
func (p *panel) steps(sb engine.Sandbox, to int) {
	w := p.w
	steps := w.snap.Steps[sb.ID]
	if len(steps) == 0 || to-len(p.lines) < 4 {
		return
	}
	p.title("Healer, live", "following", themes.Muted, false)
	painter := stepPainter{set: w.styles, width: p.width, spin: w.spinner(), now: w.asOf()}
	room := to - len(p.lines)
	var shown []string
	for i := len(steps) - 1; i >= 0 && len(shown) < room; i-- {
		shown = append(painter.lines(steps[i], unfolds(steps[i]), false), shown...)
	}
	for _, l := range tail(shown, room) {
		p.put(l)
	}
}

// doLines are what can be done here, in as many lines as it takes. What can't
// is faded; pressing its key says why.
func doLines(w *world, sb engine.Sandbox, acts []action, width int) []string {
	pen := w.pen(width).Gap(1)
	var out []string
	put := func(key, words string, blocked bool) {
		if need := draw.Width(key) + 1 + draw.Width(words); pen.Left() < need {
			out = append(out, pen.String())
			pen = w.pen(width).Gap(1)
		}
		keyRole, role := themes.Key, themes.Text
		if blocked {
			keyRole, role = themes.Stale, themes.Stale
		}
		pen.Put(keyRole, key).Gap(1).Put(role, words).Gap(2)
	}
	put("Enter", "open", false)
	put("2", "healer", false)
	put("3", "logs", false)
	for _, a := range acts {
		put(a.key.Help().Key, a.title(w, sb), a.why(w, sb) != "")
	}
	return append(out, pen.String())
}

// strip is "What happened": the latest first.
func (w *world) strip(width, height int) string {
	p := &panel{w: w, width: width, height: height}
	p.title("What happened", "newest first", themes.Muted, false)
	for i := len(w.past.list) - 1; i >= 0 && !p.full(); i-- {
		h := w.past.list[i]
		glyph, role := h.sign(w)
		pen := p.pen().Gap(1).Cell(themes.Muted, clock(h.at), 10).Put(role, glyph).Gap(1).Cell(role, h.name, 16).Gap(1)
		if h.signal {
			pen.Put(themes.Alert, " signal ").Gap(1)
		}
		pen.Cell(themes.Text, h.words, pen.Left()-draw.Width(h.by)-1)
		p.add(pen.Gap(1).Put(themes.Muted, h.by))
	}
	if len(w.past.list) == 0 {
		p.add(p.pen().Gap(1).Put(themes.Muted, "nothing yet"))
	}
	return p.text()
}
