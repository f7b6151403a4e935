package tui

import (
	"slices"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// fleet is the table of all sandboxes. The cursor is a sandbox, not a line: it
// stays on it when the order changes.
type fleet struct {
	w             *world
	width, height int

	cursor engine.SandboxID
	place  int  // of the cursor in list, so that it stays near when its sandbox goes
	top    int  // first line that shows, titles included
	closed bool // the inspector, where it would show
	opened bool // the inspector, where it would not

	input  textinput.Model
	filter filter

	list     []*entry  // what the filter leaves, in order
	sections []section // of list, by the grouping
	version  int       // of the order that list was made from
	heading  []heading // the heads of the columns, as they were drawn last
	zoomed   bool      // nothing but the table
	// touched is set by the first key: until then the cursor goes by itself to
	// what needs somebody.
	touched bool
}

// section is a group of the list: its title stands on a line of its own.
type section struct {
	title   string
	need    need
	from, n int // entries
	line    int // of the title
}

// openMsg asks for a sandbox's tab.
type openMsg struct {
	id  engine.SandboxID
	tab tab
}

func newFleet(w *world) *fleet {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 200
	return &fleet{w: w, input: in, version: -1}
}

// SetSize is the size of the table.
func (f *fleet) SetSize(width, height int) {
	f.width, f.height = width, height
	f.scroll()
}

// Typing reports whether a filter is being typed.
func (f *fleet) Typing() bool { return f.input.Focused() }

// ShortHelp are the keys of the footer.
func (f *fleet) ShortHelp() []key.Binding {
	k := f.w.keys
	if f.Typing() {
		return []key.Binding{as(k.Open, "keep"), as(k.Back, "clear")}
	}
	return []key.Binding{k.Open, as(k.Find, "filter"), k.Mark, k.Problem, k.Healer, k.Logs, k.Palette, k.Sort, k.Inspect, as(k.Quit, "quit")}
}

// FullHelp are the keys of the help.
func (f *fleet) FullHelp() [][]key.Binding { return [][]key.Binding{f.w.keys.ofFleet().keys} }

// Update answers keys and follows the order of the fleet.
func (f *fleet) Update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		if f.Typing() {
			cmd = f.typed(msg)
		} else {
			cmd = f.pressed(msg)
		}
	case tea.PasteMsg:
		if f.Typing() {
			f.input, _ = f.input.Update(msg)
			f.refilter()
		}
	}
	f.sync()
	return cmd
}

func (f *fleet) typed(msg tea.KeyPressMsg) tea.Cmd {
	k := f.w.keys
	switch {
	case key.Matches(msg, k.Back):
		f.input.SetValue("")
		f.input.Blur()
	case key.Matches(msg, k.Open):
		f.input.Blur()
	case msg.String() == "up":
		f.move(-1)
	case msg.String() == "down":
		f.move(1)
	default:
		f.input, _ = f.input.Update(msg)
	}
	f.refilter()
	return nil
}

func (f *fleet) pressed(msg tea.KeyPressMsg) tea.Cmd {
	f.touched = true
	k := f.w.keys
	page := max(1, f.height-3)
	switch {
	case key.Matches(msg, k.Down):
		f.move(1)
	case key.Matches(msg, k.Up):
		f.move(-1)
	case key.Matches(msg, k.HalfDown):
		f.move(page / 2)
	case key.Matches(msg, k.HalfUp):
		f.move(-page / 2)
	case key.Matches(msg, k.PageDown):
		f.move(page)
	case key.Matches(msg, k.PageUp):
		f.move(-page)
	case key.Matches(msg, k.Bottom):
		f.move(len(f.list))
	case key.Matches(msg, k.Top):
		f.move(-len(f.list))
	case key.Matches(msg, k.Open) && f.cursor != "":
		id := f.cursor
		return func() tea.Msg { return openMsg{id, tabOverview} }
	case key.Matches(msg, k.Find):
		return f.input.Focus()
	case key.Matches(msg, k.Back):
		f.clear()
	default:
		f.choose(msg)
	}
	return nil
}

// choose answers the keys that mark and arrange.
func (f *fleet) choose(msg tea.KeyPressMsg) {
	k := f.w.keys
	switch {
	case key.Matches(msg, k.Mark) && f.cursor != "":
		if f.w.marks[f.cursor] {
			delete(f.w.marks, f.cursor)
		} else {
			f.w.marks[f.cursor] = true
		}
		f.move(1)
	case key.Matches(msg, k.MarkAll):
		for _, e := range f.list {
			f.w.marks[e.id] = true
		}
	case key.Matches(msg, k.Unmark):
		clear(f.w.marks)
	case key.Matches(msg, k.Sort):
		f.arrange((f.w.fleet.sort+1)%sortings, f.w.fleet.group)
	case key.Matches(msg, k.Group):
		f.arrange(f.w.fleet.sort, (f.w.fleet.group+1)%groupings)
	case key.Matches(msg, k.Inspect):
		f.closed, f.opened = !f.closed, !f.opened
	case key.Matches(msg, k.Zoom):
		f.zoomed = !f.zoomed
	}
}

