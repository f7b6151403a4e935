package healer

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"text/template"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/healer/playbook"
)

//go:embed brief.tmpl
var briefText string

var briefTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("brief").Parse(briefText)) })

// part is one fenced part of the evidence.
type part struct{ Name, Text string }

// brief is what an attempt begins with: the system prompt, which never
// changes, and one message with everything that is known. tried are the
// earlier attempts of this run.
func (h *heal) brief(ev playbook.Evidence, tried []string) (agent.Transcript, error) {
	of := h.sb.Spec.Heal.Attempts
	if h.run.Plan {
		of = 1
	}
	t, err := makeBrief(ev, tried, of, rand.Text()[:16])
	if h.run.Plan {
		t.System += planRules
	}
	for i := range t.Messages {
		t.Messages[i].Text = h.redact(t.Messages[i].Text)
	}
	return t, err
}

// makeBrief is pure. mark fences what the sandbox said: it is new for each
// brief, so nothing in the sandbox can close the fence.
func makeBrief(ev playbook.Evidence, tried []string, of int, mark string) (agent.Transcript, error) {
	var system, first strings.Builder
	if err := briefTemplate().ExecuteTemplate(&system, "system", nil); err != nil {
		return agent.Transcript{}, fmt.Errorf("write the brief: %w", err)
	}
	app := ev.Spec.App
	err := briefTemplate().ExecuteTemplate(&first, "brief", map[string]any{
		"Name": line(ev.Name, 100), "Attempt": len(tried) + 1, "Of": of, "Mark": mark,
		"Command": line(app.Command, 1000), "Health": line(app.Health, 500), "Install": line(app.Install, 1000),
		"Check": line(app.Check, 1000), "Protected": line(strings.Join(ev.Spec.Heal.Protected, ", "), 1000),
		"Parts": parts(ev, tried),
	})
	if err != nil {
		return agent.Transcript{}, fmt.Errorf("write the brief: %w", err)
	}
	return agent.Transcript{
		System:   system.String(),
		Messages: []agent.Message{{Role: agent.User, Text: first.String()}},
	}, nil
}

func parts(ev playbook.Evidence, tried []string) []part {
	list := []part{
		{"what was seen", strings.Join(facts(ev), "\n")},
		{"log since the last start", orElse(ev.Log, "(nothing was written)")},
		{"files", strings.Join(ev.Tree, "\n")},
	}
	if len(ev.Changed) > 0 {
		list = append(list, part{"changes since it was last good", changedWords(ev.Changed) + "\n" + ev.Patch})
	}
	for i, t := range tried {
		list = append(list, part{fmt.Sprintf("attempt %d, which failed", i+1), t})
	}
	if len(tried) > 0 {
		list = append(list, part{"note", "What earlier attempts changed is still in the workspace. Don't repeat what failed: look for another cause."})
	}
	for i := range list {
		list[i].Text = neutral(clean(list[i].Text))
	}
	return list
}

func changedWords(changes []engine.Change) string {
	var b strings.Builder
	for i, c := range changes {
		if i == 100 {
			fmt.Fprintf(&b, "… and %d more\n", len(changes)-i)
			break
		}
		fmt.Fprintf(&b, "%s %s\n", c.Status, line(c.Path, maxArgument))
	}
	return b.String()
}

// roleMark is what could read as the start of somebody's turn, or as markup
// that means something to a model.
var roleMark = lazily(`(?im)\b(?:human|assistant)\s*:|^\s*(?:system|user)\s*:|` +
	`</?\s*(?:system|human|assistant|user|instructions?|function_calls|antml|tool_use|tool_result)[^>\n]{0,80}>|` +
	`<\|[^|\n]{0,80}\|>|\[/?INST\]`)

// neutral breaks what looks like a turn of a conversation, so that it reads as
// the text that it is.
func neutral(s string) string {
	return roleMark().ReplaceAllStringFunc(s, func(m string) string {
		m = strings.NewReplacer("<", "‹", ">", "›", "[", "(", "]", ")").Replace(m)
		return strings.Replace(m, ":", "\u2236", 1)
	})
}

// lazily compiles an expression at its first use: this package is in a program
// that starts for every process of a sandbox and for every command line.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
