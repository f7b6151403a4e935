package tui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sbx/engine"
)

// click presses the left button on the first place where the screen says words.
func (d *desk) click(words string) {
	d.t.Helper()
	x, y, ok := d.find(words)
	if !ok {
		d.t.Fatalf("nothing says %q to click on:\n%s", words, d.shown())
	}
	d.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
}

func (d *desk) find(words string) (x, y int, ok bool) {
	for y, line := range strings.Split(ansi.Strip(d.View().Content), "\n") {
		if before, _, ok := strings.Cut(line, words); ok {
			return ansi.StringWidth(before), y, true
		}
	}
	return 0, 0, false
}

func TestAClickSelectsAndASecondOpens(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		want := d.fleet.list[4]
		name := d.w.snap.Sandboxes[want.id].Name
		d.click(name)
		if d.fleet.cursor != want.id {
			t.Errorf("the cursor is on %s, want %s", d.fleet.cursor, want.id)
		}
		d.click(name)
		if d.screen != onSandbox || d.sandbox.id != want.id {
			t.Errorf("a double click did not open %s", name)
		}
	})
}

func TestTwoSlowClicksOnlySelect(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		name := d.w.snap.Sandboxes[d.fleet.list[4].id].Name
		d.click(name)
		d.later(time.Second)
		d.click(name)
		if d.screen != onFleet {
			t.Error("two clicks a second apart opened it")
		}
	})
}

func TestClicksOnHeadsTabsAndHintsDoWhatTheySay(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.click("OWNER")
		if got := sortColumns[d.w.fleet.sort]; got != colOwner {
			t.Errorf("sorted by column %v", got)
		}
		id := d.fleet.cursor
		d.press("enter")
		d.click("3 Logs")
		if d.sandbox.tab != tabLogs || d.sandbox.id != id {
			t.Error("a click on the tab did not open the log")
		}
		before := d.sandbox.tabs[tabLogs].pane.(*logs).wrap
		d.click("w wrap")
		if d.sandbox.tabs[tabLogs].pane.(*logs).wrap == before {
			t.Error("a click on the hint did not press its key")
		}
	})
}

func TestTheWheelScrollsAndTheCursorStaysOnTheScreen(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		x, y := 10, d.layout.main.y+3
		for range 30 {
			d.send(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelDown})
		}
		last := d.fleet.list[len(d.fleet.list)-1]
		d.sees(d.w.snap.Sandboxes[last.id].Name)
		if line := d.fleet.place + d.fleet.titles(d.fleet.place); line < d.fleet.top {
			t.Errorf("the cursor is on line %d, above the first that shows, %d", line, d.fleet.top)
		}
		for range 30 {
			d.send(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelUp})
		}
		if d.fleet.top != 0 {
			t.Errorf("the first line that shows is %d", d.fleet.top)
		}
	})
}

func TestTheMouseCanBeTurnedOff(t *testing.T) {
	onDesk(t, func(c *Config) { c.Mouse = MouseOff }, func(d *desk) {
		if mode := d.View().MouseMode; mode != tea.MouseModeNone {
			t.Errorf("the terminal is asked for mouse mode %v", mode)
		}
	})
	onDesk(t, func(c *Config) { c.Mouse = MouseWheel }, func(d *desk) {
		before := d.fleet.cursor
		d.click(d.w.snap.Sandboxes[d.fleet.list[4].id].Name)
		if d.fleet.cursor != before {
			t.Error("a click selected, with only the wheel on")
		}
	})
}

func TestADialogKeepsClicksFromWhatIsBelow(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		before := d.fleet.cursor
		d.press("R")
		d.send(tea.MouseClickMsg{X: 10, Y: d.layout.main.y + 6, Button: tea.MouseLeft})
		if d.fleet.cursor != before {
			t.Error("a click went through the dialog")
		}
		d.asked()
	})
}

func TestTheDashboardOpensWhereItWasAskedTo(t *testing.T) {
	onDesk(t, func(c *Config) { c.Open, c.Pane = "search-index", "healer" }, func(d *desk) {
		if d.screen != onSandbox || d.sandbox.id != seedID(3) || d.sandbox.tab != tabHealer {
			t.Errorf("it shows %s, tab %d", d.sandbox.id, d.sandbox.tab)
		}
	})
	onDesk(t, func(c *Config) { c.Open = "nobody" }, func(d *desk) {
		d.sees(`no sandbox "nobody"`)
	})
}

func TestRemappedKeysActAndAreShown(t *testing.T) {
	edit := func(c *Config) {
		c.Keys = KeysFile{Keys: map[string][]string{"heal.start": {"ctrl+h"}, "logs.wrap": {"W"}, "help": {"f1"}}}
	}
	onDesk(t, edit, func(d *desk) {
		d.sees("f1 help")
		d.sees("heal.start") // why ctrl+h can't be had
		d.press("3")
		d.sees("W wrap")
	})
	onDesk(t, func(c *Config) { c.Keys = KeysFile{Keys: map[string][]string{"heal.start": {"U"}}} }, func(d *desk) {
		d.press("U")
		d.asked(engine.StartHeal{Sandbox: seedID(3)})
	})
}
