package tui

import (
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// twice is how long a key waits to be pressed again.
const twice = 2 * time.Second

func (a *App) current() Component {
	switch a.screen {
	case onSandbox:
		return a.sandbox
	case onIncidents:
		return a.incidents
	}
	return a.fleet
}

// key routes a key: overlay, Typist, everywhere, actions, screen.
func (a *App) key(msg tea.KeyPressMsg) tea.Cmd {
	k := a.w.keys
	if key.Matches(msg, k.Interrupt) {
		if s, ok := a.pane().(interface{ stops() (tea.Cmd, bool) }); ok && a.overlay == nil {
			if cmd, ok := s.stops(); ok {
				return cmd
			}
		}
		return a.interrupt()
	}
	if a.overlay != nil {
		over := a.overlay
		cmd := over.Update(msg)
		if over.done() && a.overlay == over { // or it has opened another
			a.overlay = nil
		}
		return cmd
	}
	if a.layout.small {
		if key.Matches(msg, k.Quit) {
			return a.leave()
		}
		return nil
	}
	if typing(a.current()) {
		return a.current().Update(msg)
	}
	if t, ok := a.pane().(interface{ takes(tea.KeyPressMsg) bool }); ok && t.takes(msg) {
		return a.pane().Update(msg) // a strip that waits has the keys it names
	}
	if cmd, ok := a.everywhere(msg); ok {
		return cmd
	}
	for _, act := range a.actions {
		if key.Matches(msg, act.key) {
			return a.act(act)
		}
	}
	if a.w.snap == nil {
		return nil
	}
	cmd := a.current().Update(msg)
	a.arrange() // the inspector may have been closed
	return cmd
}

func (a *App) paste(msg tea.PasteMsg) tea.Cmd {
	if a.overlay != nil {
		return a.overlay.Update(msg)
	}
	if typing(a.current()) {
		return a.current().Update(msg)
	}
	return nil
}

// everywhere answers the keys that mean the same in every place.
func (a *App) everywhere(msg tea.KeyPressMsg) (tea.Cmd, bool) {
	k := a.w.keys
	switch {
	case key.Matches(msg, k.Help):
		a.overlay = newHelp(a.w, a.current(), a.helpPlace(), a.width, a.height)
	case key.Matches(msg, k.Quit) && a.screen == onFleet:
		return a.leave(), true
	case key.Matches(msg, k.Back, k.Quit) && a.screen == onSandbox:
		return a.stepBack(), true
	case key.Matches(msg, k.Back, k.Quit) && a.screen == onIncidents:
		a.goHome()
	case key.Matches(msg, k.Incidents):
		return a.toIncidents(), true
	case key.Matches(msg, k.Redraw):
		return tea.ClearScreen, true
	case key.Matches(msg, k.Suspend):
		return tea.Suspend, true
	case key.Matches(msg, k.Retry) && (a.w.link.state != live || !a.retries()):
		return a.refresh(), true
	case key.Matches(msg, k.Palette):
		a.commandPalette()
	case key.Matches(msg, k.Copy) && a.w.snap != nil:
		a.copyMenu()
	case key.Matches(msg, k.Save) && a.screen == onSandbox && a.sandbox.tab == tabFiles:
		return a.files().askDownload(), true
	case key.Matches(msg, k.Save) && a.screen != onFleet:
		a.savePane()
	case key.Matches(msg, k.Quick) && a.screen == onFleet:
		a.quickMenu()
	case key.Matches(msg, k.Columns) && a.screen == onFleet:
		a.columnMenu()
	case key.Matches(msg, k.Problem):
		return a.problem(), true
	case key.Matches(msg, k.PrevBox):
		return a.walk(-1), true
	case key.Matches(msg, k.NextBox):
		return a.walk(1), true
	case key.Matches(msg, k.Fleet):
		return a.toggleFleet(), true
	default:
		return a.tabKey(msg)
	}
	return nil, true
}

// walk goes to the sandbox n places on, on the same tab.
func (a *App) walk(n int) tea.Cmd {
	if a.screen == onSandbox {
		return a.open(a.fleet.beside(a.sandbox.id, n), a.sandbox.tab)
	}
	a.fleet.touched = true
	a.fleet.move(n)
	return nil
}

// retries reports whether the pane has something of its own to try again.
func (a *App) retries() bool {
	r, ok := a.pane().(interface{ retries() bool })
	return ok && r.retries()
}

// refresh asks the engine for everything anew.
func (a *App) refresh() tea.Cmd {
	if a.w.link.state == live {
		a.say(themes.Info, "refreshed")
	}
	return a.c.retry()
}

// commandPalette opens the list of everything that can be done here.
func (a *App) commandPalette() {
	target := ""
	if list := a.targets(); len(list) > 0 {
		target = what(list)
	}
	a.show(newPalette(a.w, target, a.commandsHere()))
}

func (a *App) tabKey(msg tea.KeyPressMsg) (tea.Cmd, bool) {
	for _, t := range a.sandbox.tabs {
		if !key.Matches(msg, t.key) {
			continue
		}
		if id := a.selected(); id != "" {
			return a.open(id, t.tab), true
		}
		return nil, true
	}
	return nil, false
}

// stepBack undoes a search, or goes back to where the sandbox was opened: the
// incidents or the fleet.
func (a *App) stepBack() tea.Cmd {
	if a.sandbox.tab == tabFiles && a.files().edit != nil {
		return a.files().leaveEdit()
	}
	if b, ok := a.sandbox.pane().(interface{ back() bool }); ok && b.back() {
		return nil
	}
	if a.fromIncidents {
		return a.toIncidents()
	}
	a.goHome()
	return nil
}

// toIncidents shows what the healer did across the fleet, or goes back.
func (a *App) toIncidents() tea.Cmd {
	if a.screen == onIncidents {
		a.goHome()
		return nil
	}
	a.goHome()
	a.screen = onIncidents
	a.arrange()
	if a.w.snap == nil {
		return nil
	}
	return a.incidents.show()
}

func (a *App) toggleFleet() tea.Cmd {
	if a.screen != onFleet {
		a.goHome()
		return nil
	}
	return a.open(a.sandbox.id, a.sandbox.tab)
}

// problem goes to the next sandbox that needs somebody: in the fleet the cursor
// does, in a sandbox its healer opens.
func (a *App) problem() tea.Cmd {
	id, ok := a.w.problem(a.selected())
	switch {
	case !ok:
		a.say(themes.Info, "no sandbox needs you")
		return nil
	case a.screen != onFleet:
		return a.open(id, tabHealer)
	}
	a.fleet.touched = true
	a.fleet.jump(id)
	return nil
}

// selected is the sandbox that keys are about.
func (a *App) selected() engine.SandboxID {
	switch a.screen {
	case onSandbox:
		return a.sandbox.id
	case onIncidents:
		if e := a.incidents.selected(); e != nil {
			return e.run.Sandbox
		}
		return ""
	}
	return a.fleet.cursor
}

func (a *App) helpPlace() place {
	switch a.screen {
	case onFleet:
		return a.w.keys.ofFleet()
	case onIncidents:
		return a.w.keys.ofIncidents()
	}
	return a.w.keys.places()[1+int(a.sandbox.tab)]
}

// interrupt leaves at the second ctrl+C; the first one gets out of typing.
func (a *App) interrupt() tea.Cmd {
	if a.again("ctrl+c") {
		return tea.Quit
	}
	a.say(themes.Warning, "ctrl+C again leaves")
	return nil
}

// again notes a key and reports whether it is the second press of it.
func (a *App) again(key string) bool {
	if a.tap.key == key && a.w.now.Before(a.tap.until) {
		a.tap = tap{}
		return true
	}
	a.tap = tap{key: key, until: a.w.now.Add(twice)}
	return false
}

// leave quits, or asks first what becomes of the engine.
func (a *App) leave() tea.Cmd {
	q := a.w.cfg.Quit
	if q.Title == "" {
		return tea.Quit
	}
	choose := func(c Choice) func() tea.Cmd {
		return func() tea.Cmd {
			a.choice = c
			return tea.Quit
		}
	}
	d := newDialog(a.w, q.Title)
	for _, line := range q.Body {
		d.say(themes.Text, line)
	}
	if q.Leave != "" {
		d.offer("y", q.Leave, choose(LeaveRunning))
	}
	if q.Stop != "" {
		d.offer("s", q.Stop, choose(StopAll))
	}
	d.cancel = "stay"
	a.show(d)
	return nil
}

func (a *App) show(o overlay) {
	a.overlay = o
	o.SetSize(a.width, a.height)
}
