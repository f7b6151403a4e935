package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// termPane is the fifth tab: a shell in the sandbox, or several. Opening the
// tab attaches and stays in NAV; i gives it the keys, ctrl+] takes them back.
// The shells belong to the engine and outlive whoever looks at them.
type termPane struct {
	w             *world
	c             *commands
	width, height int
	id            engine.SandboxID

	current engine.ProcessID
	viewer  *viewer // nil: nothing is attached
	typing  bool
	opening bool
	eager   bool // type as soon as it is open
	err     error
	back    int // lines above the end that show
	left    time.Time
	hidden  bool
}

func newTermPane(w *world, c *commands) *termPane { return &termPane{w: w, c: c} }

func (t *termPane) show(id engine.SandboxID) tea.Cmd {
	if id != t.id {
		t.detach()
		*t = termPane{w: t.w, c: t.c, width: t.width, height: t.height, id: id}
	}
	t.hidden = false
	return t.attach()
}

// hide lets go of the terminal: what it prints is kept by the engine.
func (t *termPane) hide() {
	t.detach()
	t.hidden = true
}

func (t *termPane) detach() {
	t.typing, t.back = false, 0
	if t.viewer != nil {
		t.viewer.stop()
		t.viewer = nil
	}
}

// open are the sandbox's terminals whose program runs, oldest first.
func (t *termPane) open() []engine.Process {
	if t.w.snap == nil {
		return nil
	}
	list := slices.DeleteFunc(t.w.snap.Of(t.id), func(p engine.Process) bool { return p.Kind != engine.Interactive || p.State.Over() })
	slices.SortFunc(list, func(a, b engine.Process) int { return a.Started.Compare(b.Started) })
	return list
}

// attach looks at the current terminal, or the first, if there is one.
func (t *termPane) attach() tea.Cmd {
	if t.viewer != nil || t.hidden {
		return nil
	}
	list := t.open()
	if i := slices.IndexFunc(list, func(p engine.Process) bool { return p.ID == t.current }); i < 0 {
		if len(list) == 0 {
			return nil
		}
		t.current = list[0].ID
	}
	return t.attachTo(t.current)
}

func (t *termPane) attachTo(id engine.ProcessID) tea.Cmd {
	t.detach()
	t.current, t.err = id, nil
	var cmd tea.Cmd
	t.viewer, cmd = t.c.attach(id, t.size(), t.w.cfg.ReadOnly != "")
	return cmd
}

// size is that of the pane below its title.
func (t *termPane) size() engine.TermSize {
	return engine.TermSize{Cols: max(1, t.width), Rows: max(1, t.height-1)}
}

// SetSize is the size of the tab; the program's terminal follows.
func (t *termPane) SetSize(width, height int) {
	changed := width != t.width || height != t.height
	t.width, t.height = width, height
	if changed && t.viewer != nil {
		t.viewer.resize(t.size())
	}
}

// Typing reports whether every key goes to the program.
func (t *termPane) Typing() bool { return t.typing }

// ShortHelp are the keys of the footer.
func (t *termPane) ShortHelp() []key.Binding {
	k := t.w.keys
	if t.typing {
		return []key.Binding{as(k.LeaveTerm, "leaves"), bind(k.LeaveTerm.Help().Key+" twice", "sends it")}
	}
	if t.viewer == nil {
		return []key.Binding{as(k.Type, "opens a shell")}
	}
	return []key.Binding{k.Type, as(k.NewFile, "another"), both(k.PrevTerm, k.NextTerm, "switch"), as(k.Up, "scroll back"), as(k.Save, "save"), k.CloseTerm}
}

// FullHelp are the keys of the help.
func (t *termPane) FullHelp() [][]key.Binding { return [][]key.Binding{t.w.keys.ofTerminal().keys} }

// Update takes what was drawn and answers keys.
func (t *termPane) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case termMsg:
		return t.drawn(msg)
	case openedTermMsg:
		return t.opened(msg)
	case frameMsg:
		if t.viewer == nil && t.w.link.state == live && (t.err == nil || msg.snap != nil) {
			return t.attach()
		}
	case tea.PasteMsg:
		if t.typing {
			return t.sent(t.viewer.screen.Paste(msg.Content))
		}
	case tea.KeyPressMsg:
		if t.typing {
			return t.typed(msg)
		}
		return t.pressed(msg)
	}
	return nil
}

// drawn asks for more, or takes the end: of the program, or of the line to it.
func (t *termPane) drawn(msg termMsg) tea.Cmd {
	if msg.viewer != t.viewer {
		return nil
	}
	if !msg.end {
		return t.c.moreOf(t.viewer)
	}
	t.typing = false
	if !t.viewer.ended() {
		t.err = t.viewer.err
		t.viewer = nil // it goes on there; a new snapshot attaches again
	}
	return nil
}

func (t *termPane) opened(msg openedTermMsg) tea.Cmd {
	if msg.sandbox != t.id {
		return nil
	}
	t.opening = false
	if msg.err != nil {
		t.err = msg.err
		return nil
	}
	cmd := t.attachTo(msg.process)
	t.typing, t.eager = t.eager && !t.hidden, false
	return cmd
}

