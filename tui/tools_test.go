package tui

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// clipboard presses a key of the copy menu and returns what the terminal is
// asked to copy.
func clipboard(t *testing.T, d *desk, key string) string {
	t.Helper()
	d.press("y")
	_, cmd := d.Update(keyOf(key))
	text := ""
	var look func(tea.Cmd)
	look = func(cmd tea.Cmd) {
		if cmd == nil || text != "" {
			return
		}
		done := make(chan tea.Msg, 1)
		go func() { done <- cmd() }()
		select {
		case msg := <-done:
			if list, ok := msg.(tea.BatchMsg); ok {
				for _, c := range list {
					look(c)
				}
			} else if v := reflect.ValueOf(msg); v.IsValid() && v.Kind() == reflect.String {
				text = v.String()
			}
		case <-time.After(time.Millisecond):
		}
	}
	look(cmd)
	return text
}

func TestCopyGivesIdLinkAndCommand(t *testing.T) {
	onDesk(t, func(c *Config) { c.Where = "http://10.0.4.9:7443" }, func(d *desk) {
		sb, _ := d.w.sandbox(d.fleet.cursor)
		for key, want := range map[string]string{
			"y": string(sb.ID), "n": sb.Name, "u": "sbx://10.0.4.9:7443/" + string(sb.ID),
			"c": "sbx show " + sb.Name + " --engine http://10.0.4.9:7443",
		} {
			if got := clipboard(t, d, key); got != want {
				t.Errorf("y %s copies %q, not %q", key, got, want)
			}
		}
		d.press("2")
		if got := clipboard(t, d, "c"); !strings.HasPrefix(got, "sbx logs --healer ") {
			t.Errorf("on the healer's tab the command is %q", got)
		}
	})
}

func TestWhatIsCopiedFromALogCantActWherePasted(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("3")
		d.later(time.Second)
		if got := clipboard(t, d, "a"); got == "" || strings.ContainsAny(got, "\x1b\x07\u202e") {
			t.Errorf("copied %q", got)
		}
	})
}

func TestThePaletteDoesWhatIsCalledThat(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press(":")
		d.sees("acts on search-index")
		d.text("restart")
		d.press("enter")
		d.sees("Restart search-index in prod-eu?")
		d.press("esc")
		d.later(time.Second)
		d.press("esc", ":")
		d.text("sort by name")
		d.press("enter")
		if d.w.fleet.sort != byName {
			t.Errorf("the fleet is sorted by %v", d.w.fleet.sort)
		}
		d.press(":")
		d.text("theme sbx-light")
		d.press("enter")
		if d.w.bright.Theme != "sbx-light" {
			t.Errorf("the theme is %q", d.w.bright.Theme)
		}
		d.press(":")
		d.text("abort")
		d.sees("not now: no heal is under way")
	})
}

func TestEveryEntryOfThePaletteCanBeChosen(t *testing.T) {
	for _, tab := range []string{"0", "1", "2", "3"} {
		onDesk(t, nil, func(d *desk) {
			if tab != "0" {
				d.press(tab)
			}
			for i := range d.commandsHere() {
				list := d.commandsHere()
				if i >= len(list) || list[i].title == "suspend" {
					continue
				}
				d.run(list[i].run())
				d.fits()
				d.later(time.Second)
				d.overlay, d.choice = nil, Unasked
				if tab != "0" {
					d.press(tab)
				}
			}
		})
	}
}

func TestQuickFiltersGroupsZoomAndColumns(t *testing.T) {
	onDesk(t, func(c *Config) { c.Me = "dana@acme.io" }, func(d *desk) {
		d.press("f", "b")
		d.sees("2 of 40 sandboxes")
		d.press("f", "m")
		d.sees("owner:dana@acme.io")
		d.press("f", "a")
		d.sees("NEEDS YOU")
		d.press("o", "g")
		d.sees("─ anna@acme.io ")
		d.press("o")
		d.press("g")
		d.sees("─ RUNNING ")
		d.press("o")
		d.misses("─ RUNNING ")
		d.press("o", "z")
		d.misses("What happened")
		d.press("z")
		d.sees("What happened")
		d.press("c")
		d.sees("owner")
		d.press("e", "esc")
		d.misses("OWNER")
	})
}

func TestGroupsKeepTheListAndItsLinesTogether(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		f := d.fleet
		for g := range groupings {
			f.arrange(byName, g)
			var entries []*entry
			for n := range f.rows() {
				if e, sec := f.at(n); e != nil {
					entries = append(entries, e)
				} else if sec == nil || sec.n == 0 {
					t.Errorf("line %d of %v is neither a sandbox nor a title", n, g)
				}
			}
			if !reflect.DeepEqual(entries, f.list) {
				t.Errorf("by %v the lines aren't the list", g)
			}
			if e, sec := f.at(f.rows()); e != nil || sec != nil {
				t.Errorf("by %v there is a line after the last", g)
			}
		}
	})
}

