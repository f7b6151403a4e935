package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/themes"
)

// commandsHere is everything that can be done here by its name: what acts on the
// sandbox, the keys of this place, and what has no key of its own.
func (a *App) commandsHere() []paletteEntry {
	list := a.actionEntries()
	for _, pl := range []place{a.helpPlace(), a.w.keys.everywhere()} {
		for _, b := range pl.keys {
			if e, ok := a.keyEntry(b); ok {
				list = append(list, e)
			}
		}
	}
	list = append(list, a.arrangeEntries()...)
	list = append(list, a.themeEntries()...)
	list = append(list, a.mouseEntry())
	list = append(list, a.chatEntries()...)
	return append(list, paletteEntry{title: "messages", note: "what the status row has said", run: func() tea.Cmd {
		a.show(newSheet(a.w, "Messages", a.said))
		return nil
	}})
}

func (a *App) actionEntries() []paletteEntry {
	var list []paletteEntry
	targets := a.targets()
	if len(targets) == 0 {
		return nil
	}
	for _, act := range a.actions {
		e := paletteEntry{
			title: act.title(a.w, targets[0]), key: act.key.Help().Key, run: func() tea.Cmd { return a.act(act) },
			note: strings.TrimSpace(act.loses + " " + upper(first(tierWords(act.tier(targets[0])), "does it at once")) + "."),
		}
		for _, sb := range targets {
			if e.why = act.why(a.w, sb); e.why == "" {
				break
			}
		}
		list = append(list, e)
	}
	return list
}

// keyEntry is a key as an entry: choosing it is pressing it. Keys that only move
// or that open the palette itself are left out.
func (a *App) keyEntry(b key.Binding) (paletteEntry, bool) {
	if len(b.Keys()) == 0 {
		return paletteEntry{}, false // words for several
	}
	k := a.w.keys
	for _, not := range []key.Binding{k.Palette, k.Interrupt, k.Back, k.Find, k.FindNext, k.FindPrev, k.Mark} {
		if b.Keys()[0] == not.Keys()[0] && b.Help().Key == not.Help().Key {
			return paletteEntry{}, false
		}
	}
	press := pressOf(b.Keys()[0])
	return paletteEntry{
		title: b.Help().Desc, key: b.Help().Key, note: "the same as " + b.Help().Key,
		run: func() tea.Cmd { return a.key(press) },
	}, true
}

// pressOf is the press of a key that is known by its name.
func pressOf(name string) tea.KeyPressMsg {
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(rest[0]), Mod: tea.ModCtrl}
	}
	switch name {
	case "enter":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "tab":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	case "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	case "esc":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// arrangeEntries are the ways to sort, group and narrow the fleet.
func (a *App) arrangeEntries() []paletteEntry {
	var list []paletteEntry
	home := func(do func()) func() tea.Cmd {
		return func() tea.Cmd {
			if a.screen != onFleet {
				a.goHome()
			}
			do()
			return nil
		}
	}
	f := a.fleet
	for s := range sortings {
		list = append(list, paletteEntry{title: "sort by " + s.String(), note: "the order of the fleet", run: home(func() { f.arrange(s, a.w.fleet.group) })})
	}
	for g := range groupings {
		list = append(list, paletteEntry{title: "group by " + g.String(), note: "what stands together in the fleet", run: home(func() { f.arrange(a.w.fleet.sort, g) })})
	}
	for _, q := range a.quickFilters() {
		list = append(list, paletteEntry{title: "filter: " + q.words, key: "f " + q.key, note: "narrows the fleet to " + first(q.text, "everything"), run: home(func() { f.narrow(q.text) })})
	}
	return list
}

func (a *App) themeEntries() []paletteEntry {
	var list []paletteEntry
	for _, name := range append([]string{themes.Auto}, themes.Names(a.w.cfg.ThemeDir)...) {
		list = append(list, paletteEntry{title: "theme " + name, note: "until sbx is left; theme = \"" + name + "\" in config.toml keeps it", run: func() tea.Cmd {
			before := a.w.cfg.Theme
			a.w.cfg.Theme = name
			if err := a.restyle(); err != nil {
				a.w.cfg.Theme = before
				a.say(themes.Error, err.Error())
			}
			return nil
		}})
	}
	return list
}

// quickFilter is a filter that two keys set.
type quickFilter struct{ key, words, text string }

func (a *App) quickFilters() []quickFilter {
	list := []quickFilter{{"b", "broken", "health:broken"}, {"h", "healing", "health:healing"}}
	if me := a.w.cfg.Me; me != "" {
		list = append(list, quickFilter{"m", "mine", "owner:" + strings.ToLower(strings.Join(strings.Fields(me), "-"))})
	}
	return append(list, quickFilter{"a", "all", ""})
}

// quickMenu narrows the fleet with the next key.
func (a *App) quickMenu() {
	c := newChooser(a.w, "Show")
	for _, q := range a.quickFilters() {
		c.offer(q.key, q.words, func() tea.Cmd {
			a.fleet.narrow(q.text)
			return nil
		})
	}
	a.show(c)
}

// columnMenu takes columns away and brings them back.
func (a *App) columnMenu() {
	c := newChooser(a.w, "Columns, where there is room")
	var ids []columnID
	for i, col := range columns(1000, 0, 0, nil) {
		if col.id == colHealth || col.id == colSandbox {
			continue // what a row is about always shows
		}
		ids = append(ids, col.id)
		c.offer(string(rune('a'+i)), strings.ToLower(col.title), func() tea.Cmd {
			a.w.hidden[col.id] = !a.w.hidden[col.id]
			return nil
		})
	}
	c.marked = func(i int) bool { return !a.w.hidden[ids[i]] }
	a.show(c)
}
