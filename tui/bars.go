package tui

import (
	"fmt"
	"strconv"

	"charm.land/bubbles/v2/key"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// part is a piece of a bar.
type part struct {
	role themes.Role
	text string
}

func widthOf(parts []part) int {
	n := 0
	for _, p := range parts {
		n += draw.Width(p.text)
	}
	return n
}

// bar is the first row: which engine, how it is, and the counts.
func (a *App) bar() string {
	w := a.w
	p := draw.On(w.bright, style.Bar, a.width).Gap(1)
	if a.width >= middleWidth {
		p.Put(themes.Title, "sbx").Put(themes.Muted, " › ")
	}
	p.Put(themes.Title, first(w.cfg.Name, "engine")).Gap(1)
	switch w.link.state {
	case connecting:
		return a.barConnecting(p)
	case lost:
		return a.barLost(p)
	}
	p.Put(themes.HealthReady, w.glyphs.Running)
	if a.width >= middleWidth {
		p.Put(themes.HealthReady, " live")
	}
	p.Gap(1)
	switch a.screen {
	case onSandbox:
		sb, _ := w.sandbox(a.sandbox.id)
		p.Put(themes.Muted, "Fleet › ").Put(themes.Accent, first(sb.Name, string(a.sandbox.id)))
	case onIncidents:
		p.Put(themes.Muted, "Fleet › ").Put(themes.Accent, "Incidents")
	default:
		p.Put(themes.Accent, "Fleet")
	}
	right := a.counts()
	if need := widthOf(right) + 1; need < p.Left() {
		p.To(need)
		for _, r := range right {
			p.Put(r.role, r.text)
		}
	}
	return p.String()
}

func (a *App) barConnecting(p *draw.Pen) string {
	p.Put(themes.Warning, "◌").Gap(1).Put(themes.Text, "connecting "+a.w.cfg.Where)
	if a.w.link.cause != "" {
		p.Gap(2).Put(themes.Error, a.w.link.cause).Gap(2).Put(themes.Muted, a.w.link.countdown(a.w.now))
	}
	return p.Ends(themes.Muted, span(a.w.now.Sub(a.w.link.since))+" ").String()
}

func (a *App) barLost(p *draw.Pen) string {
	l := &a.w.link
	p.Put(themes.BadgeOffline, " NOT CONNECTED ").Gap(2)
	end := l.countdown(a.w.now) + "   " + a.w.keys.Retry.Help().Key + " now "
	age := "last news " + clock(l.news) + ", " + span(a.w.now.Sub(l.news)) + " ago"
	if a.width < middleWidth {
		age = span(a.w.now.Sub(l.news)) + " ago"
	}
	p.Cell(themes.Text, age, min(draw.Width(age), p.Left()-draw.Width(end)-1)).Gap(2)
	if room := p.Left() - draw.Width(end) - 1; room > 8 {
		p.Cell(themes.Error, l.cause, room)
	}
	return p.Ends(themes.Warning, end).String()
}

// counts are how the fleet is, as much of it as the width has room for.
func (a *App) counts() []part {
	w := a.w
	g, f := w.glyphs, &w.fleet
	wide := a.width >= middleWidth
	var list []part
	health := func(n int, role themes.Role, glyph, word string) {
		if n == 0 && word != "ready" {
			return
		}
		text := glyph + strconv.Itoa(n) + " "
		if wide {
			text = glyph + " " + strconv.Itoa(n) + " " + word + "  "
		}
		list = append(list, part{role, text})
	}
	health(f.health[engine.Broken], themes.Error, g.Broken, "broken")
	health(f.health[engine.Healing], themes.HealthHealing, g.Healing, "healing")
	health(f.health[engine.Ready], themes.HealthReady, g.Ready, "ready")
	if a.width >= wideWidth {
		list = append(list, a.lives()...)
	}
	total := fmt.Sprintf("%d", len(f.entries))
	if most := w.gauges.Pool.MaxCapacity; most > 0 {
		total += fmt.Sprintf("/%d", most)
	}
	return append(list, part{themes.Muted, total + "  "}, part{themes.Title, w.now.Local().Format("15:04")}, part{themes.Text, " "})
}

// lives are how many sandboxes are in each state that any is in.
func (a *App) lives() []part {
	var list []part
	for _, s := range []engine.State{engine.Cold, engine.Warming, engine.Warm, engine.Waiting, engine.Running} {
		if n := a.w.fleet.state[s]; n > 0 {
			sign := lifeSign(a.w.glyphs, s)
			list = append(list, part{themes.Muted, sign.glyph + " " + strconv.Itoa(n) + " " + sign.word + "  "})
		}
	}
	return append(list, part{themes.Muted, "· "})
}

// head is the second row: the fleet's filter and order, or a sandbox's tabs.
func (a *App) head() string {
	switch a.screen {
	case onSandbox:
		return a.sandbox.head(a.width, a.tabHit)
	case onIncidents:
		return a.incidents.head(a.width)
	}
	f, p := a.fleet, a.w.pen(a.width).Gap(1)
	if len(a.w.fleet.entries) == 0 {
		return p.String()
	}
	p.Put(themes.Muted, "filter ")
	switch {
	case f.Typing():
		drawInput(p, f.input.Value(), f.input.Position())
	case f.filter.empty():
		p.Put(themes.Text, "none")
	default:
		p.Put(themes.Accent, f.filter.text)
	}
	p.Gap(3).Put(themes.Muted, "sort ").Put(themes.Text, a.w.fleet.sort.String()+" ▾")
	p.Gap(3).Put(themes.Muted, "group ").Put(themes.Text, a.w.fleet.group.String())
	if n := len(a.w.marks); n > 0 {
		p.Gap(3).Put(themes.Mark, fmt.Sprintf("%s %d marked", a.w.glyphs.Mark, n))
	}
	return p.Ends(themes.Muted, f.extent()+" ").String()
}

// extent says which rows of how many show.
func (f *fleet) extent() string {
	all, n := len(f.w.fleet.entries), len(f.list)
	switch {
	case n != all:
		return fmt.Sprintf("%d of %s", n, plural(all, "sandbox"))
	case f.rows() > f.height-1 && f.height > 1:
		from := f.top + 1 - f.titles(f.top)
		return fmt.Sprintf("%d–%d of %d", max(1, from), min(n, f.top+f.height-1), n)
	}
	return plural(n, "sandbox")
}

// mode is where keys go: the first thing on the status row.
func (a *App) mode() part {
	switch {
	case a.overlay == nil && a.screen == onSandbox && a.sandbox.tab == tabTerminal && typing(a.current()):
		return part{themes.BadgeTerm, " TERM "}
	case a.overlay == nil && typing(a.current()), a.overlay != nil && typing(a.overlay):
		return part{themes.BadgeType, " TYPE "}
	case a.w.link.state == lost:
		return part{themes.BadgeOffline, " OFFLINE "}
	}
	return part{themes.BadgeNav, " NAV "}
}

// status is the mode and the toast; on low screens the hints share its row.
func (a *App) status() string {
	m := a.mode()
	p := draw.New(a.w.bright, a.width)
	shared := a.layout.hints.w == 0
	if shared {
		p = draw.On(a.w.bright, style.Bar, a.width)
	}
	p.Put(m.role, m.text).Gap(1)
	if a.w.cfg.ReadOnly != "" {
		p.Put(themes.Alert, " READ-ONLY ").Gap(1)
	}
	switch {
	case a.toast.text != "" && a.w.now.Before(a.toast.until):
		p.Put(a.toast.role, a.toast.text)
		if !shared {
			p.Gap(2).Put(themes.Muted, a.toast.at.Local().Format("15:04"))
		}
	case shared:
		a.hintsOn(p)
	case a.w.link.state == lost:
		p.Put(themes.Text, "you can read, search and filter what is here; "+a.w.keys.actingKeys()+" wait for the engine")
	case a.screen == onFleet && len(a.w.marks) == 0 && a.w.snap != nil && a.w.snap.About.Model == "":
		p.Ends(themes.Warning, "no model: only playbooks heal ")
	case len(a.w.marks) > 0:
		p.Ends(themes.Muted, fmt.Sprintf("%s%d marked: %s apply to all · %s unmarks ", a.w.glyphs.Mark, len(a.w.marks), a.w.keys.actingKeys(), a.w.keys.Back.Help().Key))
	}
	return p.String()
}

// hints are the keys that matter here.
func (a *App) hints() string {
	p := draw.On(a.w.bright, style.Bar, a.width).Gap(1)
	a.hintsOn(p)
	return p.String()
}

func (a *App) hintsOn(p *draw.Pen) {
	const helpWidth = 8
	list := a.current().ShortHelp()
	if a.overlay != nil {
		list = a.overlay.ShortHelp()
	} else if a.w.link.state == lost && !typing(a.current()) {
		list = append([]key.Binding{as(a.w.keys.Retry, "retry now")}, list...)
	} else if a.w.snap == nil || len(a.w.fleet.entries) == 0 && a.screen == onFleet {
		list = []key.Binding{as(a.w.keys.Retry, "retry"), as(a.w.keys.Quit, "quit")}
	}
	for _, b := range list {
		h := b.Help()
		if p.Left()-helpWidth < draw.Width(h.Key)+draw.Width(h.Desc)+3 {
			break
		}
		from := p.Left()
		p.Put(themes.Key, h.Key).Gap(1).Put(themes.Text, h.Desc)
		a.clickable(a.hintsRow(), p, from, a.pressing(b))
		p.Gap(2)
	}
	if p.Left() >= helpWidth && a.overlay == nil && !typing(a.current()) {
		p.To(helpWidth-1).Put(themes.Key, a.w.keys.Help.Help().Key).Put(themes.Text, " help")
	}
}
