package tui

import (
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

const storyWidth = 47

// View is the story and the transcript.
func (h *healer) View() string {
	r, ok := h.w.run(h.id)
	if !ok {
		return h.nothing()
	}
	strip := h.strip(r)
	height := h.height - len(strip)
	var body string
	switch {
	case h.width >= middleWidth && h.zoomed && h.onStory:
		p := &panel{w: h.w, width: h.width, height: height}
		h.story(p, r)
		body = p.text()
	case h.width >= middleWidth && h.zoomed:
		body = h.transcript(r, h.width, height)
	case h.width >= middleWidth:
		side := min(storyWidth, h.width*2/5)
		left := &panel{w: h.w, width: side, height: height}
		h.story(left, r)
		body = beside(h.w, left.text(), h.transcript(r, h.width-side-1, height))
	default:
		body = h.brief(r) + "\n" + h.transcript(r, h.width, height-1)
	}
	return strings.Join(append(strip, body), "\n")
}

// nothing is the tab of a sandbox that was never healed: what would happen.
func (h *healer) nothing() string {
	p := &panel{w: h.w, width: h.width, height: h.height}
	p.title("Healer", "no heal run yet", themes.Muted, true)
	p.blank()
	line := func(role themes.Role, text string) {
		for _, l := range draw.Wrap(text, min(96, p.width-4), 3) {
			p.add(p.pen().Gap(2).Put(role, l))
		}
	}
	sb, _ := h.w.sandbox(h.id)
	line(themes.Text, "Nothing had to be healed here. It is watched for exits, failed health probes and a log that stands still.")
	p.blank()
	words := "When one of them is confirmed, a checkpoint of its files is taken and the playbooks try what is known to help"
	if model := h.w.snap.About.Model; model != "" {
		line(themes.Muted, fmt.Sprintf("%s; then %s has up to %s. What fails is rolled back.", words, model, plural(sb.Spec.Heal.Attempts, "attempt")))
	} else {
		line(themes.Muted, words+".")
		line(themes.Warning, "That is all for now: "+first(h.w.snap.About.NoModel, "no model is configured"))
	}
	p.blank()
	if sb.State.Live() {
		p.add(p.pen().Gap(2).Put(themes.Key, "H").Put(themes.Text, "  heals it now, as if something had been noticed").Put(themes.Muted, "  (press it twice)"))
	}
	p.add(p.pen().Gap(2).Put(themes.Key, "P").Put(themes.Text, "  pauses auto-heal, "+pausedNow(sb, h.w)))
	return p.text()
}

func pausedNow(sb engine.Sandbox, w *world) string {
	if sb.Maintenance.Active(w.asOf()) {
		return "which is " + pausedWords(sb.Maintenance, w.asOf())
	}
	return "which is on now"
}

// tried says how many attempts a run made.
func tried(r engine.HealRun) string {
	if r.Attempt == 0 {
		return "playbooks only"
	}
	return plural(r.Attempt, "attempt")
}

// strip tells of a broken sandbox and the ways on; nothing for others.
func (h *healer) strip(r engine.HealRun) []string {
	sb, _ := h.w.sandbox(h.id)
	if sb.Health != engine.Broken {
		return nil
	}
	words := fmt.Sprintf("broken since %s · %s · %s", stamp(h.w.asOf(), sb.HealthChanged), tried(r),
		sentences(first(oneLine(r.Summary), sb.Reason)))
	var out []string
	for _, l := range draw.Wrap(words, h.width-2, 2) {
		a := draw.New(h.w.styles, h.width).Put(themes.HealthBroken, " "+l)
		out = append(out, a.Rule(themes.HealthBroken, " ", a.Left()).String())
	}
	b := draw.New(h.w.styles, h.width).Gap(1)
	for _, way := range [][2]string{{"H", "tries again"}, {"3", "reads the log"}, {"R", "restarts the app"}, {"P", "leaves it to you"}} {
		b.Put(themes.Key, way[0]).Gap(1).Put(themes.Text, way[1]).Gap(3)
	}
	next := "next: " + oneLine(r.Next)
	switch {
	case r.Next == "" || h.height < 12:
		return append(out, b.String())
	case draw.Width(next) < b.Left():
		return append(out, b.Put(themes.Muted, next).String())
	}
	return append(out, draw.New(h.w.styles, h.width).Gap(1).Put(themes.Text, next).String(), b.String())
}

// brief is the story in one line.
func (h *healer) brief(r engine.HealRun) string {
	p := h.w.pen(h.width).Gap(1)
	if r.Open() {
		p.Put(themes.HealthHealing, h.w.spinner()+" ")
	}
	tail := h.took(r)
	if !r.Open() {
		tail = string(r.Outcome) + " " + tail
	}
	if c := cost(r.Spent); c != "" {
		tail += " · " + c
	}
	p.Cell(themes.Text, r.Cause, p.Left()-draw.Width(tail)-2).Gap(1)
	return p.Put(themes.Muted, tail).String()
}

func (h *healer) took(r engine.HealRun) string {
	if r.Open() {
		return span(h.w.asOf().Sub(r.Started))
	}
	return span(r.Ended.Sub(r.Started))
}

// story is the run from its signal to what comes next.
func (h *healer) story(p *panel, r engine.HealRun) {
	note, role := h.w.spinner()+" "+h.took(r), themes.HealthHealing
	if !r.Open() {
		note, role = string(r.Outcome)+" "+h.took(r), themes.Muted
	}
	p.title("Heal run "+engine.Short(r.ID), note, role, h.onStory)
	h.signal(p, r)
	attempts, _, err := h.told()
	if err != nil {
		p.add(p.pen().Gap(1).Put(themes.Error, "history: "+err.Error()))
	}
	for _, a := range attempts {
		h.part(p, r, a)
	}
	h.next(p, r)
	h.spent(p, r)
	h.server(p)
	h.result(p, r)
}

func (h *healer) spent(p *panel, r engine.HealRun) {
	if r.Spent.Tokens() == 0 && r.Spent.Dollars == 0 {
		p.title("Spent", "nothing: no model was asked", themes.Muted, false)
		return
	}
	p.title("Spent", "", themes.Muted, false)
	p.fact("steps", themes.Text, plural(r.Spent.Steps, "step"))
	p.fact("tokens", themes.Text, fmt.Sprintf("%s in · %s cached · %s out", count(r.Spent.InputTokens+r.Spent.CacheWrites),
		count(r.Spent.CacheReads), count(r.Spent.OutputTokens)))
	p.fact("cost", themes.Text, fmt.Sprintf("$%.2f", r.Spent.Dollars))
}

// cause is the signal that began a run. The sandbox's latest may be another.
func (h *healer) cause(r engine.HealRun) engine.Signal {
	if sig, ok := h.w.snap.Signals[h.id]; ok && sig.ID == r.Signal {
		return sig
	}
	if sig := h.w.story(r.ID).signal; sig.ID != 0 {
		return sig
	}
	return engine.Signal{At: r.Started, Observed: r.Cause}
}

func (h *healer) signal(p *panel, r engine.HealRun) {
	sig := h.cause(r)
	p.add(p.pen().Gap(1).Cell(themes.Muted, clock(sig.At), 10).Put(themes.Alert, " signal ").Gap(1).
		Put(themes.Text, first(signalWord(sig), "by "+r.By.String())))
	for _, l := range draw.Wrap(sig.Observed, p.width-12, 3) {
		p.add(p.pen().Gap(11).Put(themes.Muted, l))
	}
	if sig.Verdict != nil {
		for _, l := range draw.Wrap("→ "+verdictWords(sig.Verdict), p.width-12, 3) {
			p.add(p.pen().Gap(11).Put(themes.Text, l))
		}
	}
	if r.Checkpoint != "" {
		p.add(p.pen().Gap(11).Put(themes.Muted, "checkpoint "+engine.Short(r.Checkpoint)+" taken"))
	}
	p.blank()
}

// part is an attempt in three lines: why, did, end or now.
func (h *healer) part(p *panel, r engine.HealRun, a engine.Attempt) {
	ground := style.Plain
	if a.Number == h.attempt {
		ground = style.Selected
	}
	line := func() *draw.Pen {
		pen := draw.On(h.w.styles, ground, p.width)
		if a.Number == h.attempt && h.onStory {
			return pen.Put(themes.BorderFocus, "▌")
		}
		return pen.Gap(1)
	}
	glyph, role := h.w.glyphs.Broken, themes.Error
	switch a.Outcome {
	case "":
		glyph, role = h.w.spinner(), themes.HealthHealing
	case engine.Healed:
		glyph, role = h.w.glyphs.Ready, themes.HealthReady
	}
	took := span(a.Ended.Sub(a.Started))
	if a.Ended.IsZero() {
		took = span(h.w.asOf().Sub(a.Started))
	}
	if c := cost(a.Spent); c != "" {
		took += " · " + c
	}
	p.add(line().Cell(themes.Muted, clock(a.Started), 10).Put(role, glyph+" "+attemptName(a.Number)).Gap(2).Put(themes.Muted, took))
	three := func(name string, role themes.Role, text string) {
		if text == "" {
			return
		}
		for _, l := range draw.Wrap(text, p.width-12, 2) {
			p.add(line().Gap(2).Cell(themes.Muted, name, 8).Put(role, l))
			name = ""
		}
	}
	three("why:", themes.Text, oneLine(a.Why))
	three("did:", themes.Text, h.did(a))
	switch {
	case a.Outcome == "" && r.Doing != "":
		three("now:", themes.HealthHealing, r.Doing)
	case a.Outcome == engine.Healed:
		three("end:", themes.HealthReady, first(oneLine(a.Summary), "healthy"))
	case a.Outcome != "":
		three("end:", themes.Error, first(oneLine(a.Summary), string(a.Outcome)))
	}
	p.blank()
}

// did is what an attempt changed: the last file that it edited, and how many.
func (h *healer) did(a engine.Attempt) string {
	_, steps, _ := h.told()
	var last string
	n, add, del := 0, 0, 0
	for _, s := range steps {
		if s.Attempt == a.Number && s.Diff != "" {
			x, y := diffCount(s.Diff)
			n, add, del, last = n+1, add+x, del+y, "edit "+s.Argument
			if s.Kind == engine.StepPlaybook {
				last = s.Name
			}
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s +%d −%d", last, add, del)
	}
	return fmt.Sprintf("%d edits +%d −%d", n, add, del)
}

// next is what comes if nothing helps.
func (h *healer) next(p *panel, r engine.HealRun) {
	if !r.Open() {
		return
	}
	if r.Attempt < r.MaxAttempts {
		p.add(p.pen().Gap(11).Put(themes.Muted, fmt.Sprintf("%s attempt %-7d if this fails", h.w.glyphs.Cold, r.Attempt+1)))
	}
	p.add(p.pen().Gap(11).Put(themes.Muted, h.w.glyphs.Cold+" then            broken → you"))
	p.blank()
}

func (h *healer) server(p *panel) {
	if t := h.w.trace(h.id); t.failing() {
		p.blank()
		p.title("Server", h.w.gauges.Sandboxes[h.id].Probe.Detail, themes.Muted, false)
		p.add(probeMarks(h.w, p.pen().Gap(1), t.probes))
	}
}

// result is what a run left behind.
func (h *healer) result(p *panel, r engine.HealRun) {
	if r.Open() {
		return
	}
	p.blank()
	p.title("In the end", "", themes.Muted, false)
	text := func(role themes.Role, s string) {
		for _, l := range draw.Wrap(s, p.width-2, 4) {
			p.add(p.pen().Gap(1).Put(role, l))
		}
	}
	text(themes.Text, sentences(r.Summary))
	if r.FixedBy != "" {
		p.fact("fixed by", themes.Text, r.FixedBy)
	}
	p.fact("commit", themes.Text, commitWords(r))
	for _, path := range r.Changed {
		p.add(p.pen().Gap(1).Put(themes.Warning, "M ").Put(themes.Text, path))
	}
	for _, path := range r.KeptByUser {
		p.add(p.pen().Gap(1).Put(themes.Muted, "kept, changed by you: "+path))
	}
	if r.Next != "" {
		text(themes.Muted, "Next: "+r.Next)
	}
}
