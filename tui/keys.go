package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
)

// keyMap is every key of the dashboard. Help, footer and the test against
// clashes are made from it; nothing else names a key.
type keyMap struct {
	Up, Down, HalfUp, HalfDown, PageUp, PageDown, Top, Bottom, Left, Right key.Binding
	Open, Back, Fleet, Overview, Healer, Logs, PrevBox, NextBox, Problem   key.Binding
	NextPane, PrevPane, Find, FindNext, FindPrev                           key.Binding
	Help, Quit, Interrupt, Redraw, Suspend, Retry, Palette, Copy           key.Binding

	Heal, Abort, Pause, Restart, Stop, Destroy key.Binding

	Mark, MarkAll, Unmark, Sort, Group, Columns, Quick, Inspect, Zoom, Save key.Binding

	Fold, FoldAll, Follow key.Binding

	Files, EditFile, NewFile, Rename, Delete, Diff, Upload, UndoFile, Hidden, SaveFile key.Binding

	Terminal, LeaveTerm, PrevTerm, NextTerm, CloseTerm key.Binding

	Chat, Type, NextMessage, PrevMessage key.Binding

	Incidents, ZoomIn, ZoomOut, Watch key.Binding

	Only, Hold, Wrap, Time, NextError, PrevError key.Binding
}

func bind(help, words string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(help, words))
}

func newKeys() keyMap {
	return keyMap{
		Up: bind("k", "up", "k", "up"), Down: bind("j", "down", "j", "down"),
		HalfUp: bind("ctrl+u", "half a page up", "ctrl+u"), HalfDown: bind("ctrl+d", "half a page down", "ctrl+d"),
		PageUp: bind("ctrl+b", "page up", "ctrl+b", "pgup"), PageDown: bind("ctrl+f", "page down", "ctrl+f", "pgdown"),
		Top: bind("g g", "first", "g", "home"), Bottom: bind("G", "last", "G", "end"),
		Left: bind("h", "left", "h", "left"), Right: bind("l", "right", "l", "right"),

		Open: bind("Enter", "open", "enter"), Back: bind("Esc", "back, close, clear", "esc"),
		Fleet:    bind("0", "the fleet, and back", "0"),
		Overview: bind("1", "overview", "1"), Healer: bind("2", "healer", "2"), Logs: bind("3", "logs", "3"),
		PrevBox: bind("{", "previous sandbox", "{"), NextBox: bind("}", "next sandbox", "}"),
		Problem:  bind("!", "next problem", "!"),
		NextPane: bind("Tab", "next pane", "tab"), PrevPane: bind("shift+Tab", "previous pane", "shift+tab"),
		Find: bind("/", "find", "/"), FindNext: bind("n", "next match", "n"), FindPrev: bind("N", "previous match", "N"),
		Help: bind("?", "help", "?"), Quit: bind("q", "back; leaves at the fleet", "q"),
		Interrupt: bind("ctrl+c", "twice: leave", "ctrl+c"),
		Redraw:    bind("ctrl+l", "redraw", "ctrl+l"), Suspend: bind("ctrl+z", "suspend", "ctrl+z"),
		Retry: bind("r", "refresh, retry", "r"), Palette: bind(":", "commands", ":", "ctrl+k"), Copy: bind("y", "copy", "y"),

		Heal: bind("H", "heal now", "H"), Abort: bind("A", "abort the heal", "A"),
		Pause: bind("P", "pause auto-heal", "P"), Restart: bind("R", "restart the app", "R"),
		Stop: bind("S", "stop, or start", "S"), Destroy: bind("D", "destroy", "D"),

		Mark: bind("Space", "mark", "space"), MarkAll: bind("*", "mark all shown", "*"), Unmark: bind("u", "unmark all", "u"),
		Sort: bind("s", "sort", "s"), Group: bind("o", "group", "o"), Columns: bind("c", "columns", "c"),
		Quick: bind("f", "quick filter", "f"), Inspect: bind("p", "inspector", "p"),
		Zoom: bind("z", "zoom, and back", "z"), Save: bind(">", "save this pane to a file", ">"),

		Files: bind("4", "files", "4"), EditFile: bind("e", "edit", "e"), NewFile: bind("a", "new", "a"), Rename: bind("c", "rename", "c"),
		Delete: bind("d", "delete", "d"), Diff: bind("v", "diff", "v"), Upload: bind("<", "upload", "<"), UndoFile: bind("u", "undo", "u"),
		Hidden: bind(".", "hidden files", "."), SaveFile: bind("w", "save", "w"),

		Terminal: bind("5", "terminal", "5"), LeaveTerm: bind("ctrl+]", "leave the terminal", "ctrl+]"),
		PrevTerm: bind("[", "previous terminal", "["), NextTerm: bind("]", "next terminal", "]"), CloseTerm: bind("x", "close", "x"),

		Chat: bind("6", "chat", "6"), Type: bind("i", "type", "i"),
		NextMessage: bind("J", "next message", "J"), PrevMessage: bind("K", "previous message", "K"),

		Incidents: bind("#", "incidents", "#"), ZoomIn: bind("+", "less time", "+", "="), ZoomOut: bind("-", "more time", "-"),
		Watch: bind("w", "I'm on it", "w"),

		Fold: bind("x", "fold", "x"), FoldAll: bind("X", "fold all", "X"), Follow: bind("F", "follow the end", "F"),

		Only: bind("&", "only matching", "&"), Hold: bind("Space", "pause", "space"), Wrap: bind("w", "wrap", "w"),
		Time: bind("t", "time", "t"), NextError: bind("e", "next error", "e"), PrevError: bind("E", "previous error", "E"),
	}
}

