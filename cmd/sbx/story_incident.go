package main

import (
	"fmt"

	"sbx/engine"
)

// tellNote is what somebody told the model. It is told again when a run takes
// it that began later; that is of no interest.
func tellNote(n engine.HealNote) []string {
	return append([]string{"note     by " + n.By.String()}, indent(firstLines(n.Text, 6))...)
}

// tellIncident is an incident as it is now, if that is news: each sandbox that
// joins or is done changes its row too.
func (s story) tellIncident(i engine.Incident) []string {
	news := string(i.State) + i.Reason + string(i.CanaryRun) + i.Watcher.String()
	if s.told != nil {
		if s.told[i.ID] == news {
			return nil
		}
		s.told[i.ID] = news
	}
	line := fmt.Sprintf("incident %s %s: %s in %d sandboxes", engine.Short(i.ID), i.State, i.Title, len(i.Members))
	if i.Watcher.Kind != "" {
		line += " · watched by " + i.Watcher.String()
	}
	lines := []string{line}
	if i.Reason != "" {
		lines = append(lines, indent([]string{oneLine(i.Reason, 400)})...)
	}
	return lines
}
