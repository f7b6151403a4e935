package engine

import (
	"encoding/json"
	"time"
)

// MessageKind is what a message of a chat is.
type MessageKind string

// The kinds of messages. A turn is what a person said and all that answers it.
const (
	MessageSaid   MessageKind = "said"   // by a person; its State is that of the turn
	MessageAnswer MessageKind = "answer" // words of the model
	MessageTool   MessageKind = "tool"   // a tool call and its result
	MessageNote   MessageKind = "note"   // words of sbx: a checkpoint, a wait, an end
)

// MessageState is how far a message is, and of what was said how far its turn.
type MessageState string

// The states of messages.
const (
	MessageWaiting     MessageState = "waiting" // for the sandbox, or for a heal that is being taken over
	MessageRunning     MessageState = "running"
	MessageAsking      MessageState = "asking" // a tool call waits to be approved
	MessageDone        MessageState = "done"
	MessageFailed      MessageState = "failed"
	MessageDenied      MessageState = "denied"      // the call was not approved, so it was not made
	MessageStopped     MessageState = "stopped"     // by an operator
	MessageInterrupted MessageState = "interrupted" // the engine stopped in it
)

// Over reports whether the message changes no more.
func (s MessageState) Over() bool {
	return s != MessageWaiting && s != MessageRunning && s != MessageAsking
}

// Message is one part of a chat about a sandbox (SPEC §7.5). Its row grows in
// place while the model speaks.
type Message struct {
	ID      MessageID    `json:"id"`
	Sandbox SandboxID    `json:"sandbox"`
	Number  int          `json:"number"` // from 1, in the order of the conversation
	Turn    MessageID    `json:"turn"`   // what a person said that this belongs to; of that itself, its own id
	Kind    MessageKind  `json:"kind"`
	State   MessageState `json:"state"`
	By      Actor        `json:"by,omitzero"`
	// Text is what was said, answered or noted, or a tool's result; bounded,
	// and redacted.
	Text string `json:"text,omitempty"`

	// Of what a person said: Fresh begins the conversation anew, Ask has each
	// call that acts approved first, Spent is what the turn cost so far,
	// Checkpoint is the workspace before its first edit, Why says how it ended
	// if it isn't done.
	Fresh      bool         `json:"fresh,omitempty"`
	Ask        bool         `json:"ask,omitempty"`
	Model      string       `json:"model,omitempty"`
	Spent      Spent        `json:"spent,omitzero"`
	Checkpoint CheckpointID `json:"checkpoint,omitempty"`
	Why        string       `json:"why,omitempty"`

	// Of a tool call: its tool, the call in one line, its whole input, and what
	// it changed in the workspace.
	Tool     string          `json:"tool,omitempty"`
	Argument string          `json:"argument,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Diff     string          `json:"diff,omitempty"`
	// Of one that asks: until when, after which it is a no, and the answer.
	AskUntil   time.Time `json:"askUntil,omitzero"`
	Answer     Answer    `json:"answer,omitempty"`
	AnsweredBy Actor     `json:"answeredBy,omitzero"`

	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// Answer is what a person says to a call that waits to be approved.
type Answer string

// The answers.
const (
	AnswerOnce Answer = "once" // this call
	AnswerChat Answer = "chat" // this and all others of the chat
	AnswerNo   Answer = "no"
)

// MaxSaid is how many bytes a person may say at once.
const MaxSaid = 64 << 10

// MessageQuery selects messages of a sandbox's chat.
type MessageQuery struct {
	Sandbox SandboxID `json:"sandbox"`
	After   int       `json:"after,omitempty"` // only those with a higher Number
	Limit   int       `json:"limit,omitempty"` // the newest so many; 0: all that are kept
}
