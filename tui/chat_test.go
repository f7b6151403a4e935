package tui

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
)

// seedChat is a conversation about the first broken sandbox of the seed: said,
// answered, a tool call, and one that waits to be approved.
func seedChat(f *fakeEngine, now time.Time, waiting bool) {
	at := now.Add(-2 * time.Minute)
	turn := engine.MessageID("me-aaaaaaaaaa")
	add := func(m engine.Message) {
		m.Sandbox, m.Turn, m.Number, m.Started = seedID(3), turn, len(f.chats)+1, at
		if m.ID == "" {
			m.ID = engine.MessageID("me-" + strings.Repeat(string(rune('b'+len(f.chats))), 10))
		}
		f.chats = append(f.chats, m)
	}
	state := engine.MessageDone
	if waiting {
		state = engine.MessageRunning
	}
	add(engine.Message{ID: turn, Kind: engine.MessageSaid, State: state, By: engine.Actor{Name: "dana"}, Text: "why does it exit?"})
	add(engine.Message{
		Kind: engine.MessageAnswer, State: engine.MessageDone,
		Text: "# What is wrong\nThe app imports `zod/v4`, **but** zod 3 is installed:\n```sh\npnpm why zod\n```\n- pin it back\n- or install 4",
	})
	add(engine.Message{Kind: engine.MessageTool, State: engine.MessageDone, Tool: "read", Argument: "package.json", Text: `{"zod": "^3.22"}`, Ended: at.Add(time.Second)})
	if waiting {
		add(engine.Message{
			ID: "me-zzzzzzzzzz", Kind: engine.MessageTool, State: engine.MessageAsking, Tool: "run", Argument: "pnpm add zod@^4",
			Input: []byte(`{"command":"pnpm add zod@^4"}`), AskUntil: now.Add(5 * time.Minute),
		})
	}
}

func onChat(t *testing.T, waiting bool, edit func(*Config), f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(14 * time.Hour)
		fake := seeded(40, time.Now())
		seedChat(fake, time.Now(), waiting)
		fake.snap.About.Model = "claude-sonnet-5-5"
		d := liveDesk(t, fake, 120, 32, edit)
		d.press("6")
		f(d)
	})
}

func TestAChatShowsWhatWasSaidAndDone(t *testing.T) {
	onChat(t, false, nil, func(d *desk) {
		for _, want := range []string{"dana", "why does it exit?", "What is wrong", "zod/v4", "pnpm why zod", "• pin it back", "read", "package.json"} {
			d.sees(want)
		}
		d.misses("```")
		d.misses(`"^3.22"`)
		d.press("k", "k", "enter")
		d.misses(`"^3.22"`) // the answer's, not the call's
		d.press("j", "enter")
		d.sees(`"^3.22"`)
		d.fits()
	})
}

func TestWhatIsTypedIsSaidAndAnAnswerGrows(t *testing.T) {
	onChat(t, false, nil, func(d *desk) {
		d.press("i")
		d.text("do 2 H q 1")
		d.sees(" TYPE ")
		d.press("ctrl+j")
		d.text("please")
		d.press("enter")
		d.asked(engine.Say{Sandbox: seedID(3), Text: "do 2 H q 1\nplease"})
		m := engine.Message{ID: "me-new", Sandbox: seedID(3), Number: 9, Kind: engine.MessageAnswer, State: engine.MessageRunning, Text: "I in", Started: time.Now()}
		for _, text := range []string{"I in", "I install zod 4"} {
			m.Text = text
			d.send(frameMsg{events: []engine.Event{{Seq: d.w.snap.Position.Seq + 1, Time: time.Now(), Body: engine.ChatMessaged{Message: m}}}})
		}
		d.sees("I install zod 4")
	})
}

func TestWhatCouldNotBeSaidIsNotLost(t *testing.T) {
	onChat(t, false, nil, func(d *desk) {
		d.fake.away = errors.New("no route to host")
		d.press("i")
		d.text("keep me")
		d.press("enter")
		d.sees("no route to host")
		d.sees("keep me")
	})
}

func TestACallIsApprovedFromNAVAndNeverByTyping(t *testing.T) {
	onChat(t, true, nil, func(d *desk) {
		d.sees("pnpm add zod@^4")
		d.sees("then counts as no")
		d.press("i")
		d.text("yY n")
		d.asked()
		d.sees("press Esc, then y once")
		d.press("esc", "v")
		d.sees(`{"command":"pnpm add zod@^4"}`)
		d.press("Y")
		d.asked(engine.AnswerApproval{Message: "me-zzzzzzzzzz", Answer: engine.AnswerChat})
	})
}

func TestCtrlCStopsClaudeAndDoesNotLeave(t *testing.T) {
	onChat(t, true, nil, func(d *desk) {
		d.press("i", "ctrl+c", "ctrl+c")
		stop := engine.StopChat{Sandbox: seedID(3)}
		d.asked(stop, stop)
		d.misses("again leaves")
	})
}

func TestAHealIsTakenOverOnlyWhenAsked(t *testing.T) {
	onChat(t, false, nil, func(d *desk) {
		sb := d.w.snap.Sandboxes[seedID(3)]
		sb.Health = engine.Healing
		d.send(frameMsg{events: []engine.Event{{Seq: d.w.snap.Position.Seq + 1, Time: time.Now(), Body: engine.SandboxChanged{Sandbox: sb}}}})
		d.press("i")
		d.text("mine")
		d.press("enter")
		d.asked()
		d.sees("from the healer?")
		d.later(time.Second)
		d.press("y")
		d.asked(engine.Say{Sandbox: seedID(3), Text: "mine", TakeOver: true})
	})
}

func TestWithoutAModelOrARightToNothingIsSaid(t *testing.T) {
	onChat(t, true, func(c *Config) { c.ReadOnly = "your token may only read" }, func(d *desk) {
		d.press("y")
		d.asked()
		d.sees("your token may only read")
		d.press("i")
		d.text("hello")
		d.press("enter")
		d.asked()
	})
	onChat(t, false, nil, func(d *desk) {
		d.w.snap.About.Model, d.w.snap.About.NoModel = "", "ANTHROPIC_API_KEY is not set"
		d.press("i")
		d.text("hello")
		d.press("enter")
		d.asked()
		d.sees("ANTHROPIC_API_KEY is not set")
	})
}

func TestAHostileChatDrawsOnlyCells(t *testing.T) {
	onChat(t, true, nil, func(d *desk) {
		d.fake.chats[3].Argument = "\x1b]52;c;aGk=\x07 rm\u202e -rf"
		d.fake.chats[1].Text = "\x1b[2J\x1b]0;pwned\x07**" + strings.Repeat("漢", 300) + "`\u200b"
		d.send(messagesMsg{id: seedID(3), list: d.fake.chats})
		for _, size := range []int{160, 120, 80, 60} {
			d.width = size
			d.arrange()
			d.fits()
		}
	})
}
