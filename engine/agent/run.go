package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"sbx/engine"
)

// The bounds of one run that are nobody's to set.
const (
	maxUnfinished = 3  // turns in a row that were cut or paused
	maxNudges     = 1  // turns in a row that said and did nothing
	maxCalls      = 64 // calls in one turn
	maxSame       = 3  // equal calls in a row with equal results
)

// run is one conversation under way.
//
//	┌──► budget ──► ask ──► turn ──► calls, one by one ──► results ─┐
//	│                        │                                      │
//	│                        └──► done, refused, cut short          │
//	└───────────────────────────────────────────────────────────────┘
type run struct {
	Agent
	tools      map[string]Tool
	transcript Transcript
	spent      engine.Spent
	text       string        // the model's last words
	away       time.Duration // waited for the provider so far
	waiting    bool          // Waiting was told why
	unfinished int
	nudges     int
	same       repetition
	ids        idBook
}

func newRun(a Agent, t Transcript) *run {
	r := &run{Agent: a, tools: make(map[string]Tool, len(a.Tools)), transcript: t}
	// The caller's messages stay the caller's.
	r.transcript.Messages = slices.Clone(t.Messages)
	r.ids = newIDBook(t.Messages)
	for _, tool := range a.Tools {
		r.tools[tool.Name()] = tool
	}
	return r
}

func (r *run) loop(ctx context.Context) (EndReason, error) {
	for {
		if reason := r.over(); reason != "" {
			return reason, nil
		}
		if err := r.hear(ctx); err != nil {
			return "", err
		}
		turn, err := r.ask(ctx)
		if err != nil {
			return "", err
		}
		if reason, err := r.take(ctx, turn); reason != "" || err != nil {
			return reason, err
		}
	}
}

// hear adds what came meanwhile to what the model is told next.
func (r *run) hear(ctx context.Context) error {
	if r.Hear == nil {
		return nil
	}
	words, err := r.Hear(ctx)
	if strings.TrimSpace(words) != "" && err == nil {
		r.add(Message{Role: User, Text: words})
	}
	return err
}

// over is why nothing more may be spent, or "".
func (r *run) over() EndReason {
	b := r.Budget
	switch {
	case b.Steps > 0 && r.spent.Steps >= b.Steps:
		return OutOfSteps
	case b.Tokens > 0 && r.spent.Tokens() >= b.Tokens, b.Dollars > 0 && r.spent.Dollars >= b.Dollars:
		return OverBudget
	}
	return ""
}

// take does what a whole turn asks for. It returns "" to go on.
func (r *run) take(ctx context.Context, turn Turn) (EndReason, error) {
	if words := strings.TrimSpace(turn.Message.Text); words != "" {
		r.text = words
	}
	empty := strings.TrimSpace(turn.Message.Text) == "" && len(turn.Message.Calls) == 0
	switch {
	case turn.Stop == Refusal:
		// The provider asks not to send a refused turn back: it stays out.
		return Refused, nil
	case turn.Stop == ContextFull:
		return "", r.overflow(nil)
	case turn.Stop == MaxTokens:
		return r.takeCut(turn), nil
	case len(turn.Message.Calls) > 0:
		r.unfinished, r.nudges = 0, 0
		return r.takeCalls(ctx, turn.Message)
	case turn.Stop == Paused && !empty:
		return r.takePaused(turn.Message), nil
	case empty || turn.Stop == ToolUse:
		return r.takeNothing(turn.Message), nil
	}
	r.add(turn.Message)
	return Done, nil
}

// takeCut answers a turn that ended at the token limit: nothing of it is done,
// since the last call may lack its end and still read as a whole one.
func (r *run) takeCut(turn Turn) EndReason {
	r.spent.Steps += max(1, len(turn.Message.Calls))
	if r.unfinished++; r.unfinished >= maxUnfinished {
		return CutShort
	}
	const why = "your answer hit the token limit before it ended, so nothing of it was done: " +
		"go on with one short call at a time, and write long files in parts"
	m, _ := r.ids.tidy(turn.Message)
	r.add(m)
	reply := Message{Role: User}
	for _, c := range m.Calls {
		reply.Results = append(reply.Results, Result{ID: c.ID, Text: why, Error: true})
	}
	if len(reply.Results) == 0 {
		reply.Text = why
	}
	r.add(reply)
	return ""
}

// takePaused sends a paused turn back as it is: the model goes on from there.
func (r *run) takePaused(m Message) EndReason {
	r.spent.Steps++
	if r.unfinished++; r.unfinished >= maxUnfinished {
		return CutShort
	}
	r.add(m)
	return ""
}

// takeNothing asks once more of a model that neither said nor did anything.
func (r *run) takeNothing(m Message) EndReason {
	r.spent.Steps++
	r.add(m)
	if r.nudges++; r.nudges > maxNudges {
		return Done
	}
	r.add(Message{Role: User, Text: "There was nothing in your answer. Go on with a tool call, " +
		"or say in words what you found and did, and that you are done."})
	return ""
}

// add appends a message. An assistant's empty one is left out, since the API
// refuses it; the next user message then joins the one before.
func (r *run) add(m Message) {
	all := &r.transcript.Messages
	if m.Role == "" {
		m.Role = Assistant
	}
	if m.Role == Assistant && strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 {
		return
	}
	last := len(*all) - 1
	if m.Role == User && last >= 0 && (*all)[last].Role == User {
		(*all)[last] = join((*all)[last], m)
		return
	}
	*all = append(*all, m)
}

func join(a, b Message) Message {
	a.Results = append(slices.Clip(a.Results), b.Results...)
	a.Text = strings.TrimSpace(a.Text + "\n\n" + b.Text)
	return a
}
