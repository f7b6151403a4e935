package tui

import (
	"context"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
	"sbx/themes"
)

// chat is the sixth tab: a conversation with the model about the sandbox.
// Nothing that it is told takes the keyboard: a call that waits to be approved
// is a strip, answered from NAV.
type chat struct {
	w             *world
	c             *commands
	width, height int
	id            engine.SandboxID

	list   []engine.Message // by Number
	asked  bool             // the history was asked for
	loaded bool
	err    error

	input    textarea.Model
	past     int // how far back in what was said the input is; 0: a draft
	draft    string
	drafts   map[engine.SandboxID]string
	ask      *bool // approvals, if the person has said so here
	pending  string
	unfolded map[engine.MessageID]bool
	cursor   int // a message, when not following
	follow   bool
	top      int
	cache    map[engine.MessageID]cachedMessage
}

// messagesMsg is the history of a chat.
type messagesMsg struct {
	id   engine.SandboxID
	list []engine.Message
	err  error
}

func (c *commands) messages(id engine.SandboxID) tea.Cmd {
	return c.do(func(ctx context.Context) tea.Msg {
		list, err := c.engine.Messages(ctx, engine.MessageQuery{Sandbox: id, Limit: keptMessages})
		return messagesMsg{id, list, err}
	})
}

// sayWords name the action of saying something, for the status row.
const sayWords = "say to Claude"

// keptMessages is how much of a conversation the tab shows.
const keptMessages = 1000

func newChat(w *world, c *commands) *chat {
	in := textarea.New()
	in.Prompt, in.ShowLineNumbers, in.CharLimit = "", false, engine.MaxSaid/4
	in.SetWidth(200)
	return &chat{w: w, c: c, input: in, follow: true, drafts: map[engine.SandboxID]string{}, unfolded: map[engine.MessageID]bool{}, cache: map[engine.MessageID]cachedMessage{}}
}

func (t *chat) show(id engine.SandboxID) tea.Cmd {
	if id != t.id {
		t.drafts[t.id] = t.input.Value()
		fresh := newChat(t.w, t.c)
		fresh.width, fresh.height, fresh.id, fresh.drafts = t.width, t.height, id, t.drafts
		fresh.input.SetValue(t.drafts[id])
		*t = *fresh
	}
	if t.asked && t.err == nil {
		return nil
	}
	t.asked, t.err = true, nil
	return t.c.messages(id)
}

func (t *chat) hide() { t.input.Blur() }

// SetSize is the size of the tab.
func (t *chat) SetSize(width, height int) { t.width, t.height = width, height }

// Typing reports whether a message is being written.
func (t *chat) Typing() bool { return t.input.Focused() }

// ShortHelp are the keys of the footer.
func (t *chat) ShortHelp() []key.Binding {
	k := t.w.keys
	switch {
	case t.Typing():
		list := []key.Binding{as(k.Open, "send"), bind("ctrl+j", "new line"), as(k.Back, "stop typing"), bind("↑", "said before")}
		if t.open() != nil {
			list = append(list, as(k.Interrupt, "stop Claude"))
		}
		return list
	case t.waiting() != nil:
		return []key.Binding{bind("y", "once"), bind("Y", "this chat"), bind("n", "no"), bind("v", "details"), as(k.Type, "type")}
	}
	return []key.Binding{k.Type, as(k.Open, "unfold"), bind("J/K", "messages"), k.Follow, as(k.Stop, stopTitle(t.w, t.sandbox()))}
}

// FullHelp are the keys of the help.
func (t *chat) FullHelp() [][]key.Binding { return [][]key.Binding{t.w.keys.ofChat().keys} }

func (t *chat) sandbox() engine.Sandbox {
	sb, _ := t.w.sandbox(t.id)
	return sb
}

// open is what a person said whose turn is not over, or nil.
func (t *chat) open() *engine.Message {
	for i := len(t.list) - 1; i >= 0; i-- {
		if m := &t.list[i]; m.Kind == engine.MessageSaid && !m.State.Over() {
			return m
		}
	}
	return nil
}

// waiting is the call that waits to be approved, or nil.
func (t *chat) waiting() *engine.Message {
	for i := range t.list {
		if t.list[i].State == engine.MessageAsking {
			return &t.list[i]
		}
	}
	return nil
}

