package agent

import (
	"context"
	"encoding/json"
	"errors"

	"sbx/engine"
)

// A Model answers a conversation with words and tool calls.
type Model interface {
	// Name is the model's name, for attempts and prices.
	Name() string
	// Reply continues t. partial, which may be nil, gets words as they come.
	// An error is classified: engine.Unauthorized, Exhausted (a spend limit),
	// Unavailable (worth retrying, with RetryAfter if the provider named it),
	// Invalid (the request can't be sent as it is; [ErrTooLong] is such a one). The
	// Turn then holds what the failed request cost, and nothing of it is done.
	Reply(ctx context.Context, t Transcript, tools []Tool, partial func(text string)) (Turn, error)
}

// ErrTooLong is in the chain of a Model's error when the conversation no longer
// fits: the loop then shortens what is old and asks again.
var ErrTooLong = errors.New("the prompt is too long")

// Transcript is a conversation so far. System and the tools stay byte for byte
// the same within a run, so that the provider's prompt cache holds.
type Transcript struct {
	System   string
	Messages []Message
}

// Role is who speaks.
type Role string

// The roles of the Messages API.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation: words, tool calls (assistant) or tool
// results (user).
type Message struct {
	Role    Role
	Text    string
	Calls   []Call
	Results []Result
	// Raw is the provider's own form of an assistant turn, to be sent back
	// unchanged (thinking blocks carry signatures).
	Raw json.RawMessage
}

// Call is a tool call that a model made.
type Call struct {
	ID    string
	Name  string
	Input json.RawMessage
}

// Result is the answer to a Call.
type Result struct {
	ID    string
	Text  string
	Error bool
}

// StopReason is why a model stopped.
type StopReason string

// Why a model stops.
const (
	EndTurn   StopReason = "end_turn"
	ToolUse   StopReason = "tool_use"
	MaxTokens StopReason = "max_tokens"
	Refusal   StopReason = "refusal"
	Paused    StopReason = "pause_turn"
	// ContextFull: the conversation no longer fits the model.
	ContextFull StopReason = "model_context_window_exceeded"
)

// Turn is what a model answered.
type Turn struct {
	Message Message
	Stop    StopReason
	Spent   engine.Spent
}