// place is where a set of keys holds.
type place struct {
	title string
	keys  []key.Binding
}

func (k keyMap) everywhere() place {
	return place{"Everywhere", []key.Binding{
		k.Back, k.Fleet, k.Overview, k.Healer, k.Logs, k.Files, k.Terminal, k.Chat, k.PrevBox, k.NextBox, k.Problem, k.Incidents,
		k.Palette, k.Copy, k.Retry, k.Help, k.Quit, k.Interrupt, k.Redraw, k.Suspend,
	}}
}

func (k keyMap) moving() place {
	return place{"Move", []key.Binding{
		k.Up, k.Down, k.HalfUp, k.HalfDown, k.PageUp, k.PageDown, k.Top, k.Bottom,
	}}
}

// acting are the reserved capitals: they act on a sandbox and mean nothing else
// anywhere.
func (k keyMap) acting() place {
	return place{"Acts on the sandbox", []key.Binding{k.Heal, k.Abort, k.Pause, k.Restart, k.Stop, k.Destroy}}
}

func (k keyMap) ofFleet() place {
	return place{"Fleet", []key.Binding{
		k.Open, as(k.Find, "filter"), k.Quick, k.Mark, k.MarkAll, k.Unmark, k.Sort, k.Group, k.Columns, k.Inspect, k.Zoom,
	}}
}

func (k keyMap) ofOverview() place { return place{title: "Overview"} }

func (k keyMap) ofHealer() place {
	return place{"Healer", []key.Binding{
		as(k.Open, "fold, unfold"), k.Fold, k.FoldAll, as(k.Left, "previous attempt"), as(k.Right, "next attempt"), k.NextPane, k.PrevPane,
		k.Follow, k.Find, k.FindNext, k.FindPrev, k.Zoom, k.Save,
	}}
}

func (k keyMap) ofLogs() place {
	return place{"Logs", []key.Binding{
		k.Find, k.FindNext, k.FindPrev, k.Only, k.Follow, k.Hold, k.Wrap, k.Time, k.NextError, k.PrevError, k.Save,
	}}
}

// actingKeys are the keys that act on a sandbox, for a sentence.
func (k keyMap) actingKeys() string {
	var list []string
	for _, b := range k.acting().keys {
		list = append(list, b.Help().Key)
	}
	return strings.Join(list, " ")
}

// both are two keys under one name.
func both(a, b key.Binding, words string) key.Binding {
	return bind(a.Help().Key+"/"+b.Help().Key, words)
}

func (k keyMap) ofFiles() place {
	return place{"Files", []key.Binding{
		as(k.Open, "open"), as(k.Right, "open"), as(k.Left, "fold, up"), k.NextPane, as(k.Find, "find name"), as(k.Only, "find text"), k.EditFile, k.SaveFile,
		as(k.Type, "type on, in the editor"), k.NewFile, k.Rename, k.Delete, as(k.Save, "download"), k.Upload, k.Diff, k.UndoFile, k.Hidden,
	}}
}

func (k keyMap) ofTerminal() place {
	return place{"Terminal", []key.Binding{
		as(k.Type, "type; opens a shell if there is none"), as(k.Open, "the same"), k.LeaveTerm, as(k.NewFile, "another"), k.PrevTerm, k.NextTerm,
		as(k.Save, "save what it shows"), k.CloseTerm,
	}}
}

func (k keyMap) ofChat() place {
	return place{"Chat", []key.Binding{
		k.Type, as(k.Open, "unfold"), k.Fold, k.NextMessage, k.PrevMessage, k.Follow, as(k.Save, "save it"),
		bind("y Y n", "answer what asks: once, this chat, no"), bind("v", "details of what asks"),
	}}
}

func (k keyMap) ofIncidents() place {
	return place{"Incidents", []key.Binding{
		as(k.Open, "its healer"), as(k.Left, "earlier"), as(k.Right, "later"), k.ZoomIn, k.ZoomOut, k.Watch, as(k.Group, "group by cause"),
		as(k.Save, "export as Markdown"),
	}}
}

// as is a key under the name that it has in one place.
func as(b key.Binding, words string) key.Binding {
	b.SetHelp(b.Help().Key, words)
	return b
}

// places are all that keys of their own.
func (k keyMap) places() []place {
	return []place{k.ofFleet(), k.ofOverview(), k.ofHealer(), k.ofLogs(), k.ofFiles(), k.ofTerminal(), k.ofChat(), k.ofIncidents()}
}
