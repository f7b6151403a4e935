package tui

import (
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// inputLines is how many lines of the message being written show.
const inputLines = 4

// cachedMessage is a message as it was drawn.
type cachedMessage struct {
	size           int
	state          engine.MessageState
	set            *style.Set
	width          int
	open, selected bool
	lines          []string
}

// View is the conversation, what waits for an answer, and the message being
// written.
func (t *chat) View() string {
	p := &panel{w: t.w, width: t.width, height: t.height}
	note, role := t.note()
	p.title("Chat with Claude", note, role, !t.Typing())
	room := t.room()
	lines, from, to := t.drawn()
	t.aim(len(lines), from, to, room)
	for _, l := range lines[min(t.top, len(lines)):min(len(lines), t.top+room)] {
		p.put(l)
	}
	for len(p.lines) < room+1 {
		p.blank()
	}
	t.strip(p)
	t.writing(p)
	return p.text()
}

// room is how many lines the conversation has.
func (t *chat) room() int { return max(1, t.height-1-t.stripLines()-inputLines-1) }

func (t *chat) note() (string, themes.Role) {
	m := t.open()
	switch {
	case t.err != nil:
		return t.err.Error() + " · r tries again", themes.Error
	case m != nil && m.State == engine.MessageWaiting:
		return t.w.spinner() + " waits for the sandbox", themes.HealthHealing
	case m != nil:
		return t.w.spinner() + " " + first(m.Model, "Claude") + " · " + span(t.w.asOf().Sub(m.Started)), themes.HealthHealing
	}
	var spent engine.Spent
	for _, m := range t.list {
		spent = spent.Add(m.Spent)
	}
	return price(spent), themes.Muted
}

// drawn are all lines of the conversation, and where those of the cursor's
// message are.
func (t *chat) drawn() (lines []string, from, to int) {
	if len(t.list) == 0 {
		return t.nothing(), 0, 0
	}
	if t.follow {
		t.cursor = len(t.list) - 1
	}
	for i, m := range t.list {
		part := t.message(m, !t.follow && i == t.cursor)
		if i == t.cursor {
			from, to = len(lines), len(lines)+len(part)
		}
		lines = append(lines, part...)
	}
	return lines, from, to
}

func (t *chat) aim(lines, from, to, height int) {
	switch {
	case t.follow:
		t.top = lines - height
	case t.cursor >= 0 && from < t.top:
		t.top = from
	case t.cursor >= 0 && to > t.top+height:
		t.top = min(from, to-height)
	}
	t.top = max(0, min(t.top, lines-1))
}

// nothing says what a chat is, before there is one.
func (t *chat) nothing() []string {
	p := &panel{w: t.w, width: t.width, height: t.room()}
	line := func(role themes.Role, text string) {
		for _, l := range draw.Wrap(text, min(96, t.width-4), 3) {
			p.add(p.pen().Gap(2).Put(role, l))
		}
	}
	p.blank()
	if !t.loaded && t.err == nil {
		line(themes.Muted, "loading…")
		return p.lines
	}
	line(themes.Text, "Claude knows what was seen here and what the healer tried. It has the healer's tools, in this sandbox and nowhere else, and no cap on attempts; what it does can be undone.")
	p.blank()
	if why := t.blocked(); why != "" {
		line(themes.Warning, why)
	} else {
		p.add(p.pen().Gap(2).Put(themes.Key, t.w.keys.Type.Help().Key).Put(themes.Text, "  writes a message"))
	}
	return p.lines
}

// message is one message in lines, drawn anew only when it changed.
func (t *chat) message(m engine.Message, selected bool) []string {
	open := t.unfolded[m.ID] || m.State == engine.MessageFailed && m.Kind == engine.MessageTool
	c := cachedMessage{size: len(m.Text) + len(m.Diff), state: m.State, set: t.w.styles, width: t.width, open: open, selected: selected}
	if old, ok := t.cache[m.ID]; ok && m.State.Over() {
		c.lines = old.lines
		if old.size == c.size && old.state == c.state && old.set == c.set && old.width == c.width && old.open == open && old.selected == selected {
			return old.lines
		}
	}
	c.lines = t.draw(m, open, selected)
	t.cache[m.ID] = c
	return c.lines
}

func (t *chat) draw(m engine.Message, open, selected bool) []string {
	ground := style.Plain
	if selected {
		ground = style.Selected
	}
	line := func() *draw.Pen { return draw.On(t.w.styles, ground, t.width).Gap(1) }
	switch m.Kind {
	case engine.MessageTool:
		painter := stepPainter{set: t.w.styles, width: t.width, spin: t.w.spinner(), now: t.w.asOf()}
		return painter.lines(stepOf(m), open, selected)
	case engine.MessageSaid:
		out := []string{line().String(), line().Cell(themes.Muted, clock(m.Started), 10).Put(themes.ChatUser, first(m.By.Name, "you")).Gap(2).Put(themes.Muted, said(m)).String()}
		for _, l := range draw.Wrap(m.Text, t.width-6, foldLimit) {
			out = append(out, line().Put(themes.ChatUser, "▌ ").Put(themes.Text, l).String())
		}
		return append(out, line().String())
	case engine.MessageNote:
		var out []string
		for _, l := range draw.Wrap(m.Text, t.width-4, foldLimit) {
			out = append(out, line().Put(themes.Muted, "· "+l).String())
		}
		return out
	}
	return t.answerLines(m, line)
}

// said is how a turn ended, if that is worth saying.
func said(m engine.Message) string {
	switch m.State {
	case engine.MessageDone, engine.MessageRunning, engine.MessageWaiting:
		return ""
	}
	return strings.TrimSpace(string(m.State) + " " + m.Why)
}

// answerLines draw what the model says: headings, lists and code are told
// apart, nothing else is done to its text.
func (t *chat) answerLines(m engine.Message, line func() *draw.Pen) []string {
	var out []string
	code := false
	for _, raw := range strings.Split(strings.TrimRight(m.Text, "\n"), "\n") {
		text, role := raw, themes.Text
		switch trimmed := strings.TrimSpace(raw); {
		case strings.HasPrefix(trimmed, "```"):
			code = !code
			continue
		case code:
			role = themes.ChatTool
		case strings.HasPrefix(trimmed, "#"):
			text, role = strings.TrimLeft(trimmed, "# "), themes.Title
		case strings.HasPrefix(trimmed, "- "), strings.HasPrefix(trimmed, "* "):
			indent := len(raw) - len(strings.TrimLeft(raw, " "))
			text = strings.Repeat(" ", indent) + "• " + trimmed[2:]
		}
		if text == "" {
			out = append(out, line().String())
			continue
		}
		indent := 0
		if code {
			indent = 2
		}
		for _, l := range draw.Wrap(text, t.width-4-indent, foldLimit) {
			pen := line().Gap(indent)
			t.inline(pen, l, role, code)
			out = append(out, pen.String())
		}
	}
	return out
}

// inline draws `code` and **strong** within a line.
func (t *chat) inline(pen *draw.Pen, text string, role themes.Role, code bool) {
	if code {
		pen.Put(role, text)
		return
	}
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			pen.Put(themes.ChatTool, part)
			continue
		}
		for j, piece := range strings.Split(part, "**") {
			r := role
			if j%2 == 1 {
				r = themes.Title
			}
			pen.Put(r, piece)
		}
	}
}

