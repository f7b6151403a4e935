package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"sbx/engine"
	"sbx/engine/agent/agenttest"
)

// trouble is a way in which a model fails its sandbox, which bears its name,
// and what must become of both.
type trouble struct {
	name    string
	turns   []agenttest.Turn
	outcome engine.Outcome
	exit    int    // of a second sbx heal; 0: it is healthy by then
	words   string // in the story and, where it is broken, in show
	next    string // in what to do next
	most    int    // requests of a run; 0: 12
}

const (
	broken = "def do_GET(self)\n" // what the fault leaves
	fixed  = "def do_GET(self):\n"
)

func call(name string, in any) agenttest.Call {
	b, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return agenttest.Call{Name: name, Input: b}
}

func edit(old, to string) agenttest.Call {
	return call("edit", map[string]string{"path": "server.py", "old": old, "new": to})
}

func readFile() agenttest.Call { return call("read", map[string]string{"path": "server.py"}) }

// repair is the turn that helps, and the last word after it.
func repair() []agenttest.Turn {
	return []agenttest.Turn{
		{Text: "The colon is missing.", Calls: []agenttest.Call{readFile(), edit(broken, fixed), call("restart", struct{}{})}},
		{Text: "Cause: a colon was missing\nFix: put it back"},
	}
}

// harm is a turn that makes it worse: what a rollback must undo.
func harm() agenttest.Turn {
	return agenttest.Turn{Text: "I'll guess.", Calls: []agenttest.Call{
		readFile(),
		edit("import os\n", "import os\nimport sys\n"),
		call("write", map[string]string{"path": "guess/deep.txt", "content": "a guess\n"}),
	}}
}

func status(code int, kind, message string, headers ...string) agenttest.Turn {
	f := &agenttest.Failure{Kind: agenttest.Status, Status: code, Type: kind, Message: message, Headers: map[string]string{}}
	for i := 0; i+1 < len(headers); i += 2 {
		f.Headers[headers[i]] = headers[i+1]
	}
	return agenttest.Turn{Fail: f}
}

func stream(kind agenttest.FailureKind, after int) agenttest.Turn {
	return agenttest.Turn{Text: "Let me see what", Fail: &agenttest.Failure{Kind: kind, After: after}}
}

func always(t agenttest.Turn) agenttest.Turn {
	t.Repeat = true
	return t
}

// worse is trouble that never ends, after a turn that did harm.
func worse(name, words, next string, exit int, turns ...agenttest.Turn) trouble {
	outcome := engine.NotHealed
	if exit == exitBudget {
		outcome = engine.OverBudget
	}
	return trouble{name: name, turns: append([]agenttest.Turn{harm()}, turns...), outcome: outcome, exit: exit, words: words, next: next}
}

// passing is trouble after which the model does its work.
func passing(name, words string, turns ...agenttest.Turn) trouble {
	return trouble{name: name, turns: append(turns, repair()...), outcome: engine.Healed, words: words}
}

