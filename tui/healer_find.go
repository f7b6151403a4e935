package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sbx/engine"
)

// Typing reports whether a search is being typed.
func (h *healer) Typing() bool { return h.input.Focused() }

// typed answers keys while a search is being typed.
func (h *healer) typed(msg tea.KeyPressMsg) {
	k := h.w.keys
	switch {
	case key.Matches(msg, k.Back):
		h.input.Blur()
		h.find = ""
	case key.Matches(msg, k.Open):
		h.input.Blur()
		if h.find = h.input.Value(); h.find != "" {
			h.seek(1, true)
		}
	default:
		h.input, _ = h.input.Update(msg)
	}
}

// ask begins a search.
func (h *healer) ask() tea.Cmd {
	h.input.SetValue(h.find)
	h.input.CursorEnd()
	return h.input.Focus()
}

// back undoes the search. It reports whether there was one.
func (h *healer) back() bool {
	had := h.find != ""
	h.find = ""
	return had
}

// seek puts the cursor on the next step that has what is looked for, in this
// attempt or another, and unfolds it. here says that the cursor's own counts.
func (h *healer) seek(dir int, here bool) {
	_, all, _ := h.told()
	at := -1
	for i, s := range all {
		if mine := h.steps(); h.cursor >= 0 && h.cursor < len(mine) && idOf(s) == idOf(mine[h.cursor]) {
			at = i
		}
	}
	if here {
		at -= dir
	}
	for n := range all {
		i := ((at+dir*(n+1))%len(all) + len(all)) % len(all)
		if stepHas(all[i], h.find) {
			h.reach(all[i])
			return
		}
	}
	h.missed = true
}

// reach puts the cursor on a step.
func (h *healer) reach(s engine.Step) {
	h.attempt, h.follow, h.onStory, h.missed = s.Attempt, false, false, false
	for i, mine := range h.steps() {
		if idOf(mine) == idOf(s) {
			h.cursor = i
		}
	}
	if !contains(s.Name+" "+s.Argument, h.find) {
		h.unfolded[idOf(s)] = true
	}
}

func stepHas(s engine.Step, want string) bool {
	return want != "" && (contains(s.Name+" "+s.Argument, want) || contains(s.Text, want) || contains(s.Diff, want))
}

// texts are the step under the cursor, and the whole run as text.
func (h *healer) texts() (line, all string) {
	r, ok := h.w.run(h.id)
	if !ok {
		return "", ""
	}
	const width = 110
	p := &panel{w: h.w, width: width, height: 400}
	h.story(p, r)
	lines := append([]string(nil), p.lines...)
	painter := stepPainter{set: h.w.styles, width: width, times: true, spin: h.w.glyphs.Healing, now: h.w.asOf()}
	_, steps, _ := h.told()
	attempt := -1
	for _, s := range steps {
		if s.Attempt != attempt {
			attempt = s.Attempt
			lines = append(lines, "", upper(attemptName(attempt)))
		}
		lines = append(lines, painter.lines(s, foldable(s), false)...)
	}
	for i := range lines {
		lines[i] = strings.TrimRight(ansi.Strip(lines[i]), " ")
	}
	if mine := h.steps(); h.cursor >= 0 && h.cursor < len(mine) {
		s := mine[h.cursor]
		line = oneLine(first(s.Text, s.Argument, s.Name))
	}
	return line, strings.Join(lines, "\n")
}

// findNote says what is looked for, at the transcript's title.
func (h *healer) findNote() string {
	switch {
	case h.Typing():
		return "/" + h.input.Value() + "▏"
	case h.find == "":
		return ""
	case h.missed:
		return fmt.Sprintf("no step has %q", h.find)
	}
	return fmt.Sprintf("/%s · n N next, previous", h.find)
}
