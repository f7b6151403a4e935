package main

import (
	"fmt"
	"strings"

	"sbx/engine"
	"sbx/tui/clean"
)

// chatView shows a turn as it comes: the model's words grow, a call is shown
// when it ends, with its result.
type chatView struct {
	c    *cli
	full bool
	// at is the answer that grows on the last line, and told how much of it is
	// shown already.
	at   engine.MessageID
	told string
}

func (v *chatView) show(m engine.Message) error {
	if v.c.json {
		return v.c.printJSON(m)
	}
	if m.Kind == engine.MessageAnswer {
		return v.grow(m)
	}
	if !m.State.Over() || m.Kind == engine.MessageSaid {
		return nil
	}
	if err := v.endLine(); err != nil {
		return err
	}
	for _, line := range chatLines(m, v.full) {
		if _, err := fmt.Fprintln(v.c.out, cleanLine(line)); err != nil {
			return err
		}
	}
	return nil
}

// grow shows what is new of an answer. A last line without an end is held back
// until it has one or the answer is over, so that no half of a character or of
// an escape sequence is shown.
func (v *chatView) grow(m engine.Message) error {
	if m.ID != v.at {
		if err := v.endLine(); err != nil {
			return err
		}
		v.at, v.told = m.ID, ""
	}
	text := m.Text
	if !m.State.Over() {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	} else if text != "" {
		text += "\n"
	}
	fresh, ok := strings.CutPrefix(text, v.told)
	if !ok || fresh == "" {
		return nil // shortened or redacted since: what is shown stays
	}
	v.told = text
	for line := range strings.Lines(fresh) {
		if _, err := fmt.Fprintln(v.c.out, clean.Line(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

// endLine ends the answer that is shown.
func (v *chatView) endLine() error {
	v.at, v.told = "", ""
	return nil
}

// chatLines is a message in lines for people.
func chatLines(m engine.Message, full bool) []string {
	switch m.Kind {
	case engine.MessageSaid:
		head := m.Started.Local().Format("2006-01-02 15:04:05") + "  " + m.By.String() + ":"
		lines := append([]string{head}, indent(strings.Split(m.Text, "\n"))...)
		if m.State != engine.MessageDone {
			lines = append(lines, strings.TrimSuffix(fmt.Sprintf("  [%s: %s]", m.State, m.Why), ": ]"))
		}
		return lines
	case engine.MessageAnswer:
		return strings.Split(m.Text, "\n")
	case engine.MessageNote:
		return []string{"  [" + oneLine(m.Text, 300) + "]"}
	}
	line := fmt.Sprintf("  > %s %s  %s", m.Tool, oneLine(m.Argument, 100), m.State)
	if add, del := diffCount(m.Diff); add+del > 0 {
		line += fmt.Sprintf(" +%d -%d", add, del)
	}
	lines := append([]string{line}, indent(indent(firstLines(m.Text, pick(full, 1000, 6))))...)
	if full && m.Diff != "" {
		lines = append(lines, indent(indent(strings.Split(strings.TrimRight(m.Diff, "\n"), "\n")))...)
	}
	return lines
}
