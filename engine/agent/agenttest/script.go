// Package agenttest is a scripted model server that speaks the Messages API,
// for tests and demos without a model.
//
// The one rule: it is a real server. It streams, and fails, over a connection
// as the provider does, so that what works with it works without it.
package agenttest

import (
	"encoding/json"
	"fmt"
	"io"

	"sbx/engine"
)

// Script is what the server answers, a turn for each request. A request gets
// the first turn that fits it and was not given yet; one that none fits is
// refused with words that say so.
type Script struct {
	Turns []Turn `json:"turns"`
	// Key, if it is set, must come with every request, as x-api-key or bearer.
	Key string `json:"key,omitempty"`
}

// Turn is one answer: words, then calls, or a failure.
type Turn struct {
	// When and Last choose the requests that the turn is for: those with these
	// words anywhere, and in their last message. Empty fits all.
	When string `json:"when,omitempty"`
	Last string `json:"last,omitempty"`
	// Repeat keeps the turn for further requests.
	Repeat bool `json:"repeat,omitempty"`

	Thinking string `json:"thinking,omitempty"` // streamed first, with a signature
	Text     string `json:"text,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	// Stop is the stop reason; "" is tool_use with calls and end_turn without.
	Stop  string `json:"stop,omitempty"`
	Usage *Usage `json:"usage,omitempty"`

	Delay engine.Duration `json:"delay,omitempty"` // before the answer's head
	Pace  engine.Duration `json:"pace,omitempty"`  // before each event
	Fail  *Failure        `json:"fail,omitempty"`
}

// Call is a tool call in a [Turn].
type Call struct {
	ID    string          `json:"id,omitempty"` // "": one of its own; "-": none
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitempty"`
	// Raw is streamed instead of Input, however broken.
	Raw string `json:"raw,omitempty"`
}

// Usage is what the turn says it cost.
type Usage struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheWrites int64 `json:"cacheWrites,omitempty"`
	CacheReads  int64 `json:"cacheReads,omitempty"`
}

// FailureKind is a way to fail.
type FailureKind string

// The ways to fail. All but Status happen after Failure.After events of the
// turn.
const (
	Status  FailureKind = "status"  // Failure's Status, Headers and Body instead of a stream
	Cut     FailureKind = "cut"     // the stream ends as if it were whole
	Reset   FailureKind = "reset"   // the connection is reset
	Silence FailureKind = "silence" // nothing more comes, until the client leaves
	Pings   FailureKind = "pings"   // nothing but pings comes, until the client leaves
	Garbage FailureKind = "garbage" // an event that isn't JSON
	Error   FailureKind = "error"   // an error event of Failure.Type
)

// Failure is how a turn fails.
type Failure struct {
	Kind    FailureKind       `json:"kind"`
	After   int               `json:"after,omitempty"`
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the answer's; "" is an error of the API of Type with Message.
	Body    string `json:"body,omitempty"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
}

// Load reads a script in JSON. Unknown keys are errors: a misspelt one would
// make a test pass that can't.
func Load(r io.Reader) (Script, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var s Script
	if err := dec.Decode(&s); err != nil {
		return Script{}, engine.Errorf(engine.Invalid, "read script: %w", err)
	}
	for i, t := range s.Turns {
		if err := t.check(); err != nil {
			return Script{}, engine.Errorf(engine.Invalid, "read script: turn %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (t Turn) check() error {
	for _, c := range t.Calls {
		if c.Name == "" {
			return fmt.Errorf("a call has no name")
		}
	}
	if t.Fail == nil {
		return nil
	}
	switch t.Fail.Kind {
	case Status:
		if t.Fail.Status < 200 || t.Fail.Status > 599 {
			return fmt.Errorf("status %d is none", t.Fail.Status)
		}
	case Cut, Reset, Silence, Pings, Garbage, Error:
	default:
		return fmt.Errorf("there is no failure %q", t.Fail.Kind)
	}
	return nil
}
