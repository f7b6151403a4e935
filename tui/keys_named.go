package tui

import "charm.land/bubbles/v2/key"

// namedKey is a key under the name that keys.toml knows it by.
type namedKey struct {
	name string
	key  *key.Binding
}

// named are all keys by their names: what acts on a sandbox is called as the
// engine's action is, the rest by its place.
func (k *keyMap) named() []namedKey {
	return append(append(k.namedMoves(), k.namedEverywhere()...), k.namedPlaces()...)
}

func (k *keyMap) namedMoves() []namedKey {
	return []namedKey{
		{"move.up", &k.Up},
		{"move.down", &k.Down},
		{"move.half-up", &k.HalfUp},
		{"move.half-down", &k.HalfDown},
		{"move.page-up", &k.PageUp},
		{"move.page-down", &k.PageDown},
		{"move.top", &k.Top},
		{"move.bottom", &k.Bottom},
		{"move.left", &k.Left},
		{"move.right", &k.Right},
		{"pane.next", &k.NextPane},
		{"pane.previous", &k.PrevPane},
		{"find.text", &k.Find},
		{"find.next", &k.FindNext},
		{"find.previous", &k.FindPrev},
	}
}

func (k *keyMap) namedEverywhere() []namedKey {
	return []namedKey{
		{"open", &k.Open},
		{"back", &k.Back},
		{"quit", &k.Quit},
		{"help", &k.Help},
		{"palette", &k.Palette},
		{"copy", &k.Copy},
		{"save", &k.Save},
		{"retry", &k.Retry},
		{"redraw", &k.Redraw},
		{"suspend", &k.Suspend},
		{"zoom", &k.Zoom},
		{"tab.fleet", &k.Fleet},
		{"tab.overview", &k.Overview},
		{"tab.healer", &k.Healer},
		{"tab.logs", &k.Logs},
		{"sandbox.previous", &k.PrevBox},
		{"sandbox.next", &k.NextBox},
		{"sandbox.problem", &k.Problem},
		{"heal.start", &k.Heal},
		{"heal.cancel", &k.Abort},
		{"sandbox.maintenance", &k.Pause},
		{"sandbox.restart", &k.Restart},
		{"sandbox.stop", &k.Stop},
		{"sandbox.remove", &k.Destroy},
	}
}

func (k *keyMap) namedPlaces() []namedKey {
	return []namedKey{
		{"fleet.mark", &k.Mark},
		{"fleet.mark-all", &k.MarkAll},
		{"fleet.unmark", &k.Unmark},
		{"fleet.sort", &k.Sort},
		{"fleet.group", &k.Group},
		{"fleet.columns", &k.Columns},
		{"fleet.quick", &k.Quick},
		{"fleet.inspector", &k.Inspect},
		{"healer.fold", &k.Fold},
		{"healer.fold-all", &k.FoldAll},
		{"pane.follow", &k.Follow},
		{"tab.files", &k.Files},
		{"files.edit", &k.EditFile},
		{"files.new", &k.NewFile},
		{"files.rename", &k.Rename},
		{"files.delete", &k.Delete},
		{"files.diff", &k.Diff},
		{"files.upload", &k.Upload},
		{"files.undo", &k.UndoFile},
		{"files.hidden", &k.Hidden},
		{"files.save", &k.SaveFile},
		{"tab.terminal", &k.Terminal},
		{"terminal.leave", &k.LeaveTerm},
		{"terminal.previous", &k.PrevTerm},
		{"terminal.next", &k.NextTerm},
		{"terminal.close", &k.CloseTerm},
		{"tab.chat", &k.Chat},
		{"pane.type", &k.Type},
		{"chat.next-message", &k.NextMessage},
		{"chat.previous-message", &k.PrevMessage},
		{"incidents", &k.Incidents},
		{"incidents.zoom-in", &k.ZoomIn},
		{"incidents.zoom-out", &k.ZoomOut},
		{"incidents.watch", &k.Watch},
		{"logs.only", &k.Only},
		{"logs.pause", &k.Hold},
		{"logs.wrap", &k.Wrap},
		{"logs.time", &k.Time},
		{"logs.next-error", &k.NextError},
		{"logs.previous-error", &k.PrevError},
	}
}
