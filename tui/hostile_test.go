package tui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
)

func TestALogGoesOnWhenTheEngineIsBack(t *testing.T) {
	onDesk(t, nil, func(d *desk) {
		d.press("3")
		d.later(time.Second)
		d.fake.change(func() { d.fake.away = engine.Errorf(engine.Unavailable, "connection refused") })
		d.later(time.Second)
		d.later(time.Second)
		d.send(frameMsg{lost: true, cause: d.fake.away})
		d.sees("connection refused")
		d.fake.change(func() {
			d.fake.away = nil
			last := d.fake.lines[len(d.fake.lines)-1]
			d.fake.lines = append(d.fake.lines, engine.LogLine{Pos: last.Next, Next: last.Next + 6, Time: time.Now(), Text: "after"})
		})
		d.send(frameMsg{gauges: &engine.Gauges{At: time.Now()}})
		d.later(time.Second)
		d.later(time.Second)
		d.sees("61 lines") // what was read before was not read again
		d.sees("after")
	})
}

func TestASCIIScreensHaveNoOtherCharacter(t *testing.T) {
	onDesk(t, func(c *Config) { c.ASCII = true }, func(d *desk) {
		for _, key := range []string{"j", "?", "esc", "R", "esc", "1", "2", "3"} {
			d.press(key)
			d.later(time.Second)
			for _, r := range d.shown() {
				if r > '~' {
					t.Fatalf("after %s the screen shows %q:\n%s", key, r, d.shown())
				}
			}
			d.fits()
		}
	})
}

func TestHostileNamesAreShownNotObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := seeded(10, time.Now())
		hostile := "a\x1b]52;c;aGk=\x07\u202e\u200b\U000e0041\x9b2J\r\n\tz" + strings.Repeat("\u0301", 50) + "👩‍👩‍👧🏽"
		for id, sb := range fake.snap.Sandboxes {
			sb.Name, sb.Owner, sb.Reason, sb.Template, sb.Isolation = hostile, hostile, hostile, hostile, hostile
			fake.snap.Sandboxes[id] = sb
		}
		for id, r := range fake.snap.Runs {
			r.Cause, r.Doing, r.Summary, r.Next, r.FixedBy, r.Commit = hostile, hostile, hostile, hostile, hostile, hostile
			r.Changed, r.KeptByUser = []string{hostile}, []string{hostile}
			fake.snap.Runs[id] = r
		}
		for id, list := range fake.snap.Steps {
			for i := range list {
				list[i].Name, list[i].Argument, list[i].Text, list[i].Diff = hostile, hostile, hostile, "+"+hostile+"\n-"+hostile
			}
			fake.snap.Steps[id] = list
		}
		for id, s := range fake.snap.Signals {
			s.Observed, s.Verdict.Reason = hostile, hostile
			fake.snap.Signals[id] = s
		}
		for i := range fake.lines {
			fake.lines[i].Text = hostile
		}
		for id, s := range fake.sample.Sandboxes {
			s.LogLine, s.Probe.Detail = hostile, hostile
			fake.sample.Sandboxes[id] = s
		}
		fake.points[0].Note = hostile
		for _, size := range goldenSizes[1:4] {
			d := liveDesk(t, fake, size.w, size.h, func(c *Config) { c.Name, c.Where = hostile, hostile })
			for _, key := range []string{"j", "j", "j", "p", "1", "2", "X", "h", "0", "R", "esc", "D", "esc", "P", "esc", "?", "esc", "3", "w", "F"} {
				d.press(key)
				d.later(time.Second)
				d.fits()
			}
			if strings.ContainsAny(d.View().WindowTitle, "\x1b\x07\u202e") {
				t.Errorf("the window's title is %q", d.View().WindowTitle)
			}
		}
	})
}