func troubles() []trouble {
	html := agenttest.Turn{Fail: &agenttest.Failure{
		Kind: agenttest.Status, Status: 502, Body: "<html><h1>Bad Gateway</h1></html>", Headers: map[string]string{"Content-Type": "text/html"},
	}}
	look := agenttest.Turn{Calls: []agenttest.Call{readFile()}}
	wander := agenttest.Turn{}
	for range 10 {
		wander.Calls = append(wander.Calls, look.Calls[0], call("list", struct{}{}))
	}
	dear := agenttest.Turn{Text: "Costly.", Calls: look.Calls, Usage: &agenttest.Usage{Input: 6_000_000, Output: 10}}
	away := "when the provider answers again"
	list := []trouble{
		worse("key-refused", "refused the key", "check the key: ANTHROPIC_API_KEY", exitBroken, always(status(401, "authentication_error", "invalid x-api-key"))),
		worse("key-may-not", "may not use claude-sonnet-5-5: not yours", "model.name", exitBroken, always(status(403, "permission_error", "not yours"))),
		worse("model-unknown", "there is no model claude-sonnet-5-5", "model.name", exitBroken, always(status(404, "not_found_error", "model: claude-sonnet-5-5"))),
		worse("request-refused", "the model refused the request: no such beta", "sbx heal request-refused", exitBroken, always(status(400, "invalid_request_error", "no such beta"))),
		worse("money-spent", "spend limit is reached", "raise the provider's spend limit", exitBroken, always(status(429, "rate_limit_error", "monthly limit"))),
		worse("server-failing", "server failed: internal oops", away, exitBroken, always(status(500, "api_error", "internal oops"))),
		worse("proxy-failing", "502 with a page that isn't its own", away, exitBroken, always(html)),
		worse("all-silent", "the model has been silent for 2s", away, exitBroken, always(stream(agenttest.Silence, 3))),
		worse("only-pings", "the model's answer took longer than 3s", away, exitBroken, always(stream(agenttest.Pings, 3))),
		worse("same-again", "looping", "sbx logs --healer same-again", exitBroken, always(look)),
		worse("all-empty", "Not healed in 3 attempts", "sbx heal all-empty", exitBroken, always(agenttest.Turn{})),
		worse("too-dear", "Over the budget: ", "sbx heal too-dear", exitBudget, always(dear)),
		passing("rate-limited", "attempt 1: healed", status(429, "rate_limit_error", "slow down", "Retry-After", "1")),
		passing("over-loaded", "attempt 1: healed", status(529, "overloaded_error", "Overloaded"), status(529, "overloaded_error", "Overloaded")),
		passing("cut-short", "attempt 1: healed", stream(agenttest.Cut, 5), stream(agenttest.Reset, 5), stream(agenttest.Garbage, 5)),
		passing("half-a-call", "the input is not valid JSON", agenttest.Turn{Calls: []agenttest.Call{{Name: "write", Raw: `{"path": "server.py", "cont`}}}),
		passing("tool-unknown", `there is no tool called "summon"`, agenttest.Turn{Calls: []agenttest.Call{call("summon", struct{}{})}}),
	}
	lost := worse("out-of-steps", "out of steps", "sbx logs --healer out-of-steps", exitBroken, always(wander))
	lost.most = 100
	return append(list, lost)
}

// patient is a workspace whose only fault is the one that [world.infect] makes.
func (w *world) patient() (dir string) {
	w.t.Helper()
	dir = w.t.TempDir()
	w.write(dir, "sbx.toml", `[app]
command = "exec python3 server.py"
health = "/health"
start_timeout = "200s"
max_restarts = 0
`)
	w.write(dir, "server.py", `import http.server
import os


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`)
	w.write(dir, "notes.md", "the user's own\n")
	return dir
}

const infection = "sed -i 's/def do_GET(self):/def do_GET(self)/' server.py"

// files are the hashes of all that is in a workspace.
func (w *world) files(name string) string {
	w.t.Helper()
	return w.ok("exec", name, "--", "find . -type f | sort | xargs -d '\\n' sha256sum")
}

func (w *world) shown(name string) showJSON {
	w.t.Helper()
	var s showJSON
	w.read(&s, "show", name)
	return s
}

// in is the world of a subtest.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t = t
	return &sub
}

// TestModelsTroubleStaysItsSandboxes has every kind of trouble with the model
// at once in one fleet, and a healthy sandbox in the middle of it.
func TestModelsTroubleStaysItsSandboxes(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3", "git")
	var script agenttest.Script
	cases := troubles()
	for _, c := range cases {
		for _, turn := range c.turns {
			turn.When = "The sandbox " + c.name + " needs repair"
			script.Turns = append(script.Turns, turn)
		}
	}
	w := newWorld(t, &script, "SBX_MODEL_IDLE_TIMEOUT=2s", "SBX_MODEL_TURN_TIMEOUT=3s", "SBX_MODEL_RETRY=4s", "SBX_HEAL_MAX_MODEL_RUNS=6",
		// Each is to have its own trouble: in the world they would be one outage and one incident.
		"SBX_MODEL_BREAKER=0", "SBX_HEAL_INCIDENT_SIZE=1000")
	source := w.patient()
	w.ok("create", "--from", source, "--name", "bystander")
	before := w.shown("bystander")
	files := w.files("bystander")

	var all sync.WaitGroup
	places := make(chan struct{}, 6)
	for _, c := range cases {
		all.Add(1)
		go func() {
			defer all.Done()
			places <- struct{}{}
			defer func() { <-places }()
			t.Run(c.name, func(t *testing.T) { w.in(t).suffer(source, c) })
		}()
	}
	all.Wait()

	after := w.shown("bystander")
	if len(after.Attempts) != 0 || after.Run != nil || after.Signal != nil {
		t.Errorf("the healthy sandbox was healed: %+v", after)
	}
	if !after.Sandbox.HealthChanged.Equal(before.Sandbox.HealthChanged) || after.Processes[0].PID != before.Processes[0].PID {
		t.Errorf("the healthy sandbox was touched: %+v, was %+v", after, before)
	}
	if now := w.files("bystander"); now != files {
		t.Errorf("its files are\n%s\nwere\n%s", now, files)
	}
}

