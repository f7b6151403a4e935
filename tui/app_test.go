package tui

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// desk is a dashboard without a terminal: messages go in, commands run at once.
type desk struct {
	*App
	t       testing.TB
	fake    *fakeEngine
	waiting []chan tea.Msg
	// still runs no commands: for what is measured outside a bubble.
	still bool
}

func newDesk(t testing.TB, fake *fakeEngine, edit func(*Config)) *desk {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := Config{Engine: fake, Name: "prod-eu", Where: "10.0.4.9:7443", Theme: "sbx-dark"}
	if edit != nil {
		edit(&c)
	}
	cmds := &commands{engine: fake, ctx: ctx}
	app, err := newApp(c, cmds)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{App: app, t: t, fake: fake}
	t.Cleanup(func() {
		cancel()
		cmds.wait()
		if !d.still {
			time.Sleep(2 * time.Minute) // of the bubble: the last ticks ring and nobody is left
		}
	})
	return d
}

// live is a desk of the size that has heard the engine.
func liveDesk(t testing.TB, fake *fakeEngine, w, h int, edit func(*Config)) *desk {
	t.Helper()
	d := newDesk(t, fake, edit)
	d.send(tea.WindowSizeMsg{Width: w, Height: h})
	g := fake.sample
	g.At = time.Now()
	d.send(frameMsg{snap: fake.snap.Clone(), gauges: &g})
	return d
}

// send hands a message to the dashboard and runs what it asks for, but for
// ticks and streams, which wait.
func (d *desk) send(msg tea.Msg) {
	d.t.Helper()
	_, cmd := d.Update(msg)
	d.run(cmd)
}

func (d *desk) run(cmd tea.Cmd) {
	if cmd == nil || d.still {
		return
	}
	done := make(chan tea.Msg, 1)
	go func() { done <- cmd() }()
	select {
	case msg := <-done:
		d.took(msg)
	case <-time.After(time.Millisecond): // in a bubble: everything is asleep
		d.waiting = append(d.waiting, done)
	}
}

// later lets time pass, and takes what commands have answered by then.
func (d *desk) later(pass time.Duration) {
	time.Sleep(pass)
	synctest.Wait()
	list := d.waiting
	d.waiting = nil
	for _, done := range list {
		select {
		case msg := <-done:
			d.took(msg)
		default:
			d.waiting = append(d.waiting, done)
		}
	}
	d.send(tickMsg(d.alarmNo))
}

func (d *desk) took(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil, tickMsg, tea.QuitMsg:
	case tea.BatchMsg:
		for _, cmd := range msg {
			d.run(cmd)
		}
	default:
		d.send(msg)
	}
}

// press types keys: names such as "enter", or single characters.
func (d *desk) press(keys ...string) {
	d.t.Helper()
	for _, k := range keys {
		d.send(keyOf(k))
	}
}

func (d *desk) text(s string) {
	for _, r := range s {
		d.press(string(r))
	}
}

func keyOf(k string) tea.KeyPressMsg {
	named := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "space": {Code: tea.KeySpace, Text: " "},
		"tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "end": {Code: tea.KeyEnd},
		"home": {Code: tea.KeyHome}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
		"ctrl+l": {Code: 'l', Mod: tea.ModCtrl}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	}
	if key, ok := named[k]; ok {
		return tea.KeyPressMsg(key)
	}
	r := []rune(k)[0]
	return tea.KeyPressMsg{Code: r, Text: k}
}

// shown is the screen as text.
func (d *desk) shown() string { return ansi.Strip(d.View().Content) }

func (d *desk) sees(want string) {
	d.t.Helper()
	if !strings.Contains(d.shown(), want) {
		d.t.Errorf("the screen doesn't show %q:\n%s", want, d.shown())
	}
}

func (d *desk) misses(text string) {
	d.t.Helper()
	if strings.Contains(d.shown(), text) {
		d.t.Errorf("the screen shows %q:\n%s", text, d.shown())
	}
}

// fits checks what holds for every frame.
func (d *desk) fits() {
	d.t.Helper()
	content := d.View().Content
	for _, r := range ansi.Strip(content) {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
			d.t.Fatalf("a control character reaches the terminal: %U", r)
		}
	}
	lines := strings.Split(content, "\n")
	if len(lines) != d.height {
		d.t.Errorf("%d lines on a screen of %d", len(lines), d.height)
	}
	for i, line := range lines {
		if w := ansi.StringWidth(line); w > d.width || w != ansi.StringWidthWc(line) {
			d.t.Errorf("line %d is %d cells wide on a screen of %d: %q", i, w, d.width, ansi.Strip(line))
		}
	}
}

var goldenSizes = []struct{ w, h int }{{160, 45}, {120, 32}, {80, 24}, {60, 15}, {40, 10}}