// stepOf is a tool call as the healer's transcript draws it.
func stepOf(m engine.Message) engine.Step {
	s := engine.Step{
		Kind: engine.StepTool, State: engine.StepOK, Name: m.Tool, Argument: m.Argument, Text: m.Text, Diff: m.Diff,
		Started: m.Started, Ended: m.Ended,
	}
	switch m.State {
	case engine.MessageRunning, engine.MessageWaiting, engine.MessageAsking:
		s.State = engine.StepRunning
	case engine.MessageFailed, engine.MessageDenied, engine.MessageStopped, engine.MessageInterrupted:
		s.State = engine.StepFailed
		if m.Text == "" {
			s.Text = string(m.State)
		}
	}
	return s
}

func (t *chat) stripLines() int {
	m := t.waiting()
	switch {
	case m == nil:
		return 0
	case t.unfolded[m.ID]:
		return 6
	}
	return 3
}

// strip is the call that waits to be approved. What it says of the call is the
// model's; what it says of keys is not, and stands apart.
func (t *chat) strip(p *panel) {
	m := t.waiting()
	if m == nil {
		return
	}
	p.add(p.pen().Put(themes.ChatAsk, " asks ").Gap(1).Put(themes.Text, m.Tool+"  "+oneLine(m.Argument)))
	if t.unfolded[m.ID] {
		lines := draw.Wrap(string(m.Input), t.width-8, 3)
		for i := range 3 {
			pen := p.pen().Gap(7)
			if i < len(lines) {
				pen.Put(themes.Muted, lines[i])
			}
			p.add(pen)
		}
	}
	how := "y once · Y for this chat · n no · v details"
	if t.Typing() {
		how = "nothing here takes your typing: press Esc, then " + how
	}
	p.add(p.pen().Gap(7).Put(themes.Text, how))
	left := ""
	if !m.AskUntil.IsZero() {
		left = fmt.Sprintf("waits %s, then counts as no", span(max(0, m.AskUntil.Sub(t.w.asOf()))))
	}
	p.add(p.pen().Gap(7).Put(themes.Muted, left))
}

// writing is the message being written, around its cursor.
func (t *chat) writing(p *panel) {
	note := t.w.keys.Type.Help().Key + " types"
	if t.Typing() {
		note = "Enter sends · ctrl+J new line"
	}
	if t.ask != nil && *t.ask {
		note = "asks before each command · " + note
	}
	p.title("Message", note, themes.Muted, t.Typing())
	text := t.input.Value()
	if t.Typing() {
		lines := strings.Split(text, "\n")
		row := min(t.input.Line(), len(lines)-1)
		runes := []rune(lines[row])
		col := min(t.input.Column(), len(runes))
		lines[row] = string(runes[:col]) + "█" + string(runes[col:])
		text = strings.Join(lines, "\n")
	}
	lines := draw.Wrap(text, t.width-5, 1000)
	at := 0
	for i, l := range lines {
		if strings.Contains(l, "█") {
			at = i
		}
	}
	first := max(0, min(at-inputLines+1, len(lines)-inputLines))
	for i := range inputLines {
		pen := p.pen().Gap(1)
		if i == 0 {
			pen.Put(themes.Key, "> ")
		} else {
			pen.Gap(2)
		}
		if first+i < len(lines) {
			pen.Put(themes.Text, lines[first+i])
		}
		p.add(pen)
	}
}
