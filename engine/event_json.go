package engine

import (
	"encoding/json"
	"fmt"
	"time"
)

// eventCodec is how each kind is read back. A kind that isn't here becomes an
// UnknownEvent.
var eventCodec = map[string]func([]byte) (EventBody, error){
	KindSandboxChanged: decodeAs[SandboxChanged],
	KindSandboxRemoved: decodeAs[SandboxRemoved],
	KindProcessChanged: decodeAs[ProcessChanged],
	KindSignalRaised:   decodeAs[SignalRaised],
	KindSignalJudged:   decodeAs[SignalJudged],
	KindHealStarted:    decodeAs[HealStarted],
	KindHealChanged:    decodeAs[HealChanged],
	KindHealAttempted:  decodeAs[HealAttempted],
	KindHealStepped:    decodeAs[HealStepped],
	KindHealFinished:   decodeAs[HealFinished],
	KindHealNoted:      decodeAs[HealNoted],

	KindIncidentChanged: decodeAs[IncidentChanged],
	KindChatMessaged:    decodeAs[ChatMessaged],
	KindKeyChanged:      decodeAs[KeyChanged],
	KindSessionChanged:  decodeAs[SessionChanged],
}

func decodeAs[T EventBody](b []byte) (EventBody, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}

// DecodeEventBody reads the body of an event of the given kind.
func DecodeEventBody(kind string, body []byte) (EventBody, error) {
	decode, ok := eventCodec[kind]
	if !ok {
		return UnknownEvent{Name: kind, Raw: body}, nil
	}
	b, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", kind, err)
	}
	return b, nil
}

// EncodeEventBody writes what [DecodeEventBody] reads.
func EncodeEventBody(b EventBody) ([]byte, error) {
	if u, ok := b.(UnknownEvent); ok {
		return u.Raw, nil
	}
	return json.Marshal(b)
}

type eventJSON struct {
	Seq    Seq             `json:"seq"`
	Time   time.Time       `json:"time"`
	By     Actor           `json:"by"`
	Action ActionID        `json:"action,omitempty"`
	Kind   string          `json:"kind"`
	Body   json.RawMessage `json:"body"`
}

// MarshalJSON writes {"seq","time","by","action","kind","body"}.
func (e Event) MarshalJSON() ([]byte, error) {
	body, err := EncodeEventBody(e.Body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(eventJSON{Seq: e.Seq, Time: e.Time, By: e.By, Action: e.Action, Kind: e.Kind(), Body: body})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Event) UnmarshalJSON(b []byte) error {
	var j eventJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	body, err := DecodeEventBody(j.Kind, j.Body)
	if err != nil {
		return err
	}
	*e = Event{Seq: j.Seq, Time: j.Time, By: j.By, Action: j.Action, Body: body}
	return nil
}