func TestScreensLookAsTheyDid(t *testing.T) {
	scenes := []struct {
		name string
		play func(d *desk)
	}{
		{"loading", nil},
		{"empty", nil},
		{"fleet", func(*desk) {}},
		{"fleet-marked", func(d *desk) { d.press("space", "space") }},
		{"incidents", func(d *desk) { d.press("#") }},
		{"files", func(d *desk) {
			seedFiles(d.fake)
			d.press("4", "enter", "j", "j", "enter")
		}},
		{"chat", func(d *desk) {
			seedChat(d.fake, d.w.now, true)
			d.press("6", "i")
			d.text("and then restart, please")
		}},
		{"fleet-filter", func(d *desk) { d.press("/"); d.text("health:brokn") }},
		{"fleet-offline", func(d *desk) {
			d.send(frameMsg{lost: true, cause: engine.Errorf(engine.Unavailable, "dial 10.0.4.9:7443: connection refused").After(6 * time.Second)})
			d.later(4 * time.Second)
		}},
		{"confirm", func(d *desk) { d.press("space", "space", "R") }},
		{"destroy", func(d *desk) { d.press("D"); d.later(time.Second); d.text("sea") }},
		{"pause", func(d *desk) { d.press("P") }},
		{"help", func(d *desk) { d.press("?") }},
		{"overview", func(d *desk) { d.press("!", "!", "!", "1") }},
		{"overview-broken", func(d *desk) { d.press("enter") }},
		{"healer", func(d *desk) { d.press("!", "!", "!", "!", "2") }},
		{"healer-broken", func(d *desk) { d.press("2") }},
		{"healer-none", func(d *desk) { d.press("end", "2") }},
		{"logs", func(d *desk) { d.press("3"); d.later(time.Second) }},
		{"logs-search", func(d *desk) {
			d.press("3")
			d.later(time.Second)
			d.press("/")
			d.text("fetch")
			d.press("enter", "w")
		}},
		{"quit", func(d *desk) { d.press("q") }},
	}
	for _, scene := range scenes {
		for _, size := range goldenSizes {
			t.Run(fmt.Sprintf("%s-%dx%d", scene.name, size.w, size.h), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := stage(t, scene.name, size.w, size.h)
					if scene.play != nil {
						scene.play(d)
					}
					d.fits()
					golden(t, d.shown())
				})
			})
		}
	}
}

func stage(t *testing.T, name string, w, h int) *desk {
	edit := func(c *Config) {
		c.Still = true
		c.Quit = QuitText{
			Title: "Leave sbx?", Body: []string{"The engine runs in this window, with 35 sandboxes."},
			Leave: "leave them to a background engine", Stop: "stop them",
		}
	}
	time.Sleep(14*time.Hour + 32*time.Minute + 7*time.Second) // not at midnight
	switch name {
	case "loading":
		d := newDesk(t, newFake(engine.NewSnapshot(engine.Position{})), edit)
		d.send(tea.WindowSizeMsg{Width: w, Height: h})
		return d
	case "empty":
		return liveDesk(t, seeded(0, time.Now()), w, h, edit)
	}
	return liveDesk(t, seeded(40, time.Now()), w, h, edit)
}

func golden(t *testing.T, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got = strings.Join(lines, "\n") + "\n"
	name := filepath.Join("testdata", strings.TrimPrefix(t.Name(), "TestScreensLookAsTheyDid/")+".golden")
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the screen changed (run with -update if it should have):\n%s", diff)
	}
}

func TestRandomKeysAndSizesNeverTearTheScreen(t *testing.T) {
	keys := []string{
		"j", "k", "h", "l", "g", "G", "enter", "esc", "0", "1", "2", "3", "{", "}", "!", "tab", "/", "n", "N", "?", "r",
		"H", "A", "P", "R", "S", "D", "B", "space", "*", "u", "s", "p", "x", "X", "F", "&", "w", "t", "e", "E", "a", "é", "ctrl+d", "ctrl+u", "y", "8",
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 7))
				d := liveDesk(t, seeded(30, time.Now()), 100, 30, nil)
				for range 150 {
					switch r.IntN(12) {
					case 0:
						d.send(tea.WindowSizeMsg{Width: 1 + r.IntN(220), Height: 1 + r.IntN(70)})
					case 1:
						d.send(frameMsg{lost: r.IntN(2) == 0, gauges: &engine.Gauges{At: time.Now()}})
					case 2:
						time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
						d.send(frameMsg{events: randomEvents(r, d)})
					default:
						d.press(keys[r.IntN(len(keys))])
					}
					d.fits()
				}
			})
		})
	}
}

func randomEvents(r *rand.Rand, d *desk) []engine.Event {
	var list []engine.Event
	seq := d.w.snap.Position.Seq
	for range r.IntN(5) {
		seq++
		sb := d.w.snap.Sandboxes[seedID(r.IntN(32))]
		var body engine.EventBody = engine.SandboxRemoved{ID: sb.ID, Name: sb.Name}
		if r.IntN(4) > 0 && sb.ID != "" {
			sb.Health = []engine.Health{engine.Ready, engine.Broken, engine.Healing, engine.Starting}[r.IntN(4)]
			sb.State = []engine.State{engine.Cold, engine.Running, engine.Waiting}[r.IntN(3)]
			sb.Reason = "\x1b[2Jhostile\u202e"
			body = engine.SandboxChanged{Sandbox: sb}
		}
		list = append(list, engine.Event{Seq: seq, Time: time.Now(), By: engine.System, Body: body})
	}
	return list
}
