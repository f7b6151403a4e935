package enginetest

import (
	"context"
	"slices"
	"strings"

	"sbx/engine"
)

// chat is what a fake remembers of chats and keys.
type chat struct {
	messages []engine.Message
	keys     []engine.Key
	notices  []engine.Notice
}

// put writes a message and tells of it. The lock is held.
func (f *Fake) put(by author, m engine.Message) engine.Message {
	if m.Number == 0 {
		m.ID, m.Number, m.Started = engine.MessageID(engine.NewID(engine.MessagePrefix)), 1, now()
		for _, o := range f.chat.messages {
			if o.Sandbox == m.Sandbox {
				m.Number = o.Number + 1
			}
		}
		if m.Kind == engine.MessageSaid {
			m.Turn = m.ID
		}
		f.chat.messages = append(f.chat.messages, m)
	}
	if m.State.Over() {
		m.Ended = now()
	}
	i := slices.IndexFunc(f.chat.messages, func(o engine.Message) bool { return o.ID == m.ID })
	f.chat.messages[i] = m
	f.append(by, engine.ChatMessaged{Message: m})
	return m
}

// say answers with what was said, word by word. "wait" is never answered, and
// "run …" asks before it pretends to.
func (f *Fake) say(by author, sb engine.Sandbox, b engine.Say, r *engine.Receipt) error {
	if strings.TrimSpace(b.Text) == "" {
		return engine.Errorf(engine.Invalid, "nothing was said")
	}
	if said, ok := f.openTurn(sb.ID); ok {
		return engine.Errorf(engine.Conflict, "%s is being talked about already, by %s", sb.Name, said.By)
	}
	said := f.put(by, engine.Message{
		Sandbox: sb.ID, Kind: engine.MessageSaid, State: engine.MessageRunning, By: by.by, Text: b.Text, Fresh: b.Fresh,
		Ask: b.Ask != nil && *b.Ask,
	})
	r.Message = said.ID
	switch {
	case b.Text == "wait":
		return nil
	case strings.HasPrefix(b.Text, "run "):
		f.put(itself, engine.Message{
			Sandbox: sb.ID, Turn: said.ID, Kind: engine.MessageTool, State: engine.MessageAsking, Tool: "run",
			Argument: strings.TrimPrefix(b.Text, "run "), AskUntil: now().Add(askFor),
		})
		return nil
	}
	f.answer(said)
	return nil
}

const askFor = 10 * 60e9 // ten minutes

func (f *Fake) answer(said engine.Message) {
	m := engine.Message{Sandbox: said.Sandbox, Turn: said.ID, Kind: engine.MessageAnswer, State: engine.MessageRunning}
	for word := range strings.FieldsSeq("you said: " + said.Text) {
		m.Text = strings.TrimSpace(m.Text + " " + word)
		m = f.put(itself, m)
	}
	m.State = engine.MessageDone
	f.put(itself, m)
	f.endTurn(said, engine.MessageDone, "")
}

func (f *Fake) endTurn(said engine.Message, state engine.MessageState, why string) {
	for _, m := range slices.Clone(f.chat.messages) {
		if m.Turn == said.ID && m.ID != said.ID && !m.State.Over() {
			m.State = state
			f.put(itself, m)
		}
	}
	said.State, said.Why = state, why
	f.put(itself, said)
}

func (f *Fake) openTurn(id engine.SandboxID) (engine.Message, bool) {
	i := slices.IndexFunc(f.chat.messages, func(m engine.Message) bool {
		return m.Sandbox == id && m.Kind == engine.MessageSaid && !m.State.Over()
	})
	if i < 0 {
		return engine.Message{}, false
	}
	return f.chat.messages[i], true
}

func (f *Fake) stopChat(by author, sb engine.Sandbox, r *engine.Receipt) error {
	said, ok := f.openTurn(sb.ID)
	if !ok {
		return engine.Errorf(engine.Conflict, "nobody is being answered about %s", sb.Name)
	}
	r.Message = said.ID
	f.endTurn(said, engine.MessageStopped, "stopped by "+by.by.String())
	return nil
}

func (f *Fake) answerApproval(by author, b engine.AnswerApproval, r *engine.Receipt) error {
	i := slices.IndexFunc(f.chat.messages, func(m engine.Message) bool { return m.ID == b.Message })
	if i < 0 {
		return engine.Errorf(engine.NotFound, "no message %q", b.Message)
	}
	m := f.chat.messages[i]
	r.Message, r.Sandbox = m.ID, m.Sandbox
	if m.State != engine.MessageAsking {
		return engine.Errorf(engine.Conflict, "message %s asks nothing", m.ID)
	}
	m.Answer, m.AnsweredBy, m.State, m.Text = b.Answer, by.by, engine.MessageDone, "it ran"
	switch b.Answer {
	case engine.AnswerNo:
		m.State, m.Text = engine.MessageDenied, ""
	case engine.AnswerOnce, engine.AnswerChat:
	default:
		return engine.Errorf(engine.Invalid, "%q is no answer", b.Answer)
	}
	f.put(by, m)
	if said, ok := f.openTurn(m.Sandbox); ok {
		f.endTurn(said, engine.MessageDone, "")
	}
	return nil
}

func (f *Fake) issueKey(by author, b engine.IssueKey, r *engine.Receipt) {
	k := engine.Key{ID: engine.KeyID(engine.NewID(engine.KeyPrefix)), Sandbox: b.Sandbox, Name: b.Name, By: by.by, Created: now()}
	if b.For > 0 {
		k.Expires = k.Created.Add(b.For.D())
	}
	f.chat.keys = append(f.chat.keys, k)
	f.append(by, engine.KeyChanged{Key: k})
	r.Key, r.Secret = k.ID, engine.NewID("sbx-vk-")
}

func (f *Fake) revokeKey(by author, b engine.RevokeKey, r *engine.Receipt) error {
	i := slices.IndexFunc(f.chat.keys, func(k engine.Key) bool { return k.ID == b.Key })
	if i < 0 {
		return engine.Errorf(engine.NotFound, "no key %q", b.Key)
	}
	k := &f.chat.keys[i]
	r.Key, r.Sandbox = k.ID, k.Sandbox
	if !k.Revoked.IsZero() {
		r.Note = "it was revoked before"
		return nil
	}
	k.Revoked = now()
	f.append(by, engine.KeyChanged{Key: *k})
	return nil
}

func (f *Fake) testNotify(r *engine.Receipt) {
	n := engine.Notice{
		ID: engine.NoticeID(engine.NewID(engine.NoticePrefix)), Kind: engine.NoticeTest, Text: "a test", At: now(),
		State: engine.NoticeSent, Tries: 1, Sent: now(),
	}
	f.chat.notices = append(f.chat.notices, n)
	r.Notice = n.ID
}

// Messages are those of a chat.
func (f *Fake) Messages(_ context.Context, q engine.MessageQuery) ([]engine.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.sandbox(q.Sandbox); err != nil {
		return nil, err
	}
	var list []engine.Message
	for _, m := range f.chat.messages {
		if m.Sandbox == q.Sandbox && m.Number > q.After {
			list = append(list, m)
		}
	}
	return newest(list, q.Limit), nil
}

// Keys are those of a sandbox, or of all.
func (f *Fake) Keys(_ context.Context, id engine.SandboxID) ([]engine.Key, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id != "" {
		if _, err := f.sandbox(id); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(f.chat.keys), func(k engine.Key) bool { return id != "" && k.Sandbox != id }), nil
}

// Notices are those that were sent.
func (f *Fake) Notices(context.Context) ([]engine.Notice, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.chat.notices), nil
}