// Update takes messages and answers keys.
func (t *chat) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case messagesMsg:
		if msg.id == t.id {
			t.loaded, t.err = msg.err == nil, msg.err
			for _, m := range msg.list {
				t.put(m)
			}
		}
	case frameMsg:
		return t.heard(msg)
	case tea.PasteMsg:
		if t.Typing() {
			t.input.InsertString(strings.ReplaceAll(msg.Content, "\r", "\n"))
		}
	case tea.KeyPressMsg:
		if t.Typing() {
			return t.typed(msg)
		}
		return t.pressed(msg)
	}
	return nil
}

// heard takes what a frame tells of this chat. After a new snapshot the history
// is asked for again: events may have been missed.
func (t *chat) heard(msg frameMsg) tea.Cmd {
	for _, ev := range msg.events {
		if b, ok := ev.Body.(engine.ChatMessaged); ok && b.Message.Sandbox == t.id {
			t.put(b.Message)
		}
	}
	if msg.snap != nil && t.id != "" {
		return t.c.messages(t.id)
	}
	return nil
}

// put takes a message as it is now.
func (t *chat) put(m engine.Message) {
	i, found := slices.BinarySearchFunc(t.list, m.Number, func(m engine.Message, n int) int { return m.Number - n })
	switch {
	case !found:
		t.list = slices.Insert(t.list, i, m)
	case !t.list[i].State.Over() || m.State.Over():
		t.list[i] = m
	}
	if n := len(t.list) - keptMessages; n > 0 {
		t.list = slices.Delete(t.list, 0, n)
	}
}

// typed edits the message, sends it, or stops typing.
func (t *chat) typed(msg tea.KeyPressMsg) tea.Cmd {
	k := t.w.keys
	switch {
	case key.Matches(msg, k.Back):
		t.input.Blur()
	case msg.String() == "enter":
		return t.send(false)
	case msg.String() == "ctrl+j", msg.String() == "shift+enter":
		t.input.InsertString("\n")
	case msg.String() == "up" && t.input.Line() == 0:
		t.recall(1)
	case msg.String() == "down" && t.past > 0:
		t.recall(-1)
	default:
		t.input, _ = t.input.Update(msg)
	}
	return nil
}

// recall puts what was said before into the input, by steps.
func (t *chat) recall(by int) {
	var said []string
	for _, m := range t.list {
		if m.Kind == engine.MessageSaid {
			said = append(said, m.Text)
		}
	}
	if t.past == 0 {
		t.draft = t.input.Value()
	}
	t.past = max(0, min(t.past+by, len(said)))
	if t.past == 0 {
		t.input.SetValue(t.draft)
		return
	}
	t.input.SetValue(said[len(said)-t.past])
}

// takeOverMsg asks whether the chat may end the heal under way.
type takeOverMsg struct{ do func() tea.Cmd }

// send says what was typed. A heal under way is taken over only when that was
// asked for.
func (t *chat) send(takeOver bool) tea.Cmd {
	text := strings.TrimSpace(t.input.Value())
	why := t.blocked()
	switch {
	case text == "":
		return nil
	case why != "":
		return func() tea.Msg { return notice{themes.Warning, why} }
	case t.sandbox().Health == engine.Healing && !takeOver:
		return func() tea.Msg { return takeOverMsg{func() tea.Cmd { return t.send(true) }} }
	}
	t.input.Reset()
	t.past, t.follow, t.pending = 0, true, text
	return t.c.act(sayWords, engine.Say{Sandbox: t.id, Text: text, Ask: t.ask, TakeOver: takeOver})
}

// refused puts back what could not be said, so that it isn't lost.
func (t *chat) refused() {
	if t.pending != "" && t.input.Value() == "" {
		t.input.SetValue(t.pending)
	}
	t.pending = ""
}

// blocked is why nothing can be said now.
func (t *chat) blocked() string {
	switch {
	case t.w.link.state != live:
		return "waits for the engine"
	case t.w.cfg.ReadOnly != "":
		return t.w.cfg.ReadOnly
	case t.w.snap.About.Model == "":
		return first(t.w.snap.About.NoModel, "no model is configured: see sbx config")
	case t.open() != nil:
		return "Claude is at work: ctrl+C stops it"
	}
	return ""
}

// stops ends the turn under way, as ctrl+C while typing; it reports whether
// there was one, or something typed to clear.
func (t *chat) stops() (tea.Cmd, bool) {
	switch {
	case !t.Typing():
		return nil, false
	case t.open() != nil:
		return t.c.act("stop Claude", engine.StopChat{Sandbox: t.id}), true
	case t.input.Value() != "":
		t.input.Reset()
		return nil, true
	}
	return nil, false
}

