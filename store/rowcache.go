package store

import (
	"maps"
	"slices"

	"sbx/engine"
)

// cachedRows is how many decoded rows the writer keeps.
const cachedRows = 4096

// A rowCache saves the writer from decoding a sandbox's row again and again.
// An entry counts only for the very text that it was decoded from, so it can't
// be stale, whoever wrote the row.
type rowCache map[engine.SandboxID]cachedRow

// A cachedRow is shared with events that were published: it is never changed,
// and what leaves the store as a row is a copy.
type cachedRow struct {
	text string
	sb   engine.Sandbox
}

func (c rowCache) put(text string, sb engine.Sandbox) {
	if len(c) >= cachedRows {
		clear(c) // rare, and cheaper than knowing which is the oldest
	}
	c[sb.ID] = cachedRow{text: text, sb: sb}
}

func (c rowCache) find(id engine.SandboxID, text string) (engine.Sandbox, bool) {
	row, ok := c[id]
	if !ok || row.text != text {
		return engine.Sandbox{}, false
	}
	return cloneSandbox(row.sb), true
}

// cloneSandbox shares nothing with sb.
func cloneSandbox(sb engine.Sandbox) engine.Sandbox {
	sb.Labels = maps.Clone(sb.Labels)
	sb.Spec.App.Env = maps.Clone(sb.Spec.App.Env)
	sb.Spec.Heal.Protected = slices.Clone(sb.Spec.Heal.Protected)
	sb.Spec.Processes = slices.Clone(sb.Spec.Processes)
	for i := range sb.Spec.Processes {
		sb.Spec.Processes[i].Env = maps.Clone(sb.Spec.Processes[i].Env)
	}
	return sb
}