func TestTheCursorGoesToWhatNeedsYouUntilAKeyMovesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(12, time.Now())
		for id, sb := range fake.snap.Sandboxes {
			sb.Health = engine.Ready
			fake.snap.Sandboxes[id] = sb
		}
		d := liveDesk(t, fake, 120, 32, nil)
		breaks := func(n int, seq engine.Seq) {
			sb := d.w.snap.Sandboxes[seedID(n)]
			sb.Health, sb.HealthChanged = engine.Broken, time.Now()
			d.send(frameMsg{events: []engine.Event{{Seq: d.w.snap.Position.Seq + seq, Time: time.Now(), Body: engine.SandboxChanged{Sandbox: sb}}}})
		}
		breaks(8, 1)
		if d.fleet.cursor != seedID(8) {
			t.Errorf("the cursor is on %s", d.fleet.cursor)
		}
		d.press("j")
		at := d.fleet.cursor
		breaks(9, 1)
		if d.fleet.cursor != at {
			t.Errorf("the cursor left %s for %s", at, d.fleet.cursor)
		}
	})
}

func TestTheHealersStoryIsSearchedAndSaved(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("2")
		d.later(time.Second)
		d.press("/")
		d.text("ECONNREFUSED")
		d.press("enter")
		h := d.sandbox.pane().(*healer)
		if s := h.steps()[h.cursor]; s.Name != "restart" {
			t.Errorf("the search is at %s", s.Name)
		}
		d.press("n", "n")
		d.press("esc")
		if h.find != "" || d.screen != onSandbox {
			t.Error("Esc did more or less than ending the search")
		}
		path := filepath.Join(t.TempDir(), "story.txt")
		d.press(">")
		d.overlay.(*saver).input.SetValue(path)
		d.press("enter")
		d.later(time.Second)
		d.sees("saved ")
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "ECONNREFUSED") || strings.Contains(string(text), "\x1b") {
			t.Errorf("saved %q, %v", text, err)
		}
		d.press(">")
		d.overlay.(*saver).input.SetValue(path)
		d.press("enter")
		d.later(time.Second)
		d.sees("is there already")
	})
}

func TestALogTellsOfATimeWithoutConnection(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("3")
		d.later(time.Second)
		d.send(frameMsg{lost: true})
		d.later(38 * time.Second)
		d.sees("── without connection since ")
		d.fake.change(func() {
			last := d.fake.lines[len(d.fake.lines)-1]
			for i := range 3 {
				d.fake.lines = append(d.fake.lines, engine.LogLine{Pos: last.Next, Next: last.Next + 6, Time: time.Now().Add(time.Duration(i-2) * time.Second), Text: "meanwhile"})
				last = d.fake.lines[len(d.fake.lines)-1]
			}
		})
		d.later(time.Second)
		d.send(frameMsg{gauges: &engine.Gauges{At: time.Now()}})
		d.later(time.Second)
		d.sees("without connection: 3 lines caught up, none lost ──")
		d.sees("63 lines") // and the gap is none
	})
}

func TestSentencesBeginWithACapital(t *testing.T) {
	for in, want := range map[string]string{
		"Seen: exit 1 after 0.2s. no playbook fits. No model.": "Seen: exit 1 after 0.2s. No playbook fits. No model.",
		"the log names a file":                                 "The log names a file",
		"server.js was edited. x":                              "server.js was edited. X",
		"":                                                     "",
		"…. é":                                                 "…. é",
	} {
		if got := sentences(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
}

func TestIdleSamplesChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(4, time.Now())
		for id, sb := range fake.snap.Sandboxes {
			sb.Health = engine.Ready
			fake.snap.Sandboxes[id] = sb
		}
		idle := func(n int) *engine.Gauges {
			g := engine.Gauges{At: time.Now(), Sandboxes: map[engine.SandboxID]engine.Sample{}, Pool: fake.sample.Pool}
			for id := range fake.snap.Sandboxes {
				g.Sandboxes[id] = engine.Sample{
					Usage: engine.Usage{CPU: float64(n%3) / 100, Memory: 100*engine.MiB + engine.Size(n%5)*512*engine.KiB},
					Probe: engine.Probe{At: time.Now(), OK: true, Detail: "200"},
				}
			}
			return &g
		}
		fake.sample = *idle(0)
		d := liveDesk(t, fake, 160, 45, nil)
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
		d.send(frameMsg{gauges: idle(2)})
		before := d.View().Content
		for n := range 50 {
			time.Sleep(time.Second)
			d.send(frameMsg{gauges: idle(n)})
			if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(d.View().Content, "\n")); diff != "" {
				t.Fatalf("after %d idle seconds the screen changed:\n%s", n, diff)
			}
		}
	})
}
