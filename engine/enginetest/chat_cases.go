package enginetest

import (
	"testing"

	"sbx/engine"
)

var chatCases = []testCase{
	{"AChatIsAnswered", chatAnswered},
	{"AChatWithoutAModelIsRefused", chatRefused},
	{"WhatCantBeSaidIsRefused", chatInvalid},
	{"AnAnswerToNothingIsNotFound", answerNothing},
}

var keyCases = []testCase{
	{"AKeyIsShownOnce", keyShownOnce},
	{"AKeyIsRevokedOnce", keyRevoked},
}

func chatAnswered(t *testing.T, s *suite) {
	if !s.Chats {
		t.Skip("this engine has no model")
	}
	r := s.do(t, engine.Say{Sandbox: s.home.ID, Text: "hello there"})
	if r.Message == "" || r.Sandbox != s.home.ID {
		t.Fatalf("the receipt is %+v, want one that names the message", r)
	}
	var answer, said engine.Message
	for m, err := range engine.FollowTurn(s.ctx(t), s.Engine, s.home.ID, r.Message) {
		if err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case engine.MessageSaid:
			said = m
		case engine.MessageAnswer:
			answer = m
		}
	}
	if said.State != engine.MessageDone || said.Text != "hello there" || said.ID != r.Message || said.Turn != said.ID {
		t.Errorf("what was said ended as %+v", said)
	}
	if answer.State != engine.MessageDone || answer.Text == "" || answer.Turn != said.ID {
		t.Errorf("the answer ended as %+v", answer)
	}
	list, err := s.Engine.Messages(s.ctx(t), engine.MessageQuery{Sandbox: s.home.ID})
	if err != nil || len(list) < 2 {
		t.Fatalf("the chat has %d messages, %v", len(list), err)
	}
	for i, m := range list {
		if m.Number != i+1 || m.Started.IsZero() || !m.State.Over() || m.Ended.IsZero() {
			t.Errorf("message %d is %+v", i+1, m)
		}
	}
	rest, err := s.Engine.Messages(s.ctx(t), engine.MessageQuery{Sandbox: s.home.ID, After: 1, Limit: 1})
	if err != nil || len(rest) != 1 || rest[0].Number != list[len(list)-1].Number {
		t.Errorf("the newest one is %+v, %v", rest, err)
	}
	_, err = s.Engine.Do(s.ctx(t), engine.NewAction(engine.StopChat{Sandbox: s.home.ID}))
	wantCode(t, "stop a chat that is over", err, engine.Conflict)
}

func chatRefused(t *testing.T, s *suite) {
	if s.Chats {
		t.Skip("this engine has a model")
	}
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.Say{Sandbox: s.home.ID, Text: "hello"}))
	wantCode(t, "say something to nobody", err, engine.Unavailable)
	if engine.Hint(err) == "" {
		t.Errorf("%v doesn't say what to do", err)
	}
}

func chatInvalid(t *testing.T, s *suite) {
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.Say{Sandbox: s.home.ID, Text: " \n"}))
	wantCode(t, "say nothing", err, engine.Invalid)
	_, err = s.Engine.Do(s.ctx(t), engine.NewAction(engine.Say{Sandbox: "sb-nowhere", Text: "hello"}))
	wantCode(t, "talk about no sandbox", err, engine.NotFound)
	_, err = s.Engine.Messages(s.ctx(t), engine.MessageQuery{Sandbox: "sb-nowhere"})
	wantCode(t, "read the chat about no sandbox", err, engine.NotFound)
}

func answerNothing(t *testing.T, s *suite) {
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.AnswerApproval{Message: "ms-nothing", Answer: engine.AnswerNo}))
	wantCode(t, "answer what nobody asked", err, engine.NotFound)
}

func keyShownOnce(t *testing.T, s *suite) {
	a := engine.NewAction(engine.IssueKey{Sandbox: s.home.ID, Name: "suite"})
	first, err := s.Engine.Do(s.ctx(t), a)
	if err != nil || first.Key == "" || len(first.Secret) < 16 {
		t.Fatalf("the receipt is %+v, %v; want the key and its secret", first, err)
	}
	list, err := s.Engine.Keys(s.ctx(t), s.home.ID)
	if err != nil || len(list) == 0 {
		t.Fatalf("there are %d keys, %v", len(list), err)
	}
	k := list[len(list)-1]
	if k.ID != first.Key || k.Sandbox != s.home.ID || k.Name != "suite" || k.By.Kind == "" || !k.Revoked.IsZero() {
		t.Errorf("the key is %+v", k)
	}
}

func keyRevoked(t *testing.T, s *suite) {
	r := s.do(t, engine.IssueKey{Sandbox: s.home.ID})
	s.do(t, engine.RevokeKey{Key: r.Key})
	if again := s.do(t, engine.RevokeKey{Key: r.Key}); again.Note == "" {
		t.Errorf("revoking twice gave %+v, want a note", again)
	}
	_, err := s.Engine.Do(s.ctx(t), engine.NewAction(engine.RevokeKey{Key: "vk-nothing"}))
	wantCode(t, "revoke no key", err, engine.NotFound)
	list, err := s.Engine.Keys(s.ctx(t), "")
	for _, k := range list {
		if k.ID == r.Key && k.Revoked.IsZero() {
			t.Errorf("the key is %+v, want it revoked", k)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
