package tui

import (
	"fmt"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
)

func (o *overview) processes(p *panel, sb engine.Sandbox) {
	list := o.w.snap.Of(sb.ID)
	p.title("Processes", "", themes.Muted, false)
	if len(list) == 0 {
		p.add(p.pen().Gap(2).Put(themes.Muted, "none: "+string(sb.State)))
	}
	for _, proc := range list {
		glyph, role := processSign(o.w, proc)
		name := first(proc.Name, proc.Command.Shell)
		pen := p.pen().Gap(2).Put(role, glyph).Gap(1).Cell(themes.Text, name, 18).Gap(1)
		pen.Cell(role, processWords(proc), 16).Gap(1)
		up := "—"
		if proc.State.Alive() {
			up = ago(o.w.asOf(), proc.Started)
		}
		pen.Cell(themes.Muted, "up "+up, 7).Cell(themes.Muted, plural(proc.Restarts, "restart"), 12)
		p.add(pen.Gap(1).Put(themes.Muted, proc.Reason))
	}
	p.blank()
}

func processSign(w *world, p engine.Process) (string, themes.Role) {
	switch p.State {
	case engine.ProcessRunning:
		return w.glyphs.Ready, themes.HealthReady
	case engine.ProcessFailed:
		return w.glyphs.Broken, themes.Error
	case engine.ProcessBackoff:
		return w.glyphs.Healing, themes.Warning
	case engine.ProcessStarting:
		return w.glyphs.Warming, themes.LifeWarming
	}
	return w.glyphs.None, themes.Muted
}

func processWords(p engine.Process) string {
	if (p.State == engine.ProcessFailed || p.State == engine.ProcessBackoff) && p.Exit != nil {
		return string(p.State) + ", " + p.Exit.String()
	}
	return string(p.State)
}

// signalList is what the detectors saw, and what was made of it.
func (o *overview) signalList(p *panel) {
	p.title("Signals", "what was noticed, and why something or nothing was done", themes.Muted, false)
	list := o.signals
	if sig, ok := o.w.snap.Signals[o.id]; ok && (len(list) == 0 || list[0].ID < sig.ID) {
		list = append([]engine.Signal{sig}, list...)
	}
	if len(list) == 0 {
		p.add(p.pen().Gap(2).Put(themes.Muted, "none raised"))
	}
	for _, s := range list[:min(len(list), 5)] {
		role := themes.Muted
		if s.Verdict != nil && s.Verdict.Action == engine.Repair {
			role = themes.Error
		}
		p.add(p.pen().Gap(2).Cell(themes.Muted, stamp(o.w.asOf(), s.At), 7).Cell(role, signalWord(s), 12).Gap(1).Put(themes.Text, s.Observed))
		p.add(p.pen().Gap(9).Put(themes.Muted, "→ "+verdictWords(s.Verdict)))
	}
	p.blank()
}

// history are the ended heal runs and the checkpoints, latest first.
func (o *overview) history(p *panel) {
	p.title("History", "", themes.Muted, false)
	if o.err != nil {
		p.add(p.pen().Gap(2).Put(themes.Error, "history: "+o.err.Error()))
	}
	if len(o.runs) == 0 && o.err == nil {
		p.add(p.pen().Gap(2).Put(themes.Muted, "no heal run has ended here"))
	}
	for _, r := range o.runs[:min(len(o.runs), 6)] {
		h := happening{}
		h.finished(r)
		glyph, role := h.sign(o.w)
		p.add(p.pen().Gap(2).Cell(themes.Muted, stamp(o.w.asOf(), r.Started), 7).Put(role, glyph).Gap(1).
			Cell(themes.Text, r.Cause, min(34, p.width/3)).Gap(2).Put(themes.Text, h.words))
	}
	p.blank()
	if len(o.checkpoints) == 0 {
		return
	}
	p.title("Checkpoints", "", themes.Muted, false)
	for _, c := range o.checkpoints[:min(len(o.checkpoints), 5)] {
		pen := p.pen().Gap(2).Cell(themes.Muted, stamp(o.w.asOf(), c.Created), 7).Cell(themes.Text, engine.Short(c.ID), 9)
		if c.Good {
			pen.Put(themes.HealthReady, o.w.glyphs.Ready+" good ")
		}
		p.add(pen.Gap(1).Put(themes.Muted, c.Note))
	}
	p.blank()
}

// charts are cpu and memory of the last minutes.
func (o *overview) charts(p *panel, sb engine.Sandbox) {
	t, sample := o.w.trace(sb.ID), o.w.gauges.Sandboxes[sb.ID]
	p.title("CPU", fmt.Sprintf("%d %%", t.load), themes.Text, false)
	o.chart(p, t.cpu)
	note := memory(t.memory)
	if sb.Spec.Limits.Memory > 0 {
		note += " of " + memory(sb.Spec.Limits.Memory)
	}
	p.title("Memory", note, themes.Text, false)
	o.chart(p, t.mem)
	if sample.LogLine != "" {
		p.title("Last log line", "3 opens the log", themes.Muted, false)
		for _, l := range draw.Wrap(sample.LogLine, p.width-2, 2) {
			p.add(p.pen().Gap(1).Put(themes.Text, l))
		}
		p.blank()
	}
}

// chart is three lines of bars, a column for every ten seconds.
func (o *overview) chart(p *panel, levels []uint8) {
	const height = 3
	levels = tail(levels, p.width-2)
	for y := range height {
		pen := p.pen().Gap(1)
		axis := y == height-1
		if blank := p.width - 2 - len(levels); axis {
			pen.Bars(themes.Border, blank, 0)
		} else {
			pen.Gap(blank)
		}
		for _, v := range levels {
			level := int(quiet(v))*height*8/100 - (height-1-y)*8
			switch {
			case level > 0:
				pen.Put(themes.Chart, o.w.styles.Spark(min(7, level-1)))
			case axis:
				pen.Put(themes.Border, o.w.styles.Spark(0))
			default:
				pen.Gap(1)
			}
		}
		p.add(pen)
	}
	p.blank()
}

// can is what a person can do here, and why not.
func (o *overview) can(p *panel, sb engine.Sandbox) {
	p.title("What you can do", "", themes.Muted, false)
	line := func(key, words, note string, blocked bool) {
		keyRole, role := themes.Key, themes.Text
		if blocked {
			keyRole, role = themes.Stale, themes.Stale
		}
		p.add(p.pen().Gap(2).Cell(keyRole, key, 3).Cell(role, words, 18).Gap(1).Put(themes.Muted, note))
	}
	line("2", "watch the healer", "", false)
	line("3", "read the log", "", false)
	for _, a := range o.acts {
		why := a.why(o.w, sb)
		line(a.key.Help().Key, a.title(o.w, sb), first(why, tierWords(a.tier(sb))), why != "")
	}
}

func tierWords(d engine.Danger) string {
	switch d {
	case engine.Repeat:
		return "press it twice"
	case engine.Confirm:
		return "asks first"
	case engine.TypeToName:
		return "type its name"
	}
	return ""
}
