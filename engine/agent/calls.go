package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sbx/engine"
)

// takeCalls makes the calls of a whole turn one after another and answers every
// one of them, also when the run ends in between.
func (r *run) takeCalls(ctx context.Context, m Message) (EndReason, error) {
	m, faults := r.ids.tidy(m)
	r.add(m)
	reply := Message{Role: User}
	var reason EndReason
	var err error
	for i, c := range m.Calls {
		switch {
		case err != nil:
			reply.answer(c, "not done: it was cut off")
			continue
		case reason == "":
			reason = r.over()
		}
		if reason != "" {
			reply.answer(c, "not done: the work ended here ("+string(reason)+")")
			continue
		}
		if i >= maxCalls {
			faults[i] = fmt.Sprintf("not done: a turn may make at most %d calls", maxCalls)
		}
		var res Result
		if res, reason, err = r.call(ctx, c, faults[i]); err != nil {
			res = Result{ID: c.ID, Text: "not done: it was cut off", Error: true}
		}
		reply.Results = append(reply.Results, res)
	}
	r.add(reply)
	return reason, err
}

// answer adds a failed result.
func (m *Message) answer(c Call, text string) {
	m.Results = append(m.Results, Result{ID: c.ID, Text: text, Error: true})
}

// call makes one call and records it. fault, if it isn't "", is why it can't be
// made.
func (r *run) call(ctx context.Context, c Call, fault string) (Result, EndReason, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, "", err
	}
	r.spent.Steps++
	step, err := r.record(ctx, engine.Step{
		Kind: engine.StepTool, State: engine.StepRunning, Started: time.Now().UTC(),
		Name: oneLine(c.Name), Argument: argument(c.Input),
	})
	if err != nil {
		return Result{}, "", err
	}
	text, diff, callErr := r.do(ctx, c, fault)
	res := Result{ID: c.ID, Text: resultText(text, callErr), Error: callErr != nil}

	step.State, step.Text, step.Diff, step.Ended = engine.StepOK, res.Text, Bound(diff, MaxResult), time.Now().UTC()
	if res.Error {
		step.State = engine.StepFailed
	}
	if err := r.recordEnd(ctx, step); err != nil {
		return res, "", err
	}
	if fatal := (*fatalError)(nil); errors.As(callErr, &fatal) {
		return res, "", fatal.err
	}
	if err := ctx.Err(); err != nil {
		return res, "", err
	}
	if r.same.seen(c, res, diff) >= maxSame {
		return res, Looping, nil
	}
	return res, "", nil
}

// do calls the tool, if the call can be made at all.
func (r *run) do(ctx context.Context, c Call, fault string) (text, diff string, err error) {
	if fault != "" {
		return "", "", errors.New(fault)
	}
	tool, ok := r.tools[c.Name]
	if !ok {
		return "", "", fmt.Errorf("there is no tool called %q; there are: %s", oneLine(c.Name), r.toolNames())
	}
	if err := checkInput(tool.Schema(), c.Input); err != nil {
		return "", "", fmt.Errorf("the input of %s can't be used: %w", c.Name, err)
	}
	// A tool that panics has a bug; the sandbox's heal must not die of it.
	defer func() {
		if p := recover(); p != nil {
			text, diff, err = "", "", fmt.Errorf("the tool broke: %v", p)
		}
	}()
	do := func() (string, error) { return tool.Call(ctx, c.Input) }
	if r.Around != nil {
		return r.Around(ctx, c, do)
	}
	text, err = do()
	return text, "", err
}

func (r *run) toolNames() string {
	var b bytes.Buffer
	for i, t := range r.Tools {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.Name())
	}
	return b.String()
}

// resultText is what goes back to the model: never empty, bounded, valid.
func resultText(text string, err error) string {
	if err != nil {
		if text != "" {
			text += "\n"
		}
		text += "error: " + err.Error()
		if hint := engine.Hint(err); hint != "" {
			text += " (" + hint + ")"
		}
	}
	if text = Bound(text, MaxResult); text == "" {
		return "(no output)"
	}
	return text
}

// record writes a step down, if somebody does.
func (r *run) record(ctx context.Context, s engine.Step) (engine.Step, error) {
	if r.Record == nil {
		return s, nil
	}
	return r.Record(ctx, s)
}

// recordEnd writes the end of a step down even when ctx has ended: a step that
// began doesn't read as running for ever.
func (r *run) recordEnd(ctx context.Context, s engine.Step) error {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := r.record(ending, s)
	return err
}

// repetition notices a model that does the same again and again.
type repetition struct {
	key   string
	times int
}

// seen counts a call and how often it came in a row with the same result. What
// changed something had an effect and starts anew.
func (p *repetition) seen(c Call, res Result, diff string) int {
	var input bytes.Buffer
	if json.Compact(&input, c.Input) != nil {
		input.Write(c.Input)
	}
	key := c.Name + "\x00" + input.String() + "\x00" + res.Text
	if key != p.key || diff != "" {
		p.key, p.times = key, 0
	}
	p.times++
	return p.times
}
