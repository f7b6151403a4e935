package tui

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"sbx/engine"
)

// act runs a test on a live desk in a bubble.
func onDesk(t *testing.T, edit func(*Config), f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(14 * time.Hour)
		f(liveDesk(t, seeded(40, time.Now()), 120, 32, edit))
	})
}

func (d *desk) asked(want ...engine.ActionBody) {
	d.t.Helper()
	if diff := cmp.Diff(want, d.fake.acts); diff != "" {
		d.t.Errorf("asked of the engine (-want +got):\n%s", diff)
	}
}

func TestHealOfABrokenSandboxAsksNothing(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("H")
		d.asked(engine.StartHeal{Sandbox: seedID(3)})
		d.sees("heal search-index: accepted")
	})
}

func TestHealOfAReadySandboxAsksForTheKeyAgain(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("end", "up", "H")
		d.asked()
		d.sees("H again: heal now of")
		d.later(3 * time.Second)
		d.press("H")
		d.asked()
		d.press("H")
		if len(d.fake.acts) != 1 {
			t.Errorf("two presses within two seconds asked %v", d.fake.acts)
		}
	})
}

func TestRestartAsksAndEnterCancels(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("R", "y") // at once: what was typed ahead answers nothing
		d.asked()
		d.sees("Restart search-index in prod-eu?")
		d.later(deaf)
		d.press("enter")
		d.misses("Restart search-index")
		d.asked()
		d.press("R")
		d.later(deaf)
		d.press("y")
		d.asked(engine.RestartApp{Sandbox: seedID(3)})
	})
}

func TestDestroyWantsTheNameTyped(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("D")
		d.later(deaf)
		d.press("y", "enter")
		d.sees("That is not its name")
		d.asked()
		d.press("esc", "D")
		d.later(deaf)
		d.text("search-index")
		d.asked()
		d.press("enter")
		d.asked(engine.RemoveSandbox{Sandbox: seedID(3)})
	})
}

func TestBulkActionsAskOnceForAllMarks(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("space", "space", "H")
		d.sees("Heal 2 sandboxes")
		d.later(deaf)
		d.press("y")
		d.asked(engine.StartHeal{Sandbox: seedID(3)}, engine.StartHeal{Sandbox: seedID(4)})
		d.sees("2 of 2 accepted")
		d.misses("marked")
	})
}

func TestBulkOverTenWantsTheNumberTyped(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("*", "R")
		d.later(deaf)
		d.press("y", "enter")
		d.asked()
		d.press("backspace")
		d.text("37") // three are cold
		d.press("enter")
		if len(d.fake.acts) != 37 {
			t.Errorf("%d actions were asked", len(d.fake.acts))
		}
	})
}

func TestAbortAndPauseAndStart(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("A")
		d.sees("A: no heal is under way")
		d.press("j", "j", "A", "A")
		d.asked(engine.CancelHeal{Sandbox: seedID(2)})
		d.press("P")
		d.later(deaf)
		d.press("8")
		d.asked(engine.CancelHeal{Sandbox: seedID(2)}, engine.SetMaintenance{Sandbox: seedID(2), On: true, For: engine.Duration(8 * time.Hour)})
		d.fake.acts = nil
		d.press("/")
		d.text("life:cold")
		d.press("enter", "S")
		if len(d.fake.acts) != 1 {
			t.Fatalf("asked %v", d.fake.acts)
		}
		if _, ok := d.fake.acts[0].(engine.StartSandbox); !ok {
			t.Errorf("S on a cold sandbox asked %#v", d.fake.acts[0])
		}
	})
}

func TestReadOnlyDashboardsOnlyLook(t *testing.T) {
	onDesk(t, func(c *Config) { c.ReadOnly = "your token may only read" }, func(d *desk) {
		d.sees("READ-ONLY")
		d.press("H")
		d.asked()
		d.sees("H: your token may only read")
	})
}

func TestRefusalsAreShownWithWhatToDo(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.send(actionMsg{words: "heal api", err: engine.Errorf(engine.Conflict, "operator dana heals it").WithHint("watch it on 2")})
		d.sees("heal api: operator dana heals it — watch it on 2")
		d.later(toastTime)
		d.misses("operator dana")
	})
}

func TestLostEnginesAreToldAndForgiven(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("down")
		gone := engine.Errorf(engine.Unavailable, "dial 10.0.4.9:7443: connection refused").After(6 * time.Second)
		d.send(frameMsg{lost: true, cause: gone})
		for _, want := range []string{"NOT CONNECTED", "connection refused", "retry 1 in 6 s", "OFFLINE"} {
			d.sees(want)
		}
		d.later(2 * time.Second)
		d.sees("retry 1 in 4 s")
		d.press("H")
		d.asked()
		d.sees("H: waits for the engine")
		d.press("/")
		d.text("billing")
		d.press("enter")
		d.sees("1 of 40 sandboxes") // reading goes on
		d.later(36 * time.Second)
		d.send(frameMsg{gauges: &engine.Gauges{At: time.Now()}})
		d.sees("back after 38s")
		d.misses("NOT CONNECTED")
	})
}

