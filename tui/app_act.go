package tui

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// manyNamed is how many sandboxes a bulk action may hit before their number
// must be typed.
const manyNamed = 10

// targets are the sandboxes that an action is about: the marked ones, or the
// selected one.
func (a *App) targets() []engine.Sandbox {
	var list []engine.Sandbox
	if a.screen == onFleet && len(a.w.marks) > 0 {
		for _, e := range a.w.fleet.entries {
			if sb, ok := a.w.sandbox(e.id); ok && a.w.marks[e.id] {
				list = append(list, sb)
			}
		}
		return list
	}
	if sb, ok := a.w.sandbox(a.selected()); ok {
		list = append(list, sb)
	}
	return list
}

// act does an action to its targets, or asks first, or says why it can't.
func (a *App) act(act action) tea.Cmd {
	all := a.targets()
	var can []engine.Sandbox
	why := "there is no sandbox"
	for _, sb := range all {
		if reason := act.why(a.w, sb); reason != "" {
			why = reason
			continue
		}
		can = append(can, sb)
	}
	if len(can) == 0 {
		a.say(themes.Warning, act.key.Help().Key+": "+why)
		return nil
	}
	if act.body == nil {
		a.show(a.pauseMenu(can))
		return nil
	}
	title := act.title(a.w, can[0])
	tier := act.tier(can[0])
	if len(can) > 1 && tier < engine.Confirm {
		tier = engine.Confirm
	}
	if len(can) > manyNamed {
		tier = engine.TypeToName
	}
	switch tier {
	case engine.Harmless:
		return a.send(act, can)
	case engine.Repeat:
		if a.again(act.key.Help().Key + string(can[0].ID)) {
			return a.send(act, can)
		}
		a.say(themes.Warning, fmt.Sprintf("%s again: %s of %s", act.key.Help().Key, title, can[0].Name))
		return nil
	}
	a.show(a.confirm(act, can, len(all)-len(can), tier))
	return nil
}

// send asks the engine, in the state that the person saw.
func (a *App) send(act action, list []engine.Sandbox) tea.Cmd {
	bodies := make([]engine.ActionBody, len(list))
	for i, sb := range list {
		bodies[i] = act.body(sb)
	}
	clear(a.w.marks)
	return a.c.actAll(wordsOf(bodies[0], list), bodies)
}

// wordsOf is "restart api", or "restart 3 sandboxes".
func wordsOf(body engine.ActionBody, list []engine.Sandbox) string {
	return engine.EntryOf(body).Verb + " " + what(list)
}

func what(list []engine.Sandbox) string {
	if len(list) == 1 {
		return list[0].Name
	}
	return plural(len(list), "sandbox")
}

// confirm is the dialog of an action: what it does to whom, and what is lost.
func (a *App) confirm(act action, list []engine.Sandbox, skipped int, tier engine.Danger) *dialog {
	verb := first(act.verb, engine.EntryOf(act.body(list[0])).Verb)
	title := fmt.Sprintf("%s %s in %s?", upper(verb), what(list), first(a.w.cfg.Name, "sbx"))
	d := newDialog(a.w, title)
	for i, sb := range list {
		if i == 6 {
			d.say(themes.Muted, fmt.Sprintf("… and %d more", len(list)-i))
			break
		}
		d.target(sb)
	}
	if skipped > 0 {
		d.say(themes.Muted, fmt.Sprintf("%d of the marked can't: left out", skipped))
	}
	d.say(themes.Text, "")
	d.say(themes.Text, act.loses)
	do := func() tea.Cmd { return a.send(act, list) }
	if tier == engine.TypeToName {
		name := list[0].Name
		if len(list) > 1 {
			name = strconv.Itoa(len(list))
		}
		d.demand(name, verb, do)
		return d
	}
	words := verb
	if len(list) == 2 {
		words += " both"
	} else if len(list) > 2 {
		words += fmt.Sprintf(" all %d", len(list))
	}
	d.offer("y", words, do)
	return d
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]&^0x20) + s[1:]
}

// pauseMenu asks for how long auto-heal is to be paused.
func (a *App) pauseMenu(list []engine.Sandbox) *dialog {
	d := newDialog(a.w, "Pause auto-heal of "+what(list)+"?")
	d.say(themes.Text, "Signals are still noticed and written down. Nothing is repaired meanwhile.")
	paused := false
	for _, sb := range list {
		paused = paused || sb.Maintenance.Active(a.w.now)
	}
	for _, m := range pauses() {
		if m.key == "c" && !paused {
			continue
		}
		d.offer(m.key, m.words, func() tea.Cmd {
			bodies := make([]engine.ActionBody, len(list))
			for i, sb := range list {
				bodies[i] = m.body(sb.ID)
			}
			clear(a.w.marks)
			return a.c.actAll("auto-heal of "+what(list)+": "+m.words, bodies)
		})
	}
	return d
}

// received says how an action was taken.
func (a *App) received(msg actionMsg) {
	if msg.err != nil {
		words := msg.words + ": " + msg.err.Error()
		if hint := engine.Hint(msg.err); hint != "" {
			words += " — " + hint
		}
		a.say(themes.Error, words)
		if msg.words == sayWords {
			a.chat().refused()
		}
		return
	}
	words := msg.words + ": accepted"
	if msg.receipt.Note != "" {
		words = msg.words + ": " + msg.receipt.Note
	}
	a.say(themes.Info, words)
}

func (a *App) bulked(msg bulkMsg) {
	words := fmt.Sprintf("%s: %d of %d accepted", msg.words, msg.done, msg.all)
	role := themes.Info
	if msg.firstError != nil {
		role = themes.Error
		words += " — " + msg.firstError.Error()
	}
	a.say(role, words)
}

// notice is a line for the status row from a part that can't say it itself.
type notice struct {
	role themes.Role
	text string
}

// askTakeOver asks before a chat ends the heal that is under way.
func (a *App) askTakeOver(msg takeOverMsg) {
	sb, _ := a.w.sandbox(a.sandbox.id)
	d := newDialog(a.w, "Take "+sb.Name+" over from the healer?")
	d.say(themes.Text, "The heal under way ends and what it changed is rolled back. Its transcript goes into the chat.")
	d.offer("y", "take over and send", msg.do)
	a.show(d)
}