// typed passes a key on, but for the one that leaves.
func (t *termPane) typed(msg tea.KeyPressMsg) tea.Cmd {
	if key.Matches(msg, t.w.keys.LeaveTerm) {
		t.typing, t.left = false, t.w.now
		return nil
	}
	t.back = 0
	return t.sent(t.viewer.screen.Encode(msg.Key()))
}

func (t *termPane) sent(b []byte) tea.Cmd {
	if t.viewer != nil && !t.viewer.send(b) {
		return func() tea.Msg {
			return notice{themes.Warning, "the program reads nothing: what was typed last is lost"}
		}
	}
	return nil
}

// stops gives ctrl+C to the program while it has the keys.
func (t *termPane) stops() (tea.Cmd, bool) {
	if !t.typing {
		return nil, false
	}
	return t.sent([]byte{3}), true
}

// takes: the key that left, again and soon, goes to the program.
func (t *termPane) takes(msg tea.KeyPressMsg) bool {
	return key.Matches(msg, t.w.keys.LeaveTerm) || key.Matches(msg, t.w.keys.PrevTerm, t.w.keys.NextTerm)
}

func (t *termPane) pressed(msg tea.KeyPressMsg) tea.Cmd {
	k := t.w.keys
	page := max(1, t.height-2)
	switch {
	case key.Matches(msg, k.LeaveTerm):
		if t.viewer != nil && t.w.now.Sub(t.left) < twice {
			t.typing = true
			return t.sent(t.viewer.screen.Encode(msg.Key()))
		}
	case key.Matches(msg, k.Type, k.Open):
		return t.begin()
	case key.Matches(msg, k.NewFile):
		return t.another()
	case key.Matches(msg, k.NextTerm):
		return t.switchTo(1)
	case key.Matches(msg, k.PrevTerm):
		return t.switchTo(-1)
	case key.Matches(msg, k.CloseTerm):
		return t.askClose()
	case key.Matches(msg, k.Up):
		t.scroll(1)
	case key.Matches(msg, k.Down):
		t.scroll(-1)
	case key.Matches(msg, k.HalfUp, k.PageUp):
		t.scroll(page)
	case key.Matches(msg, k.HalfDown, k.PageDown):
		t.scroll(-page)
	case key.Matches(msg, k.Top):
		t.scroll(1 << 20)
	case key.Matches(msg, k.Bottom):
		t.back = 0
	case key.Matches(msg, k.Retry):
		t.err = nil
		return t.attach()
	}
	return nil
}

func (t *termPane) scroll(by int) {
	if t.viewer != nil {
		t.back = max(0, min(t.back+by, t.viewer.screen.Back()))
	}
}

// begin gives the keys to the program; where there is none, a shell is opened
// first.
func (t *termPane) begin() tea.Cmd {
	if t.viewer != nil && !t.over() && t.w.cfg.ReadOnly == "" {
		t.typing, t.back = true, 0
		return nil
	}
	t.eager = true
	return t.another()
}

// over reports whether the program of the terminal that shows has ended.
func (t *termPane) over() bool {
	select {
	case <-t.viewer.done:
		return true
	default:
		return false
	}
}

// another opens one more shell. A cold sandbox is asked about: it would be
// started.
func (t *termPane) another() tea.Cmd {
	why := ""
	sb, _ := t.w.sandbox(t.id)
	switch {
	case t.w.link.state != live:
		why = "waits for the engine"
	case t.w.cfg.ReadOnly != "":
		why = t.w.cfg.ReadOnly
	case !sb.State.Live():
		why = fmt.Sprintf("it is %s: %s starts it", sb.State, t.w.keys.Stop.Help().Key)
	case t.opening:
		return nil
	}
	if why != "" {
		t.eager = false
		return func() tea.Msg { return notice{themes.Warning, why} }
	}
	t.opening, t.eager = true, true
	return t.c.openTerminal(t.id, t.size())
}

func (t *termPane) switchTo(by int) tea.Cmd {
	list := t.open()
	i := slices.IndexFunc(list, func(p engine.Process) bool { return p.ID == t.current })
	if len(list) == 0 || len(list) == 1 && i == 0 {
		return nil
	}
	return t.attachTo(list[((i+by)%len(list)+len(list))%len(list)].ID)
}

func (t *termPane) askClose() tea.Cmd {
	if t.viewer == nil {
		return nil
	}
	if t.over() {
		t.detach()
		t.current = ""
		return t.attach()
	}
	if t.w.cfg.ReadOnly != "" {
		return func() tea.Msg { return notice{themes.Warning, t.w.cfg.ReadOnly} }
	}
	d := newDialog(t.w, "Close this terminal?")
	d.say(themes.Text, "What runs on it is killed, with all its children.")
	d.offer("y", "close it", func() tea.Cmd { return t.c.act("close the terminal", engine.KillProcess{Process: t.current}) })
	return showing(d)
}

// texts are the last line, and all that is kept.
func (t *termPane) texts() (line, all string) {
	if t.viewer == nil {
		return "", ""
	}
	all = t.viewer.screen.Text()
	lines := strings.Split(strings.TrimRight(all, "\n"), "\n")
	return lines[len(lines)-1], all
}

// terminal is the sandbox screen's fifth tab.
func (a *App) terminal() *termPane { return a.sandbox.tabs[tabTerminal].pane.(*termPane) }
