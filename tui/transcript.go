package tui

import (
	"fmt"
	"strings"
	"time"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/draw"
	"sbx/tui/style"
)

// story is a run's attempts and steps, as they were seen or read back.
type story struct {
	signal   engine.Signal // that began the run
	attempts []engine.Attempt
	steps    []engine.Step
	asked    bool // for the history
	whole    bool // the history has answered
	err      error
}

// learn takes the history's records of the run.
func (s *story) learn(records []engine.HealRecord, err error) {
	s.whole, s.err = true, err
	for _, rec := range records {
		switch b := rec.Body.(type) {
		case engine.SignalJudged:
			if s.signal.ID == 0 {
				s.signal = b.Signal
			}
		case engine.HealAttempted:
			s.attempts = putAttempt(s.attempts, b.Attempt)
		case engine.HealStepped:
			s.steps = putStep(s.steps, b.Step)
		}
	}
}

func putAttempt(list []engine.Attempt, a engine.Attempt) []engine.Attempt {
	for i := range list {
		if list[i].Number == a.Number {
			list[i] = a
			return list
		}
	}
	return append(list, a)
}

func putStep(list []engine.Step, st engine.Step) []engine.Step {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Attempt == st.Attempt && list[i].Number == st.Number {
			list[i] = st
			return list
		}
	}
	return append(list, st)
}

// stepID names a step within its run.
type stepID struct{ attempt, number int }

func idOf(s engine.Step) stepID { return stepID{s.Attempt, s.Number} }

// stepPainter draws steps into lines of one width.
type stepPainter struct {
	set   *style.Set
	width int
	times bool
	spin  string
	now   time.Time
}

// lead is how far the text of a step is from the left.
func (p stepPainter) lead() int {
	if p.times {
		return 10
	}
	return 1
}

// lines are a step, unfolded or not.
func (p stepPainter) lines(s engine.Step, open, selected bool) []string {
	ground := style.Plain
	if selected {
		ground = style.Selected
	}
	if s.Kind == engine.StepThought {
		return p.thought(s, ground)
	}
	out := []string{p.head(s, open, ground)}
	if !open {
		return out
	}
	role := themes.Muted
	if s.State == engine.StepFailed {
		role = themes.Error
	}
	text := strings.TrimRight(s.Text, "\n ")
	for _, l := range draw.Wrap(text, p.width-p.lead()-4, foldLimit) {
		if text == "" {
			break
		}
		out = append(out, draw.New(p.set, p.width).Gap(p.lead()+3).Put(role, l).String())
	}
	return append(out, p.diff(s.Diff)...)
}

// foldLimit is how many lines of a step's text an unfolded step shows.
const foldLimit = 200

func (p stepPainter) begin(ground style.Ground, at time.Time) *draw.Pen {
	pen := draw.On(p.set, ground, p.width).Gap(1)
	if p.times {
		pen.Cell(themes.Muted, clock(at), 9)
	}
	return pen
}

func (p stepPainter) thought(s engine.Step, ground style.Ground) []string {
	var out []string
	for i, l := range draw.Wrap(strings.TrimSpace(s.Text), min(100, p.width-p.lead()-1), foldLimit) {
		if i == 0 {
			out = append(out, p.begin(ground, s.Started).Put(themes.Text, l).String())
			continue
		}
		out = append(out, draw.On(p.set, ground, p.width).Gap(p.lead()).Put(themes.Text, l).String())
	}
	return out
}

