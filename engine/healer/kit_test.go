package healer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/engine/driver"
)

// workshop is a kit over a box, without a run around it.
func workshop(b *box) *kit {
	h := &heal{
		loop: &loop{Healer: &Healer{Redact: func(s string) string { return strings.ReplaceAll(s, "sk-secret", "***") }}, p: DefaultPolicy()},
		box:  b, sb: engine.Sandbox{Spec: engine.Spec{Heal: engine.HealSpec{Protected: []string{"engine", "conf/*.toml"}}}},
	}
	h.track = newTrack(b, "")
	tree, err := b.Save(context.Background(), "")
	if err != nil {
		panic(err)
	}
	h.track.base, h.track.last = tree, tree
	return newKit(h)
}

// use calls a tool as an agent does.
func use(k *kit, name, input string) (string, error) {
	c := agent.Call{Name: name, Input: json.RawMessage(input)}
	text, _, err := k.around(context.Background(), c, func() (string, error) {
		return k.named(name).Call(context.Background(), c.Input)
	})
	return text, err
}

func TestToolsRefuseBadInput(t *testing.T) {
	b := newBox(map[string]string{"a.txt": "one", "link": "link:engine", "lib/x.js": "x", "engine/core.js": "c"})
	k := workshop(b)
	if _, err := use(k, "read", `{"path":"a.txt"}`); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(b.files)
	for _, c := range []struct{ tool, input, says string }{
		{"read", `{`, "input"},
		{"read", `{"path":"nothing"}`, "no file"},
		{"read", `{"file":"a.txt"}`, "unknown field"},
		{"write", `{"path":"a.txt"}`, "content is missing"},
		{"write", `{"path":"","content":"x"}`, "path is empty"},
		{"write", `{"path":"/etc/passwd","content":"x"}`, "relative"},
		{"write", `{"path":"../x","content":"x"}`, "outside"},
		{"write", `{"path":"a/../../x","content":"x"}`, "outside"},
		{"write", `{"path":".","content":"x"}`, "path of a file"},
		{"write", `{"path":"engine/core.js","content":"x"}`, "protected"},
		{"write", `{"path":"./engine//new.js","content":"x"}`, "protected"},
		{"write", `{"path":"conf/a.toml","content":"x"}`, "protected"},
		{"write", `{"path":"sub/.git/config","content":"x"}`, "protected"},
		{"write", `{"path":".GIT/config","content":"x"}`, "protected"},
		{"write", `{"path":"sbx.toml","content":"x"}`, "sbx's own"},
		{"write", `{"path":"link/core.js","content":"x"}`, "symbolic link"},
		{"edit", `{"path":"a.txt","old":"","new":"x"}`, "old and new"},
		{"edit", `{"path":"a.txt","old":"two","new":"x"}`, "does not contain"},
		{"edit", `{"path":"lib/x.js","old":"x","new":"y"}`, "read it first"},
		{"run", `{"command":"  "}`, "a command is needed"},
		{"run", `{"command":7}`, "input"},
		{"search", `{"pattern":"("}`, "pattern"},
		{"install", `{}`, "no install command"},
		{"wait", `{"seconds":0}`, "1 to 60"},
		{"probe", `{"path":"http://elsewhere/"}`, "must begin with /"},
	} {
		if text, err := use(k, c.tool, c.input); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %q, %v; want an error that says %q", c.tool, c.input, text, err, c.says)
		}
	}
	if after := fmt.Sprint(b.files); after != before {
		t.Errorf("files were changed: %s", after)
	}
}

