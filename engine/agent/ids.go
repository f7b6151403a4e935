package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// idBook knows the ids of all calls of a conversation. Every call must have one
// of its own, or the API refuses the whole conversation from then on.
type idBook struct {
	used map[string]bool
	next int
}

func newIDBook(past []Message) idBook {
	b := idBook{used: map[string]bool{}}
	for _, m := range past {
		for _, c := range m.Calls {
			b.used[c.ID] = true
		}
	}
	return b
}

// tidy makes a turn fit to be sent back: ids that are there and unique, names
// and inputs of the form that the API takes. faults says, for a call's place,
// why it must not be made. What had to change is no longer the provider's own
// form, so Raw goes.
func (b *idBook) tidy(m Message) (tidied Message, faults map[int]string) {
	faults = map[int]string{}
	here := map[string]bool{}
	calls := slices.Clone(m.Calls)
	changed := false
	for i := range calls {
		c := &calls[i]
		switch {
		case !isName(c.ID):
			faults[i] = "not done: the call had no valid id: make it again"
		case here[c.ID]:
			faults[i] = "not done: two calls of the turn had the same id: make it again"
		}
		here[c.ID] = true
		if faults[i] != "" || b.used[c.ID] { // a server that counts anew each turn is no fault
			c.ID, changed = b.fresh(), true
		}
		b.used[c.ID] = true
		if !isName(c.Name) {
			c.Name, changed = "unknown", true
			faults[i] = "not done: the call named no tool"
		}
		if why := notObject(c.Input); why != "" {
			c.Input, changed = json.RawMessage("{}"), true
			faults[i] = why
		}
	}
	if changed {
		m.Calls, m.Raw = calls, nil
	}
	return m, faults
}

func (b *idBook) fresh() string {
	for {
		b.next++
		if id := "call_" + strconv.Itoa(b.next); !b.used[id] {
			return id
		}
	}
}

// isName reports whether s is an id or a tool's name as the API takes them.
func isName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for _, r := range s {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-') {
			return false
		}
	}
	return true
}

// notObject says why an input isn't a JSON object, or "".
func notObject(input json.RawMessage) string {
	switch {
	case len(bytes.TrimSpace(input)) == 0:
		return "not done: the call has no input: give a JSON object, {} if there is nothing to say"
	case !json.Valid(input):
		return "not done: the input is not valid JSON, perhaps cut off: make the call again"
	case bytes.TrimSpace(input)[0] != '{':
		return "not done: the input must be a JSON object"
	}
	return ""
}
