package healer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine"
	"sbx/engine/agent"
	"sbx/store"
)

// talk says something and returns the message.
func (r *rig) talk(b engine.Say) engine.Message {
	r.t.Helper()
	var said engine.Message
	r.update(func(tx *store.Tx) (err error) {
		said, err = Talk(tx, b, engine.Message{By: dana, Text: b.Text})
		return err
	})
	return said
}

// refused is the error of something that can't be said.
func (r *rig) refused(b engine.Say) error {
	return r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		_, err := Talk(tx, b, engine.Message{By: dana, Text: b.Text})
		return err
	})
}

// answered waits until a turn is over, and returns all of its messages.
func (r *rig) answered(said engine.Message) (engine.Message, []engine.Message) {
	r.t.Helper()
	var turn []engine.Message
	r.await("the end of the turn", func(tx *store.Tx) (bool, error) {
		now, err := tx.Message(said.ID)
		said = now
		return now.State.Over(), err
	})
	for _, m := range view(r, func(tx *store.Tx) ([]engine.Message, error) {
		return tx.Messages(engine.MessageQuery{Sandbox: said.Sandbox})
	}) {
		if m.Turn == said.ID && m.ID != said.ID {
			turn = append(turn, m)
		}
	}
	return said, turn
}

// awaitAsking waits until a call asks to be approved.
func (r *rig) awaitAsking(said engine.Message) (asks engine.Message) {
	r.t.Helper()
	r.await("a question", func(tx *store.Tx) (bool, error) {
		list, err := tx.Messages(engine.MessageQuery{Sandbox: said.Sandbox, After: said.Number})
		for _, m := range list {
			if m.State == engine.MessageAsking {
				asks = m
				return true, nil
			}
		}
		return false, err
	})
	return asks
}

func lastWords(t agent.Transcript) string { return t.Messages[len(t.Messages)-1].Text }

func TestAChatFixesWhatTheHealerGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.model.will(say("I don't know."), say("I don't know."), say("I don't know."))
		r.start()
		r.crash(id)
		r.awaitHealth(id, engine.Broken)
		before := len(r.model.requests())
		r.model.will(
			call("read", in{"path": "app.js"}), call("write", in{"path": "app.js", "content": "fixed()"}), call("restart", in{}),
			say("It was a bug; it runs now."),
		)
		said, turn := r.answered(r.talk(engine.Say{Sandbox: id, Text: "please fix it"}))
		if said.State != engine.MessageDone || said.Spent.Dollars == 0 || said.Model != "scripted" {
			t.Errorf("the turn ended as %+v", said)
		}
		if len(turn) != 4 || turn[1].Tool != "write" || turn[1].Diff == "" || turn[2].Tool != "restart" ||
			!strings.Contains(turn[2].Text, "healthy") || turn[3].Text != "It was a bug; it runs now." {
			t.Errorf("the turn is %+v", turn)
		}
		told := lastWords(r.model.requests()[before])
		for _, want := range []string{"bug is not a function", "attempt 3", "I don't know.", "please fix it"} {
			if !strings.Contains(told, want) {
				t.Errorf("the model was not told %q: %s", want, told)
			}
		}
		cp := view(r, func(tx *store.Tx) (engine.Checkpoint, error) { return tx.Checkpoint(said.Checkpoint) })
		if err := r.box(id).Restore(t.Context(), cp.Tree, []string{"app.js"}); err != nil {
			t.Fatal(err)
		}
		if got, _ := r.box(id).file("app.js"); got != broken["app.js"] {
			t.Errorf("undone, the file is %q", got)
		}
		if sb := view(r, func(tx *store.Tx) (engine.Sandbox, error) { return tx.Sandbox(id) }); sb.Chat != "" {
			t.Errorf("the sandbox is still the chat's: %s", sb.Chat)
		}
	})
}

func TestAChatRemembersWhatWasSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		stop := r.start()
		r.model.will(call("read", in{"path": "app.js"}), say("It says ok."))
		r.answered(r.talk(engine.Say{Sandbox: id, Text: "what does app.js say?"}))
		stop() // it is found again by the next engine
		r.start()
		r.model.will(say("As I said: ok."))
		r.answered(r.talk(engine.Say{Sandbox: id, Text: "and now?"}))
		asked := r.model.requests()
		m := asked[len(asked)-1].Messages
		if len(m) != 5 || m[0].Text != "what does app.js say?" || len(m[1].Calls) != 1 || m[1].Calls[0].Name != "read" ||
			m[2].Results[0].ID != m[1].Calls[0].ID || m[3].Text != "It says ok." || !strings.Contains(m[4].Text, "and now?") {
			t.Errorf("the second time the model was told %+v", m)
		}
		r.model.will(say("Hello."))
		r.answered(r.talk(engine.Say{Sandbox: id, Text: "hello", Fresh: true}))
		asked = r.model.requests()
		if m := asked[len(asked)-1].Messages; len(m) != 1 {
			t.Errorf("a fresh chat began with %d messages", len(m))
		}
	})
}

// stuck is a turn of the model that lasts until it is cut.
func stuck(begun chan<- struct{}) turn {
	return func(ctx context.Context, _ agent.Transcript) (agent.Turn, error) {
		close(begun)
		<-ctx.Done()
		return agent.Turn{}, ctx.Err()
	}
}

func TestAChatAndAHealNeverWorkAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", broken)
		r.start()
		begun := make(chan struct{})
		r.model.will(stuck(begun))
		r.crash(id)
		<-begun
		err := r.refused(engine.Say{Sandbox: id, Text: "hello"})
		if !errors.Is(err, engine.Conflict) || !strings.Contains(engine.Hint(err), "--take-over") {
			t.Fatalf("talking about a sandbox that is being healed: %v (%s)", err, engine.Hint(err))
		}
		chatting := make(chan struct{})
		r.model.will(stuck(chatting))
		said := r.talk(engine.Say{Sandbox: id, Text: "let me", TakeOver: true})
		<-chatting
		if run := r.ended(id); run.Outcome != engine.Cancelled {
			t.Errorf("the run that was taken over ended %q", run.Outcome)
		}
		err = r.store.Update(t.Context(), func(tx *store.Tx) error {
			_, _, err := Open(tx, r.h.Policy, id, dana)
			return err
		})
		if !errors.Is(err, engine.Conflict) || !strings.Contains(err.Error(), "dana") {
			t.Errorf("healing a sandbox that is being talked about: %v", err)
		}
		r.crash(id)
		r.await("a verdict", func(tx *store.Tx) (bool, error) {
			list, err := tx.Signals(id, said.Started)
			return len(list) > 0 && list[len(list)-1].Verdict != nil, err
		})
		if runs := view(r, func(tx *store.Tx) ([]engine.HealRun, error) { return tx.OpenRuns() }); len(runs) > 0 {
			t.Errorf("a heal was opened meanwhile: %+v", runs)
		}
		r.update(func(tx *store.Tx) error { _, err := Hush(tx, id, dana); return err })
		said, _ = r.answered(said)
		if said.State != engine.MessageStopped || !strings.Contains(said.Why, "dana") {
			t.Errorf("the turn ended as %+v", said)
		}
		r.awaitHealth(id, engine.Broken) // what was ignored is judged again: the last heal was ended by hand
	})
}

func TestACallIsMadeOnlyIfItIsApproved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		r.start()
		yes := true
		answer := func(m engine.Message, a engine.Answer) error {
			return r.store.Update(t.Context(), func(tx *store.Tx) error {
				_, err := Approve(tx, engine.AnswerApproval{Message: m.ID, Answer: a}, dana)
				return err
			})
		}
		write := func(text string) turn { return call("write", in{"path": "b.txt", "content": text}) }
		r.model.will(call("read", in{"path": "app.js"}), write("one"), write("two"), write("three"), write("four"), say("done"))
		said := r.talk(engine.Say{Sandbox: id, Text: "write", Ask: &yes})

		first := r.awaitAsking(said) // looking was not asked for
		if first.Tool != "write" || !strings.Contains(string(first.Input), "one") || first.AskUntil.IsZero() {
			t.Errorf("it asks as %+v", first)
		}
		if err := answer(first, engine.AnswerNo); err != nil {
			t.Fatal(err)
		}
		second := r.awaitAsking(said)
		if err := answer(first, engine.AnswerOnce); !errors.Is(err, engine.Conflict) {
			t.Errorf("an answer to another question: %v", err)
		}
		if _, there := r.box(id).file("b.txt"); there {
			t.Error("a call that was not approved was made")
		}
		time.Sleep(time.Until(second.AskUntil) + time.Second) // in a bubble
		third := r.awaitAsking(said)
		if second = view(r, func(tx *store.Tx) (engine.Message, error) { return tx.Message(second.ID) }); second.State != engine.MessageDenied {
			t.Errorf("a question that nobody answered ended as %+v", second)
		}
		if err := answer(third, engine.AnswerChat); err != nil {
			t.Fatal(err)
		}
		said, turn := r.answered(said)
		if got, _ := r.box(id).file("b.txt"); got != "four" || said.Ask || said.State != engine.MessageDone {
			t.Errorf("after an approval of all, the file is %q and the turn %+v", got, said)
		}
		if len(turn) != 6 || turn[1].State != engine.MessageDenied || turn[3].AnsweredBy.Name != "dana" {
			t.Errorf("the turn is %+v", turn)
		}
	})
}

func TestAnInterruptedAnswerReadsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.sandbox("api", map[string]string{"app.js": "ok"})
		stop := r.start()
		begun := make(chan struct{})
		r.model.will(call("write", in{"path": "b.txt", "content": "kept"}), stuck(begun))
		said := r.talk(engine.Say{Sandbox: id, Text: "go"})
		<-begun
		stop()
		if m := view(r, func(tx *store.Tx) (engine.Message, error) { return tx.Message(said.ID) }); m.State.Over() {
			t.Fatalf("an engine that leaves wrote %+v", m)
		}
		r.start()
		said, _ = r.answered(said)
		if said.State != engine.MessageInterrupted || said.Why == "" {
			t.Errorf("the turn ended as %+v", said)
		}
		if got, _ := r.box(id).file("b.txt"); got != "kept" {
			t.Error("what the chat did was undone")
		}
		r.model.will(say("again"))
		if said, _ = r.answered(r.talk(engine.Say{Sandbox: id, Text: "go on"})); said.State != engine.MessageDone {
			t.Errorf("the next turn ended as %+v", said)
		}
	})
}

func TestSecretsStayOutOfAChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.h.Redact = func(s string) string { return strings.ReplaceAll(s, "canary", "***") }
		id := r.sandbox("api", map[string]string{"app.js": "ok", "a.txt": "the canary sings"})
		r.start()
		r.model.will(call("read", in{"path": "a.txt"}), call("write", in{"path": "b.txt", "content": "a canary"}), say("a canary"))
		_, turn := r.answered(r.talk(engine.Say{Sandbox: id, Text: "look"}))
		for _, m := range turn {
			if strings.Contains(m.Text+m.Diff+m.Argument+string(m.Input), "canary") {
				t.Errorf("it is in %+v", m)
			}
		}
		for _, asked := range r.model.requests() {
			for _, m := range asked.Messages {
				if len(m.Results) > 0 && strings.Contains(m.Results[0].Text, "canary") {
					t.Error("it went to the model")
				}
			}
		}
	})
}
