package agent

import (
	"context"
	"strings"
	"time"

	"sbx/engine"
)

// thoughtEvery is how often a growing thought is written down at most: fast
// enough to read along, slow enough not to fill the journal with tokens.
const thoughtEvery = 250 * time.Millisecond

// thought is the step that a model's words become as they arrive.
type thought struct {
	r    *run
	step engine.Step
	text strings.Builder
	told time.Time // when it was written down last; zero: not yet
	err  error     // Record's
}

// grow takes more words.
func (th *thought) grow(ctx context.Context, words string) {
	if th.err != nil || words == "" {
		return
	}
	th.text.WriteString(words)
	now := time.Now()
	if now.Sub(th.told) < thoughtEvery || strings.TrimSpace(th.text.String()) == "" {
		return
	}
	th.tell(ctx, engine.StepRunning, now)
}

// end takes the words of the whole turn and closes the step, if there is any.
func (th *thought) end(ctx context.Context, words string) error {
	if words != th.text.String() {
		th.text.Reset()
		th.text.WriteString(words)
	}
	if th.err == nil && (!th.told.IsZero() || strings.TrimSpace(words) != "") {
		th.tell(ctx, engine.StepOK, time.Now())
	}
	return th.err
}

// drop closes the step of a turn that did not arrive whole.
func (th *thought) drop(ctx context.Context, why error) error {
	if th.err == nil && !th.told.IsZero() {
		th.text.WriteString("\n(cut off: " + why.Error() + ")")
		th.tell(ctx, engine.StepFailed, time.Now())
	}
	return th.err
}

func (th *thought) tell(ctx context.Context, state engine.StepState, now time.Time) {
	if th.told.IsZero() {
		th.step = engine.Step{Kind: engine.StepThought, Started: now.UTC()}
	}
	th.told = now
	th.step.State = state
	th.step.Text = Bound(strings.TrimSpace(th.text.String()), MaxResult)
	if state != engine.StepRunning {
		th.step.Ended = now.UTC()
		th.err = th.r.recordEnd(ctx, th.step)
		return
	}
	th.step, th.err = th.r.record(ctx, th.step)
}
