// Package agent is a model that uses tools: heals and chats share it.
//
// The one rule: a step is told before and after it is taken, a tool call is
// never executed unless the whole turn that made it arrived, and the calls of a
// turn run one after another in the order the model gave.
package agent

import (
	"context"
	"time"

	"sbx/engine"
)

// Agent is a model with tools and bounds. Its fields are set before [Agent.Run]
// and not after; one Agent may run many conversations at once if its functions
// allow that.
type Agent struct {
	Model  Model
	Tools  []Tool
	Budget Budget
	// Record writes a step down: when it begins (StepRunning), while a thought
	// grows, and when it ends. A step comes with Number 0 the first time; what
	// Record returns is what it gets the next time, so that it numbers. An error
	// of Record ends the run: what can't be written down isn't done. nil: none.
	Record func(ctx context.Context, s engine.Step) (engine.Step, error)
	// Around wraps each call of a tool: it may look before and after, redact
	// the text, and say what changed in the workspace. nil: nothing around.
	Around func(ctx context.Context, c Call, do func() (string, error)) (text, diff string, err error)
	// Hear is asked before each request for words that came meanwhile from
	// whoever the work is for; they go into the conversation. nil: none come.
	Hear func(ctx context.Context) (string, error)
	// Waiting is told why the provider is waited for, and "" when it answers
	// again. nil: nobody is told.
	Waiting func(ctx context.Context, why string)
}

// Budget bounds a run. It is held against what was spent before each request
// and before each call. Zero means no bound, but for Retry.
type Budget struct {
	// Steps is how many tool calls may be made. A turn that goes on without a
	// call counts as one, so it bounds the requests too.
	Steps   int
	Tokens  int64
	Dollars float64
	// Retry is how long to wait in all for a provider that is unavailable,
	// failed requests included. Zero: the first such failure is final.
	Retry time.Duration
}

// EndReason is why a run ended.
type EndReason string

// Why a run ends.
const (
	Done       EndReason = "done"         // the model had no more to do
	OutOfSteps EndReason = "out of steps" // Budget.Steps
	OverBudget EndReason = "over budget"  // Budget.Tokens or Budget.Dollars
	Refused    EndReason = "refused"      // the model declined
	CutShort   EndReason = "cut short"    // its answers hit the token limit again and again
	Looping    EndReason = "looping"      // the same call three times without effect
)

// End is how a run ended.
type End struct {
	Reason EndReason
	// Text is the last thing that the model said.
	Text  string
	Spent engine.Spent
	// Transcript is the conversation with all that was added. Every call in it
	// has its result, so that it can be gone on with.
	Transcript Transcript
}

// Run goes on with t until the model is done or a bound is reached. The error
// is ctx's, Record's, a tool's [Fatal] one, or the model's after retries (its
// code says which kind); End then holds what was spent and said until there.
func (a Agent) Run(ctx context.Context, t Transcript) (End, error) {
	r := newRun(a, t)
	reason, err := r.loop(ctx)
	return End{Reason: reason, Text: r.text, Spent: r.spent, Transcript: r.transcript}, err
}