// suffer breaks a sandbox, sees its heal through, and asks for another.
func (w *world) suffer(source string, c trouble) {
	t := w.t
	w.ok("create", "--from", source, "--name", c.name)
	w.ok("exec", c.name, "--", infection)
	was := w.files(c.name)
	asked := w.asked(c.name)
	r := w.run("restart", c.name)
	if r.code != c.exit && !(c.exit == exitBudget && r.code == exitBroken) {
		t.Errorf("restart: exit %d, want %d\n%s%s", r.code, c.exit, r.out, r.err)
	}
	w.judgeTrouble(c, was)
	most := c.most
	if most == 0 {
		most = 12
	}
	if n := w.asked(c.name) - asked; n == 0 || n > most {
		t.Errorf("the model was asked %d times, want 1 to %d", n, most)
	}
	r = w.run("heal", c.name)
	if r.code != c.exit {
		t.Errorf("heal: exit %d, want %d\n%s%s", r.code, c.exit, r.out, r.err)
	}
	if c.exit == 0 && !strings.Contains(r.out, "nothing to heal") {
		t.Errorf("a healthy sandbox was healed: %s", r.out)
	}
	w.judgeTrouble(c, was)
}

// judgeTrouble holds the last run against what the trouble must lead to.
func (w *world) judgeTrouble(c trouble, was string) {
	t := w.t
	t.Helper()
	s := w.shown(c.name)
	if s.Run == nil || s.Run.Open() {
		t.Fatalf("no run has ended: %+v", s.Run)
	}
	story := w.ok("logs", "--healer", c.name, "--full")
	if s.Run.Outcome != c.outcome {
		t.Errorf("outcome %q, want %q", s.Run.Outcome, c.outcome)
	}
	if !strings.Contains(story, c.words) {
		t.Errorf("the story lacks %q:\n%s", c.words, story)
	}
	if c.outcome == engine.Healed {
		if s.Sandbox.Health != engine.Ready || s.Run.FixedBy != "model" {
			t.Errorf("it is %s, fixed by %q:\n%s", s.Sandbox.Health, s.Run.FixedBy, story)
		}
		return
	}
	if s.Sandbox.Health != engine.Broken || s.Sandbox.Reason == "" {
		t.Errorf("it is %s (%s), want broken", s.Sandbox.Health, s.Sandbox.Reason)
	}
	show := w.ok("show", c.name)
	for _, want := range []string{c.words, c.next} {
		if !strings.Contains(show, want) {
			t.Errorf("show lacks %q:\n%s", want, show)
		}
	}
	if strings.Contains(story+show, "test-key-of-nobody") {
		t.Error("the key can be read in the story")
	}
	if now := w.files(c.name); now != was {
		t.Errorf("the rollback left\n%s\nwas\n%s", now, was)
	}
	if !strings.Contains(story, "put back") {
		t.Errorf("no rollback was told, so there was nothing to roll back:\n%s", story)
	}
}

// asked is how many requests came for a sandbox.
func (w *world) asked(name string) (n int) {
	for _, r := range w.reqs() {
		if strings.Contains(r.Text, fmt.Sprintf("The sandbox %s needs repair", name)) {
			n++
		}
	}
	return n
}
