package tui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sbx/engine"
)

// tailLines is how far back a log begins.
const tailLines = 1000

// logs is the third tab: what the app writes.
type logs struct {
	w             *world
	c             *commands
	width, height int
	id            engine.SandboxID

	ring   ring
	stream *stream // nil: hidden, or it ended
	err    error
	ended  bool

	held        bool // no lines are taken; the engine keeps them
	owed        bool // a message came while held: more lines must be asked for
	follow      bool
	top         int // number of the first line that shows, when not following
	wrap, times bool
	input       textinput.Model
	asking      rune // '/' or '&' while one is typed
	find        string
	found       int // number of the line found last; -1: none
}

func newLogs(w *world, c *commands) *logs {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 200
	return &logs{w: w, c: c, input: in, follow: true, times: true, found: -1}
}

func (l *logs) show(id engine.SandboxID) tea.Cmd {
	if id != l.id {
		fresh := newLogs(l.w, l.c)
		fresh.width, fresh.height, fresh.id, fresh.wrap, fresh.times = l.width, l.height, id, l.wrap, l.times
		*l = *fresh
	}
	return l.begin()
}

// begin follows the log from where it was left.
func (l *logs) begin() tea.Cmd {
	q := engine.LogQuery{Sandbox: l.id, Follow: true, After: l.ring.end()}
	if q.After == 0 {
		q.Tail = tailLines
	}
	l.err, l.ended = nil, false
	var cmd tea.Cmd
	l.stream, cmd = l.c.follow(q)
	return cmd
}

func (l *logs) hide() {
	if l.stream != nil {
		l.stream.stop()
		l.stream = nil
	}
	l.owed = false
}

// SetSize is the size of the tab.
func (l *logs) SetSize(width, height int) { l.width, l.height = width, height }

// Typing reports whether a search or a filter is being typed.
func (l *logs) Typing() bool { return l.input.Focused() }

// ShortHelp are the keys of the footer.
func (l *logs) ShortHelp() []key.Binding {
	k := l.w.keys
	if l.Typing() {
		return []key.Binding{as(k.Open, "keep"), as(k.Back, "clear")}
	}
	if l.find != "" {
		return []key.Binding{both(k.FindNext, k.FindPrev, "next"), as(k.Back, "end the search"), k.Only, k.Follow, k.Wrap, as(k.Save, "save")}
	}
	return []key.Binding{as(k.Find, "search"), k.Only, k.Follow, k.Hold, k.NextError, k.Wrap, as(k.Save, "save"), k.Copy}
}

// FullHelp are the keys of the help.
func (l *logs) FullHelp() [][]key.Binding { return [][]key.Binding{l.w.keys.ofLogs().keys} }

// Update takes lines and answers keys.
func (l *logs) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case linesMsg:
		return l.take(msg)
	case frameMsg:
		l.notice()
		back := msg.gauges != nil && engine.AsCode(l.err) == engine.Unavailable
		if l.id != "" && l.stream == nil && l.w.link.state == live && back {
			return l.begin() // the engine is back: go on from the last line
		}
	case tea.PasteMsg:
		if l.Typing() {
			l.input, _ = l.input.Update(msg)
		}
	case tea.KeyPressMsg:
		if l.Typing() {
			l.typed(msg)
			return nil
		}
		return l.pressed(msg)
	}
	return nil
}

// notice marks in the log when the connection was lost, and when it was back:
// the stream itself goes on as if nothing had been.
func (l *logs) notice() {
	switch {
	case l.w.link.state == lost && l.ring.count() > 0:
		l.ring.mark(l.w.link.news)
	case l.w.link.state == live:
		l.ring.back(l.w.now)
	}
}

// texts are the line that was found last, or the last that shows, and all of
// them.
func (l *logs) texts() (line, all string) {
	var b strings.Builder
	for i := range l.ring.size() {
		x := l.ring.at(i)
		switch {
		case x.gap != nil:
			b.WriteString(x.gap.words(l.w.now))
		case l.times && !x.Time.IsZero():
			b.WriteString(clock(x.Time) + " ")
		}
		text := ansi.Strip(x.Text)
		b.WriteString(text + "\n")
		if i < l.first()+l.rows() && l.found < 0 || l.ring.number(i) == l.found {
			line = text
		}
	}
	return line, strings.TrimSuffix(b.String(), "\n")
}

func (l *logs) take(msg linesMsg) tea.Cmd {
	if msg.stream != l.stream {
		return nil // of a log that is no longer shown
	}
	l.ring.add(msg.lines)
	if msg.end {
		l.stream.stop()
		l.stream, l.err, l.ended = nil, msg.err, msg.err == nil
		return nil
	}
	if l.held {
		l.owed = true
		return nil
	}
	return l.c.more(l.stream)
}