// arrange sorts and groups the fleet anew.
func (f *fleet) arrange(s sorting, g grouping) {
	f.w.fleet.sort, f.w.fleet.group = s, g
	if f.w.snap != nil {
		f.w.fleet.reset(f.w.snap)
	}
	f.sync()
}

// narrow filters by a text that wasn't typed.
func (f *fleet) narrow(text string) {
	f.input.SetValue(text)
	f.refilter()
	f.sync()
}

// clear goes one step back: marks, then the filter.
func (f *fleet) clear() {
	if len(f.w.marks) > 0 {
		clear(f.w.marks)
		return
	}
	f.input.SetValue("")
	f.refilter()
}

func (f *fleet) refilter() {
	if text := f.input.Value(); text != f.filter.text {
		f.filter = parseFilter(text)
		f.version = -1
	}
}

// sync makes the list anew if the order or the filter has changed.
func (f *fleet) sync() {
	if f.w.snap == nil || f.version == f.w.fleet.version {
		return
	}
	f.version = f.w.fleet.version
	if f.filter.empty() {
		f.list = f.w.fleet.entries
	} else {
		f.list = f.list[:0:0]
		for _, e := range f.w.fleet.entries {
			if f.filter.match(f.w.snap.Sandboxes[e.id]) {
				f.list = append(f.list, e)
			}
		}
	}
	f.tally()
	f.settle()
}

// tally finds the groups of the list.
func (f *fleet) tally() {
	f.sections = f.sections[:0]
	if f.w.fleet.group == flat {
		return
	}
	for i, e := range f.list {
		last := len(f.sections) - 1
		if last < 0 || f.list[f.sections[last].from].group != e.group || f.sections[last].title != e.title {
			f.sections = append(f.sections, section{title: e.title, need: attention(e.health), from: i, line: i + last + 1})
			last++
		}
		f.sections[last].n++
	}
}

// settle finds the cursor's sandbox again, or the one that took its place. A
// cursor that nobody has moved goes to what needs somebody.
func (f *fleet) settle() {
	if !f.touched && len(f.list) > 0 && attention(f.list[0].health) != theRest {
		f.set(0)
		return
	}
	if e, ok := f.w.fleet.at[f.cursor]; ok {
		if i, found := slices.BinarySearchFunc(f.list, e, compare); found {
			f.place = i
			f.scroll()
			return
		}
	}
	f.set(f.place)
}

func (f *fleet) move(n int) { f.set(f.place + n) }

func (f *fleet) set(i int) {
	f.place = max(0, min(i, len(f.list)-1))
	f.cursor = ""
	if len(f.list) > 0 {
		f.cursor = f.list[f.place].id
	}
	f.scroll()
}

// jump puts the cursor on a sandbox, if it shows.
func (f *fleet) jump(id engine.SandboxID) {
	if e, ok := f.w.fleet.at[id]; ok {
		if i, found := slices.BinarySearchFunc(f.list, e, compare); found {
			f.set(i)
		}
	}
}

// beside is the sandbox n places after id.
func (f *fleet) beside(id engine.SandboxID, n int) engine.SandboxID {
	f.jump(id)
	f.move(n)
	if f.cursor == "" {
		return id
	}
	return f.cursor
}

// rows is how many lines the whole list has, titles included.
func (f *fleet) rows() int { return len(f.list) + f.titles(len(f.list)-1) }

// titles is how many groups begin at or before entry i.
func (f *fleet) titles(i int) int {
	n, _ := slices.BinarySearchFunc(f.sections, i+1, func(s section, i int) int { return s.from - i })
	return n
}

// at is what stands on line n: an entry, or the title of a group, or nothing.
func (f *fleet) at(n int) (*entry, *section) {
	if n < 0 || n >= f.rows() {
		return nil, nil
	}
	if len(f.sections) == 0 {
		return f.list[n], nil
	}
	i, _ := slices.BinarySearchFunc(f.sections, n+1, func(s section, n int) int { return s.line - n })
	if s := &f.sections[i-1]; s.line == n {
		return nil, s
	}
	return f.list[n-i], nil
}

// scroll keeps the cursor on the screen, with its group's title if it is first.
func (f *fleet) scroll() {
	height := max(1, f.height-1)
	line := f.place + f.titles(f.place)
	f.top = max(min(f.top, line-1), line-height+1)
	f.top = max(0, min(f.top, f.rows()-height))
}
