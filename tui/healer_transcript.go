package tui

import (
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/style"
)

// cachedStep is a step as it was drawn: a transcript of a hundred steps is drawn
// anew only where it changed.
type cachedStep struct {
	step           engine.Step
	set            *style.Set
	width          int
	open, selected bool
	lines          []string
}

// transcript are the steps of the attempt that shows, scrolled to the cursor or
// the end.
func (h *healer) transcript(r engine.HealRun, width, height int) string {
	p := &panel{w: h.w, width: width, height: height}
	steps := h.steps()
	title := attemptName(h.attempt)
	if h.attempt > 0 {
		title = fmt.Sprintf("Attempt %d of %d", h.attempt, r.MaxAttempts)
	} else {
		title = strings.ToUpper(title[:1]) + title[1:]
	}
	note := "F follows"
	if h.follow && r.Open() {
		note = "following · F unfollow"
	}
	role := themes.Muted
	if find := h.findNote(); find != "" {
		note, role = find, themes.Accent
	}
	p.title(title, note, role, !h.onStory)
	if len(steps) == 0 {
		p.add(p.pen().Gap(1).Put(themes.Muted, h.emptyWords(r)))
		return p.text()
	}
	if h.follow {
		h.cursor = len(steps) - 1
	}
	h.cursor = max(0, min(h.cursor, len(steps)-1))
	lines, from, to := h.drawn(steps, width)
	h.aim(len(lines), from, to, height-1)
	for _, l := range lines[min(h.top, len(lines)):] {
		p.put(l)
	}
	return p.text()
}

func (h *healer) emptyWords(r engine.HealRun) string {
	switch {
	case r.State == engine.RunQueued:
		return "waits for a place in the queue"
	case r.State == engine.RunWaiting:
		return "waits for the model: " + first(r.Doing, "all places are taken")
	case r.Open():
		return "nothing yet"
	case !h.w.story(r.ID).whole:
		return "loading…"
	}
	return "no step was recorded"
}

// drawn are all lines of the steps, and where those of the cursor's step are.
func (h *healer) drawn(steps []engine.Step, width int) (lines []string, from, to int) {
	painter := stepPainter{set: h.w.styles, width: width, times: width >= 90, spin: h.w.spinner(), now: h.w.asOf()}
	for i, s := range steps {
		selected := i == h.cursor && !h.onStory && !h.follow
		part := h.step(painter, s, h.open(s), selected)
		if i == h.cursor {
			from, to = len(lines), len(lines)+len(part)
		}
		lines = append(lines, part...)
	}
	return lines, from, to
}

func (h *healer) step(p stepPainter, s engine.Step, open, selected bool) []string {
	if s.State == engine.StepRunning {
		return p.lines(s, open, selected) // its time runs
	}
	id := idOf(s)
	c, ok := h.cache[id]
	if ok && c.step == s && c.set == p.set && c.width == p.width && c.open == open && c.selected == selected {
		return c.lines
	}
	c = cachedStep{step: s, set: p.set, width: p.width, open: open, selected: selected, lines: p.lines(s, open, selected)}
	if h.cache != nil {
		h.cache[id] = c
	}
	return c.lines
}

// aim scrolls so that the cursor's step shows, or the end when following.
func (h *healer) aim(lines, from, to, height int) {
	if h.follow {
		h.top = max(0, lines-height)
		return
	}
	if to > h.top+height {
		h.top = to - height
	}
	if from < h.top {
		h.top = from
	}
	h.top = max(0, min(h.top, lines-1))
}