func TestLeavingAnEmbeddedEngineAsksWhatBecomesOfIt(t *testing.T) {
	quit := func(c *Config) {
		c.Quit = QuitText{Title: "Leave sbx?", Leave: "leave them running", Stop: "stop them"}
	}
	for key, want := range map[string]Choice{"y": LeaveRunning, "s": StopAll, "esc": Unasked} {
		onDesk(t, quit, func(d *desk) {
			d.press("q")
			d.later(deaf)
			d.press(key)
			if d.choice != want {
				t.Errorf("%s chose %q, want %q", key, d.choice, want)
			}
		})
	}
}

func TestTheSecondControlCLeaves(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		quits := func() bool {
			_, cmd := d.Update(keyOf("ctrl+c"))
			batch, ok := cmd().(tea.BatchMsg)
			if !ok {
				_, quit := cmd().(tea.QuitMsg)
				return quit
			}
			_, quit := batch[0]().(tea.QuitMsg)
			return quit
		}
		if d.press("ctrl+c"); !strings.Contains(d.shown(), "ctrl+C again leaves") {
			t.Error("the first ctrl+C says nothing")
		}
		if !quits() {
			t.Error("the second one doesn't leave")
		}
	})
}

func TestEscapeNeverLeaves(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("2", "esc", "esc", "esc", "esc")
		d.sees("Fleet")
		if d.screen != onFleet {
			t.Error("Esc did not go back to the fleet")
		}
	})
}

func TestKeysWalkSandboxesOnTheSameTab(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("3", "}")
		d.later(time.Second)
		d.sees("Fleet › billing")
		if d.sandbox.tab != tabLogs {
			t.Errorf("the tab is %d", d.sandbox.tab)
		}
		d.press("{", "!")
		d.sees("Fleet › billing")
		if d.sandbox.tab != tabHealer {
			t.Errorf("! opens tab %d", d.sandbox.tab)
		}
		d.press("0")
		d.sees("NEEDS YOU")
		d.press("0")
		d.sees("Fleet › billing")
	})
}

func TestTheCursorStaysOnItsSandbox(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("end")
		before := d.fleet.cursor
		sb := d.w.snap.Sandboxes[seedID(12)]
		sb.Health, sb.HealthChanged = engine.Broken, time.Now()
		seq := d.w.snap.Position.Seq
		d.send(frameMsg{events: []engine.Event{{Seq: seq + 1, Time: time.Now(), Body: engine.SandboxChanged{Sandbox: sb}}}})
		if d.fleet.cursor != before {
			t.Errorf("the cursor went from %s to %s", before, d.fleet.cursor)
		}
		d.sees("✗ 3 broken")
		d.send(frameMsg{events: []engine.Event{{Seq: seq + 2, Time: time.Now(), Body: engine.SandboxRemoved{ID: before}}}})
		if d.fleet.cursor == before || d.fleet.cursor == "" {
			t.Errorf("the cursor is on %q, which is gone", d.fleet.cursor)
		}
	})
}

func TestStepsOfAnEndedRunAreReadFromTheHistory(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("2") // of the broken one
		d.sees("rolled back 2 files")
		d.sees("broken since")
	})
}

func TestStepsSeenLiveStayWhenTheRunEnds(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.fleet.jump(seedID(0))
		d.press("2")
		d.sees("ss -ltnp")
		run := d.w.snap.Runs[seedID(0)]
		run.State, run.Outcome, run.Ended = engine.RunEnded, engine.Healed, time.Now()
		d.send(frameMsg{events: []engine.Event{{Seq: d.w.snap.Position.Seq + 1, Time: time.Now(), Body: engine.HealFinished{Run: run}}}})
		d.sees("ss -ltnp")
		d.sees("healed")
	})
}

func TestFoldingHidesDiffs(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.fleet.jump(seedID(0))
		d.press("2")
		d.sees("+ import { weatherLookup }")
		d.press("X")
		d.misses("+ import { weatherLookup }")
		d.press("X")
		d.sees("+ import { weatherLookup }")
	})
}

func TestLogsSearchFilterAndPause(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("3")
		d.later(time.Second)
		d.sees("following · 60 lines")
		d.press("&")
		d.text("typeerror")
		d.press("enter")
		d.sees("5 of 60 lines")
		d.misses("Bundling")
		d.press("esc")
		d.sees("following · 60 lines")
		d.press("E")
		d.sees("F follows")
		if l := d.sandbox.pane().(*logs); !strings.Contains(l.ring.at(l.ring.index(l.found)).Text, "TypeError") {
			t.Errorf("E found line %d", l.found)
		}
		d.press("F", "space")
		d.fake.change(func() {
			last := d.fake.lines[len(d.fake.lines)-1]
			d.fake.lines = append(d.fake.lines, engine.LogLine{Pos: last.Next, Next: last.Next + 6, Time: time.Now(), Text: "after"})
		})
		d.later(time.Second)
		d.later(time.Second)
		d.sees("paused")
		d.press("space")
		d.later(time.Second)
		d.later(time.Second)
		d.sees("after")
	})
}

func TestALogThatFailsSaysSoInItsPane(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.fake.change(func() { d.fake.away = errors.New("the shim hung up") })
		d.press("3")
		d.later(time.Second)
		d.sees("the shim hung up")
		d.fake.change(func() { d.fake.away = nil })
		d.press("r")
		d.later(time.Second)
		d.sees("following · 60 lines")
	})
}