func (l *logs) typed(msg tea.KeyPressMsg) {
	k := l.w.keys
	switch {
	case key.Matches(msg, k.Back):
		l.input.Blur()
		l.settle("")
	case key.Matches(msg, k.Open):
		l.input.Blur()
		l.settle(l.input.Value())
	default:
		l.input, _ = l.input.Update(msg)
		if l.asking == '&' {
			l.only(l.input.Value())
		}
	}
}

// settle keeps what was typed.
func (l *logs) settle(text string) {
	if l.asking == '&' {
		l.only(text)
		return
	}
	l.find, l.found = text, -1
	if text != "" {
		l.seek(-1, l.hit)
	}
}

func (l *logs) only(text string) {
	at := l.ring.number(l.first())
	l.ring.filter(text)
	l.top = at
}

func (l *logs) ask(what rune, text string) tea.Cmd {
	l.asking = what
	l.input.SetValue(text)
	l.input.CursorEnd()
	return l.input.Focus()
}

func (l *logs) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := l.w.keys
	page := max(1, l.rows()-1)
	switch {
	case key.Matches(msg, k.Down):
		l.move(1)
	case key.Matches(msg, k.Up):
		l.move(-1)
	case key.Matches(msg, k.HalfDown):
		l.move(page / 2)
	case key.Matches(msg, k.HalfUp):
		l.move(-page / 2)
	case key.Matches(msg, k.PageDown):
		l.move(page)
	case key.Matches(msg, k.PageUp):
		l.move(-page)
	case key.Matches(msg, k.Top):
		l.follow, l.top = false, l.ring.number(0)
	case key.Matches(msg, k.Bottom):
		l.follow = true
	case key.Matches(msg, k.Find):
		return l.ask('/', l.find)
	case key.Matches(msg, k.Only):
		return l.ask('&', l.ring.only)
	default:
		return l.toggled(msg)
	}
	return nil
}

func (l *logs) toggled(msg tea.KeyPressMsg) tea.Cmd {
	k := l.w.keys
	switch {
	case key.Matches(msg, k.Follow):
		l.top = l.ring.number(l.first())
		l.follow = !l.follow
	case key.Matches(msg, k.Hold):
		return l.hold()
	case key.Matches(msg, k.Wrap):
		l.wrap = !l.wrap
	case key.Matches(msg, k.Time):
		l.times = !l.times
	case key.Matches(msg, k.FindNext):
		l.seek(1, l.hit)
	case key.Matches(msg, k.FindPrev):
		l.seek(-1, l.hit)
	case key.Matches(msg, k.NextError):
		l.seek(1, isError)
	case key.Matches(msg, k.PrevError):
		l.seek(-1, isError)
	case key.Matches(msg, k.Retry) && l.stream == nil:
		return l.begin()
	}
	return nil
}

// hold stops taking lines: they wait in the engine, and none is lost.
func (l *logs) hold() tea.Cmd {
	l.held = !l.held
	if !l.held && l.owed && l.stream != nil {
		l.owed = false
		return l.c.more(l.stream)
	}
	return nil
}

// back undoes one thing: the search, then the filter. It reports whether there
// was one.
func (l *logs) back() bool {
	switch {
	case l.find != "":
		l.find, l.found = "", -1
	case l.ring.only != "":
		l.only("")
	default:
		return false
	}
	return true
}

// retries reports whether the log ended, so that r begins it again.
func (l *logs) retries() bool { return l.stream == nil }

func (l *logs) move(n int) {
	first := l.first()
	at := max(0, min(first+n, l.ring.size()-1))
	l.follow = n > 0 && (l.follow || at >= l.lastFirst())
	l.top = l.ring.number(at)
}

func (l *logs) hit(line *logLine) bool { return l.find != "" && contains(line.Text, l.find) }

func isError(line *logLine) bool {
	line.rate()
	return line.level == levelError
}

// seek goes to the next line that fits, before or after the last found.
func (l *logs) seek(dir int, fits func(*logLine) bool) {
	n := l.ring.size()
	from := l.first()
	if l.found >= 0 {
		from = l.ring.index(l.found)
	} else if dir < 0 {
		from = n // the latest first
	} else {
		from--
	}
	for i := from + dir; i >= 0 && i < n; i += dir {
		if fits(l.ring.at(i)) {
			l.found = l.ring.number(i)
			l.follow = false
			l.top = l.ring.number(max(0, min(i-l.rows()/3, l.lastFirst())))
			return
		}
	}
}
