package healer

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

//go:embed chat.tmpl
var chatText string

var chatTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("chat").Parse(chatText)) })

// Bounds of what a turn is told of the past.
const (
	toldBefore  = 200 << 10 // of the conversation, in bytes
	toldResult  = 4 << 10   // of an earlier call's result
	toldAttempt = 24 << 10  // of the healer's attempts
)

// transcript is what the model is told: the conversation so far, the evidence
// as it is now with what the healer tried, and what the operator says.
func (t *chatTurn) transcript(ctx context.Context) (agent.Transcript, error) {
	ev, err := t.gather(ctx)
	if err != nil {
		return agent.Transcript{}, err
	}
	var past []engine.Message
	var tried string
	err = t.Store.View(ctx, func(tx *store.Tx) (err error) {
		if past, err = tx.Messages(engine.MessageQuery{Sandbox: t.heal.sb.ID, Limit: 1000}); err != nil {
			return err
		}
		tried, err = triedWords(tx, t.heal.sb)
		return err
	})
	if err != nil {
		return agent.Transcript{}, err
	}
	list := parts(ev, nil)
	if tried != "" {
		list = append(list, part{"what the healer tried last", neutral(clean(tried))})
	}
	var system, now strings.Builder
	app := ev.Spec.App
	err = chatTemplate().ExecuteTemplate(&system, "chatSystem", nil)
	if err == nil {
		err = chatTemplate().ExecuteTemplate(&now, "chatNow", map[string]any{
			"Name": line(ev.Name, 100), "Mark": rand.Text()[:16], "Parts": list, "Said": t.said.Text,
			"Command": line(app.Command, 1000), "Health": line(app.Health, 500), "Install": line(app.Install, 1000),
			"Protected": line(strings.Join(ev.Spec.Heal.Protected, ", "), 1000),
		})
	}
	if err != nil {
		return agent.Transcript{}, fmt.Errorf("write the brief: %w", err)
	}
	script := agent.Transcript{System: system.String(), Messages: retold(past, t.said)}
	add(&script.Messages, agent.Message{Role: agent.User, Text: t.redact(now.String())})
	return script, nil
}

// triedWords is the last run of a sandbox in words: its attempts, and each call
// with the first line of its result.
func triedWords(tx *store.Tx, sb engine.Sandbox) (string, error) {
	if sb.Run == "" {
		return "", nil
	}
	run, err := tx.Run(sb.Run)
	if err != nil {
		return "", ignoreGone(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "run %s, %s: %s\nit ended: %s\n%s\n", run.ID, run.Started.Format("2006-01-02 15:04"), run.Cause, orElse(string(run.Outcome), "not yet"), run.Summary)
	attempts, err := tx.Attempts(run.ID)
	if err != nil {
		return "", err
	}
	for _, a := range attempts {
		fmt.Fprintf(&b, "\nattempt %d (0 are the playbooks): %s\nwhy: %s\nit did: %s\n", a.Number, a.Outcome, a.Why, a.Summary)
		steps, err := tx.Steps(run.ID, a.Number)
		if err != nil {
			return "", err
		}
		for _, st := range steps {
			first, _, _ := strings.Cut(strings.TrimSpace(st.Text), "\n")
			fmt.Fprintf(&b, "- %s %s %s: %s: %s\n", st.Kind, st.Name, st.Argument, st.State, line(first, maxCause))
		}
	}
	return bound(b.String(), toldAttempt), nil
}

// retold is the conversation so far, from the last fresh start on and without
// the turn that is to be answered, as the model's own turns. It is pure.
func retold(past []engine.Message, now engine.Message) []agent.Message {
	from, size := len(past), 0
	for i := len(past) - 1; i >= 0; i-- {
		m := past[i]
		size += len(m.Text) + len(m.Input)
		if m.Number > now.Number || m.Turn == now.ID {
			if m.ID == now.ID && m.Fresh {
				return nil
			}
			continue
		}
		if size > toldBefore {
			break
		}
		if m.Kind == engine.MessageSaid {
			from = i
			if m.Fresh {
				break
			}
		}
	}
	var list []agent.Message
	for _, m := range past[from:] {
		if m.Number < now.Number && m.Turn != now.ID {
			retell(&list, m)
		}
	}
	if len(list) > 0 && list[0].Role != agent.User {
		list = list[1:]
	}
	return list
}

// retell adds one message of the past.
func retell(list *[]agent.Message, m engine.Message) {
	switch m.Kind {
	case engine.MessageSaid:
		add(list, agent.Message{Role: agent.User, Text: m.Text})
	case engine.MessageAnswer:
		add(list, agent.Message{Role: agent.Assistant, Text: m.Text})
	case engine.MessageTool:
		if len(m.Input) == 0 || len(*list) == 0 {
			return
		}
		id := fmt.Sprintf("call_%d", m.Number)
		add(list, agent.Message{Role: agent.Assistant, Calls: []agent.Call{{ID: id, Name: m.Tool, Input: m.Input}}})
		text := orElse(bound(m.Text, toldResult), "("+string(m.State)+")")
		add(list, agent.Message{Role: agent.User, Results: []agent.Result{{ID: id, Text: text, Error: m.State != engine.MessageDone}}})
	}
}

// add appends a message, joined to the last one if both are of one side. What
// is empty is left out: the provider refuses it.
func add(list *[]agent.Message, m agent.Message) {
	if strings.TrimSpace(m.Text) == "" && len(m.Calls)+len(m.Results) == 0 {
		return
	}
	if n := len(*list); n > 0 && (*list)[n-1].Role == m.Role {
		last := &(*list)[n-1]
		last.Text = strings.TrimSpace(last.Text + "\n\n" + m.Text)
		last.Calls, last.Results = append(last.Calls, m.Calls...), append(last.Results, m.Results...)
		return
	}
	*list = append(*list, m)
}
