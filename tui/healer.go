package tui

import (
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"sbx/engine"
)

// healer is the second tab: the story of a run on the left, its transcript on
// the right. On a narrow screen the story is one line.
type healer struct {
	w             *world
	c             *commands
	width, height int
	id            engine.SandboxID

	run      engine.RunID
	attempt  int // that shows; followed ones move on by themselves
	follow   bool
	cursor   int // of the transcript, a step
	top      int // first line of the transcript that shows
	unfolded map[stepID]bool
	onStory  bool // the story has the focus
	cache    map[stepID]cachedStep
	zoomed   bool // only the part that has the focus

	input  textinput.Model
	find   string
	missed bool // nothing has what is looked for
}

func newHealer(w *world, c *commands) *healer {
	in := textinput.New()
	in.Prompt = ""
	in.CharLimit = 200
	return &healer{w: w, c: c, input: in}
}

func (h *healer) show(id engine.SandboxID) tea.Cmd {
	if id != h.id {
		fresh := newHealer(h.w, h.c)
		fresh.width, fresh.height, fresh.id, fresh.zoomed = h.width, h.height, id, h.zoomed
		*h = *fresh
	}
	return h.sync()
}

func (h *healer) hide() {}

// SetSize is the size of the tab.
func (h *healer) SetSize(width, height int) { h.width, h.height = width, height }

// ShortHelp are the keys of the footer.
func (h *healer) ShortHelp() []key.Binding {
	k := h.w.keys
	if h.Typing() {
		return []key.Binding{as(k.Open, "find"), as(k.Back, "clear")}
	}
	act := k.Heal
	if sb, _ := h.w.sandbox(h.id); sb.Health == engine.Healing {
		act = k.Abort
	}
	if _, ok := h.w.run(h.id); !ok {
		return []key.Binding{act, k.Restart, k.Pause}
	}
	return []key.Binding{as(k.Open, "unfold"), both(k.Down, k.Up, "steps"), both(k.Left, k.Right, "attempts"), act, k.Follow, k.Find, k.FoldAll, as(k.Zoom, "zoom")}
}

// FullHelp are the keys of the help.
func (h *healer) FullHelp() [][]key.Binding { return [][]key.Binding{h.w.keys.ofHealer().keys} }

// Update answers keys and follows the run.
func (h *healer) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		if h.Typing() {
			h.typed(msg)
			return nil
		}
		if key.Matches(msg, h.w.keys.Find) && h.run != "" {
			return h.ask()
		}
		h.pressed(msg)
	case tea.PasteMsg:
		if h.Typing() {
			h.input, _ = h.input.Update(msg)
		}
		return nil
	case healsMsg:
		if msg.query.Run != "" {
			h.w.story(msg.query.Run).learn(msg.records, msg.err)
		}
	case frameMsg:
	default:
		return nil
	}
	return h.sync()
}

// sync follows the sandbox's run, and reads the steps of one that is over.
func (h *healer) sync() tea.Cmd {
	r, ok := h.w.run(h.id)
	if !ok {
		h.run = ""
		return nil
	}
	if r.ID != h.run {
		h.run, h.attempt, h.follow = r.ID, r.Attempt, true
		h.cursor, h.top, h.unfolded, h.cache = 0, 0, map[stepID]bool{}, map[stepID]cachedStep{}
	}
	if h.follow {
		h.attempt = r.Attempt
	}
	if r.Open() || h.w.link.state != live {
		return nil
	}
	if s := h.w.story(r.ID); !s.asked {
		s.asked = true
		return h.c.heals(engine.HealQuery{Sandbox: h.id, Run: r.ID})
	}
	return nil
}

// told are the attempts and steps of the run that shows.
func (h *healer) told() (attempts []engine.Attempt, steps []engine.Step, err error) {
	r, ok := h.w.run(h.id)
	if !ok {
		return nil, nil, nil
	}
	if r.Open() {
		return h.w.snap.Attempts[h.id], h.w.snap.Steps[h.id], nil
	}
	s := h.w.story(r.ID)
	attempts = h.w.snap.Attempts[h.id]
	if len(s.attempts) > len(attempts) {
		attempts = s.attempts
	}
	return attempts, s.steps, s.err
}

// steps are those of the attempt that shows.
func (h *healer) steps() []engine.Step {
	_, all, _ := h.told()
	var list []engine.Step
	for _, s := range all {
		if s.Attempt == h.attempt {
			list = append(list, s)
		}
	}
	return list
}

func (h *healer) pressed(msg tea.KeyPressMsg) {
	k := h.w.keys
	steps := h.steps()
	page := max(1, h.height/2)
	switch {
	case key.Matches(msg, k.NextPane, k.PrevPane):
		h.onStory = !h.onStory
	case key.Matches(msg, k.Left), h.onStory && key.Matches(msg, k.Up):
		h.turn(-1)
	case key.Matches(msg, k.Right), h.onStory && key.Matches(msg, k.Down):
		h.turn(1)
	case key.Matches(msg, k.Down):
		h.move(steps, 1)
	case key.Matches(msg, k.Up):
		h.move(steps, -1)
	case key.Matches(msg, k.HalfDown, k.PageDown):
		h.move(steps, page)
	case key.Matches(msg, k.HalfUp, k.PageUp):
		h.move(steps, -page)
	case key.Matches(msg, k.Top):
		h.move(steps, -len(steps))
	case key.Matches(msg, k.Bottom):
		h.move(steps, len(steps))
	case key.Matches(msg, k.Follow):
		h.follow = !h.follow
	case key.Matches(msg, k.Open, k.Fold):
		h.fold(steps)
	case key.Matches(msg, k.FoldAll):
		h.foldAll(steps)
	case key.Matches(msg, k.Zoom):
		h.zoomed = !h.zoomed
	case key.Matches(msg, k.FindNext) && h.find != "":
		h.seek(1, false)
	case key.Matches(msg, k.FindPrev) && h.find != "":
		h.seek(-1, false)
	}
}

// turn shows another attempt.
func (h *healer) turn(n int) {
	attempts, _, _ := h.told()
	if len(attempts) == 0 {
		return
	}
	at := 0
	for i, a := range attempts {
		if a.Number == h.attempt {
			at = i
		}
	}
	at = max(0, min(at+n, len(attempts)-1))
	if attempts[at].Number != h.attempt {
		h.attempt, h.follow, h.cursor, h.top = attempts[at].Number, at == len(attempts)-1, 0, 0
	}
}

func (h *healer) move(steps []engine.Step, n int) {
	if h.follow {
		h.cursor = len(steps) - 1
	}
	h.cursor = max(0, min(h.cursor+n, len(steps)-1))
	h.follow = h.cursor == len(steps)-1 && n > 0
}

func (h *healer) open(s engine.Step) bool {
	if open, ok := h.unfolded[idOf(s)]; ok {
		return open && foldable(s)
	}
	return unfolds(s)
}

func (h *healer) fold(steps []engine.Step) {
	if h.follow {
		h.cursor = len(steps) - 1
	}
	if h.cursor >= 0 && h.cursor < len(steps) {
		s := steps[h.cursor]
		h.unfolded[idOf(s)] = !h.open(s)
	}
}

func (h *healer) foldAll(steps []engine.Step) {
	anyOpen := false
	for _, s := range steps {
		anyOpen = anyOpen || h.open(s)
	}
	for _, s := range steps {
		h.unfolded[idOf(s)] = !anyOpen
	}
}
