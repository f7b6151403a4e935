package agent

import (
	"slices"

	"sbx/engine"
)

// maxTranscript is how many bytes a conversation may have before old results
// are shortened: well under 200,000 tokens of code and logs.
const maxTranscript = 480 << 10

// What stays of old results when a conversation gets too long.
const (
	keptMessages = 6   // the latest messages stay whole
	keptResult   = 400 // bytes of an older result
)

// fit shortens a conversation that has grown too long to be sent.
func (r *run) fit() {
	if size(r.transcript) > maxTranscript {
		r.compact(keptMessages)
	}
}

// overflow makes room after the model said that the conversation is too long.
// It fails if there is no room to be made.
func (r *run) overflow(cause error) error {
	if r.compact(keptMessages) || r.compact(1) {
		return nil
	}
	return engine.Errorf(engine.Invalid, "the conversation is too long for the model: %w", tooLong(cause)).
		WithHint("a model with a larger context, or a smaller fault to repair, may help")
}

func tooLong(cause error) error {
	if cause == nil {
		return ErrTooLong
	}
	return cause
}

// compact shortens the results of all but the latest messages, and reports
// whether that changed anything. The caller's messages stay as they are.
func (r *run) compact(keep int) bool {
	changed := false
	for i := range max(0, len(r.transcript.Messages)-keep) {
		m := &r.transcript.Messages[i]
		m.Results = slices.Clone(m.Results)
		for j, res := range m.Results {
			if len(res.Text) > keptResult {
				m.Results[j].Text = Bound(res.Text, keptResult)
				changed = true
			}
		}
	}
	return changed
}

func size(t Transcript) int {
	n := len(t.System)
	for _, m := range t.Messages {
		n += len(m.Text) + len(m.Raw)
		for _, c := range m.Calls {
			if m.Raw == nil {
				n += len(c.Input)
			}
		}
		for _, res := range m.Results {
			n += len(res.Text)
		}
	}
	return n
}