// takes reports whether the waiting strip wants this key, which elsewhere means
// something else.
func (t *chat) takes(msg tea.KeyPressMsg) bool {
	return !t.Typing() && t.waiting() != nil && slices.Contains([]string{"y", "Y", "n", "v"}, msg.String())
}

// answer answers the call that waits, by its id: one that changed meanwhile is
// refused by the engine.
func (t *chat) answer(press string) tea.Cmd {
	m := t.waiting()
	if press == "v" {
		t.unfolded[m.ID] = !t.unfolded[m.ID]
		return nil
	}
	if t.w.cfg.ReadOnly != "" || t.w.link.state != live {
		return func() tea.Msg { return notice{themes.Warning, first(t.w.cfg.ReadOnly, "waits for the engine")} }
	}
	a := map[string]engine.Answer{"y": engine.AnswerOnce, "Y": engine.AnswerChat, "n": engine.AnswerNo}[press]
	return t.c.act("answer "+string(a), engine.AnswerApproval{Message: m.ID, Answer: a})
}

func (t *chat) pressed(msg tea.KeyPressMsg) tea.Cmd {
	if t.takes(msg) {
		return t.answer(msg.String())
	}
	k := t.w.keys
	switch {
	case key.Matches(msg, k.Type):
		return t.input.Focus()
	case key.Matches(msg, k.Down, k.NextMessage):
		t.move(1)
	case key.Matches(msg, k.Up, k.PrevMessage):
		t.move(-1)
	case key.Matches(msg, k.HalfDown, k.PageDown):
		t.scroll(max(1, t.room()/2))
	case key.Matches(msg, k.HalfUp, k.PageUp):
		t.scroll(-max(1, t.room()/2))
	case key.Matches(msg, k.Top):
		t.follow, t.cursor, t.top = false, 0, 0
	case key.Matches(msg, k.Bottom):
		t.follow = true
	case key.Matches(msg, k.Follow):
		t.follow = !t.follow
	case key.Matches(msg, k.Open, k.Fold) && len(t.list) > 0:
		m := t.list[min(t.cursor, len(t.list)-1)]
		t.unfolded[m.ID] = !t.unfolded[m.ID]
	case key.Matches(msg, k.Retry) && t.err != nil:
		t.asked = false
		return t.show(t.id)
	}
	return nil
}

func (t *chat) move(by int) {
	if t.follow {
		t.cursor = len(t.list)
	}
	t.follow = false
	t.cursor = max(0, min(t.cursor+by, len(t.list)-1))
}

// scroll moves by lines, without the cursor.
func (t *chat) scroll(by int) {
	t.follow = false
	t.top = max(0, t.top+by)
	t.cursor = -1
}

// retries reports whether the history has to be asked for again.
func (t *chat) retries() bool { return t.err != nil }

// texts are the message under the cursor, or the last answer, and all of them.
func (t *chat) texts() (line, all string) {
	var b strings.Builder
	for i, m := range t.list {
		if m.Kind == engine.MessageAnswer && t.follow || i == t.cursor && !t.follow {
			line = m.Text
		}
		who := map[engine.MessageKind]string{engine.MessageSaid: first(m.By.Name, "you"), engine.MessageAnswer: "claude", engine.MessageTool: m.Tool + " " + m.Argument}[m.Kind]
		b.WriteString(clock(m.Started) + "  " + first(who, string(m.Kind)) + "\n" + m.Text + "\n\n")
	}
	return line, b.String()
}

// chat is the sandbox screen's sixth tab.
func (a *App) chat() *chat { return a.sandbox.tabs[tabChat].pane.(*chat) }

// chatEntries are what the palette offers in a chat and has no key.
func (a *App) chatEntries() []paletteEntry {
	if a.screen != onSandbox || a.sandbox.tab != tabChat {
		return nil
	}
	ask := func(on bool) func() tea.Cmd {
		return func() tea.Cmd {
			a.chat().ask = &on
			return nil
		}
	}
	return []paletteEntry{
		{title: "chat: ask before each command", note: "Claude waits for your y before it runs, writes or restarts anything", run: ask(true)},
		{title: "chat: don't ask", note: "Claude acts by itself, within the sandbox", run: ask(false)},
	}
}