func TestCommandsOfTheModelAreConfinedBoundedAndClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(map[string]string{"a.txt": "one"})
		k := workshop(b)
		b.commands["flood"] = func(context.Context, *box) (string, int) {
			return "begin\x1b[31m sk-secret" + strings.Repeat("x", 5<<20) + "the end", 0
		}
		text, err := use(k, "run", `{"command":"flood"}`)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > maxOutput || !strings.HasPrefix(text, "begin ***") || !strings.HasSuffix(text, "the end") || !strings.Contains(text, "left out") {
			t.Errorf("%d bytes: %q…%q", len(text), text[:20], text[len(text)-20:])
		}
		cmd := b.ran[0]
		if cmd.Profile != driver.ProfileAgent || cmd.Network || !cmp.Equal(cmd.Protected, []string{"engine", "conf/*.toml"}) {
			t.Errorf("it ran as %+v", cmd)
		}

		b.commands["hang"] = func(ctx context.Context, _ *box) (string, int) { <-ctx.Done(); return "so far", 143 }
		began := time.Now()
		text, err = use(k, "run", `{"command":"hang","timeout":86400}`)
		if err == nil || text != "so far" || time.Since(began) != 10*time.Minute || b.live != 0 {
			t.Errorf("after %s: %q, %v, %d alive; want it killed after 10m", time.Since(began), text, err, b.live)
		}
		if text, err = use(k, "run", `{"command":"nothing"}`); err == nil || !strings.Contains(text, "not found") {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestSearchListAndReadShowWhatIsThere(t *testing.T) {
	k := workshop(newBox(map[string]string{
		"src/a.js": "import x\nneedle one\n", "src/b.js": "needle\x00", "node_modules/x/i.js": "needle", "c.txt": "l1\nl2\nl3\n",
	}))
	for _, c := range []struct{ tool, input, want string }{
		{"search", `{"pattern":"need.e"}`, "src/a.js:2: needle one"},
		{"search", `{"pattern":"absent"}`, "no match in 3 files"},
		{"list", `{"path":"."}`, "c.txt (9 bytes)\nnode_modules/\nsrc/\n"},
		{"read", `{"path":"c.txt","from":2,"lines":1}`, "(lines 2 to 2 of 4)\nl2\n"},
		{"read", `{"path":"src/b.js"}`, "src/b.js is no text: 7 bytes"},
	} {
		got, err := use(k, c.tool, c.input)
		if err != nil || got != c.want {
			t.Errorf("%s %s: %q, %v; want %q", c.tool, c.input, got, err, c.want)
		}
	}
}

func TestSchemasAreJSON(t *testing.T) {
	var names []string
	for _, tool := range workshop(newBox(nil)).tools() {
		var schema map[string]any
		if err := json.Unmarshal(tool.Schema(), &schema); err != nil || schema["type"] != "object" || tool.Description() == "" {
			t.Errorf("%s: %v", tool.Name(), err)
		}
		names = append(names, tool.Name())
	}
	want := []string{"read", "write", "edit", "list", "search", "run", "install", "probe", "restart", "wait"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestPipeKeepsBothEndsOfWhatIsWritten(t *testing.T) {
	for _, chunk := range []int{1, 3, 7, 100} {
		p := newPipe(20)
		all := "0123456789abcdefghijklmnopqrstuvwxyz"
		for rest := all; rest != ""; rest = rest[min(chunk, len(rest)):] {
			if _, err := p.Write([]byte(rest[:min(chunk, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if want := "0123456789\n… 16 bytes left out …\nqrstuvwxyz"; p.text() != want {
			t.Errorf("in pieces of %d: %q, want %q", chunk, p.text(), want)
		}
	}
}

func TestRunsChangesAreToldFromOthers(t *testing.T) {
	b := newBox(map[string]string{"a": "a0", "b": "b0", "c": "c0", "d": "d0"})
	k := workshop(b)
	tr := k.h.track
	ctx := t.Context()
	call := func(own string, fn func()) {
		t.Helper()
		if _, err := tr.around(ctx, own, func() error { fn(); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	call("", func() { b.put("a", "run"); b.put("new", "run"); b.remove("d") })
	b.put("b", "user")
	call("c", func() { b.put("c", "run"); b.put("user.txt", "saved in the same moment") })
	call("", func() { b.put("b", "run over user") })
	b.put("a", "user over run")
	back, kept, err := tr.undo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "c", "d", "new"}, back); diff != "" {
		t.Errorf("put back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	want := map[string]string{"a": "user over run", "b": "user", "c": "c0", "d": "d0", "user.txt": "saved in the same moment"}
	if diff := cmp.Diff(want, b.files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