// head is a step in one line: sign, name, argument, how long, how it ended.
func (p stepPainter) head(s engine.Step, open bool, ground style.Ground) string {
	glyph, role := p.set.Glyphs.Folded, themes.ChatTool
	if open {
		glyph = p.set.Glyphs.Unfolded
	}
	name := first(s.Name, string(s.Kind))
	argument := s.Argument
	switch s.Kind {
	case engine.StepNote:
		glyph, role, name, argument = "◇", themes.Info, "", oneLine(first(s.Text, s.Argument))
	case engine.StepVerify:
		name, argument = "verify", first(s.Argument, oneLine(s.Text))
	case engine.StepPlaybook:
		argument = first(s.Argument, oneLine(s.Text))
	}
	if s.State == engine.StepRunning {
		glyph, role = p.spin, themes.HealthHealing
	}
	pen := p.begin(ground, s.Started).Put(role, glyph).Gap(1)
	if name != "" {
		pen.Put(role, name).Gap(max(1, 8-draw.Width(name)))
	}
	tail, tailRole := p.result(s)
	room := pen.Left() - draw.Width(tail) - 2
	if s.Kind == engine.StepTool { // others have sentences, not names in a column
		room = min(room, max(44, p.width/2-18))
	}
	pen.Cell(themes.Text, argument, room).Gap(1)
	return pen.Put(tailRole, tail).String()
}

// result is how long a step took and how it ended.
func (p stepPainter) result(s engine.Step) (string, themes.Role) {
	if s.Kind == engine.StepNote {
		return "", themes.Muted
	}
	if s.State == engine.StepRunning {
		return span(p.now.Sub(s.Started)) + "…", themes.HealthHealing
	}
	took := fmt.Sprintf("%5.1fs  ", s.Ended.Sub(s.Started).Seconds())
	if s.Ended.IsZero() {
		took = ""
	}
	if s.State == engine.StepFailed {
		return took + p.set.Glyphs.Broken, themes.Error
	}
	took += p.set.Glyphs.Ready
	if s.Diff != "" {
		add, del := diffCount(s.Diff)
		took += fmt.Sprintf(" +%d −%d", add, del)
	}
	return took, themes.Muted
}

func diffCount(diff string) (add, del int) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case line[0] == '+':
			add++
		case line[0] == '-':
			del++
		}
	}
	return add, del
}

// diff are the lines of a unified diff, numbered.
func (p stepPainter) diff(diff string) []string {
	var out []string
	from, to, head := 0, 0, false
	for i, line := range strings.Split(strings.TrimRight(diff, "\n"), "\n") {
		if i >= foldLimit {
			return append(out, draw.New(p.set, p.width).Gap(p.lead()+3).Put(themes.Muted, "… the diff goes on").String())
		}
		pen := draw.New(p.set, p.width).Gap(p.lead() + 2)
		switch {
		case strings.HasPrefix(line, "diff "):
			head = true // which file, its modes, its hashes: the step's line names it
			continue
		case line == "", head && !strings.HasPrefix(line, "@@") && !strings.HasPrefix(line, "Binary "),
			strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, `\`):
			continue
		case strings.HasPrefix(line, "@@"):
			head = false
			_, _ = fmt.Sscanf(line, "@@ -%d", &from) // a hunk without numbers counts from 0
			if _, rest, ok := strings.Cut(line, " +"); ok {
				_, _ = fmt.Sscanf(rest, "%d", &to)
			}
			out = append(out, pen.Put(themes.DiffHunk, line).String())
			continue
		case line[0] == '+':
			p.diffLine(pen, themes.DiffAdd, to, "+ "+line[1:])
			to++
		case line[0] == '-':
			p.diffLine(pen, themes.DiffDel, from, "- "+line[1:])
			from++
		default:
			p.diffLine(pen, themes.Text, to, "  "+strings.TrimPrefix(line, " "))
			from++
			to++
		}
		out = append(out, pen.String())
	}
	return out
}

func (p stepPainter) diffLine(pen *draw.Pen, role themes.Role, n int, text string) {
	pen.CellRight(themes.Muted, fmt.Sprint(n), 4).Gap(1).Put(role, text)
}

// unfolds reports whether a step is unfolded unless somebody folds it: what
// changed something, and what failed.
func unfolds(s engine.Step) bool {
	return s.Diff != "" || s.State == engine.StepFailed && s.Text != ""
}

// foldable reports whether there is anything below a step's line.
func foldable(s engine.Step) bool {
	text := strings.TrimSpace(s.Text)
	if s.Kind == engine.StepNote && !strings.Contains(text, "\n") {
		text = "" // its line says it all
	}
	return s.Kind != engine.StepThought && (s.Diff != "" || text != "")
}
