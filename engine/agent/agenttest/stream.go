package agenttest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
	"unicode/utf8"
)

// event is one of a stream.
type event struct {
	name string
	data []byte
}

// Events is how many events the turn's stream has: the values that After of a
// [Failure] can have end before it.
func (t Turn) Events() int { return len(t.events("")) }

// answer streams a turn, or fails as it says.
func answer(w http.ResponseWriter, req *http.Request, t Turn) {
	ctx := req.Context()
	if !pause(ctx, t.Delay.D()) {
		return
	}
	if t.Fail != nil && t.Fail.Kind == Status {
		answerStatus(w, *t.Fail)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Request-Id", "req_script")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush() // the client sees the end of the connection, if it is gone
	for i, e := range t.events("msg_" + rand.Text()) {
		if t.Fail != nil && i >= t.Fail.After {
			break
		}
		if !pause(ctx, t.Pace.D()) || send(w, e) != nil {
			return
		}
		_ = out.Flush() // as above
	}
	if t.Fail != nil {
		breakOff(ctx, w, *t.Fail)
	}
}

func send(w http.ResponseWriter, e event) error {
	_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, e.data)
	return err
}

func answerStatus(w http.ResponseWriter, f Failure) {
	body := []byte(f.Body)
	if f.Body == "" {
		w.Header().Set("Content-Type", "application/json")
		body = apiError(cmp.Or(f.Type, "api_error"), cmp.Or(f.Message, "scripted failure"))
	}
	for k, v := range f.Headers {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	w.Write(body) // a client that left needs no answer
}

// breakOff ends a stream in the failure's way.
func breakOff(ctx context.Context, w http.ResponseWriter, f Failure) {
	out := http.NewResponseController(w)
	switch f.Kind {
	case Silence:
		<-ctx.Done()
	case Pings:
		for pause(ctx, 5*time.Millisecond) && send(w, event{"ping", []byte(`{"type":"ping"}`)}) == nil {
			_ = out.Flush() // pause notices a client that left
		}
	case Garbage:
		send(w, event{"content_block_delta", []byte(`{"type":"content_block_delta","index":`)})
	case Error:
		send(w, event{"error", apiError(cmp.Or(f.Type, "overloaded_error"), cmp.Or(f.Message, "scripted failure"))})
	case Reset:
		reset(out)
	}
}

// reset closes the connection so that the client's kernel hears RST, not FIN.
func reset(out *http.ResponseController) {
	conn, _, err := out.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // what net/http offers for HTTP/2
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the close then is a FIN, which breaks the stream too
	}
	conn.Close()
}

// pause reports whether the client is still there after d.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type object map[string]any

// events are those of a whole turn.
func (t Turn) events(id string) []event {
	u := t.Usage
	if u == nil {
		u = &Usage{Input: 100, Output: 20}
	}
	usage := object{
		"input_tokens": u.Input, "output_tokens": 1,
		"cache_creation_input_tokens": u.CacheWrites, "cache_read_input_tokens": u.CacheReads,
	}
	s := &stream{}
	s.add("message_start", object{"message": object{
		"id": id, "type": "message", "role": "assistant", "model": "claude-script",
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}})
	s.add("ping", object{})
	s.blocks(t)
	stop := t.Stop
	if stop == "" {
		stop = "end_turn"
		if len(t.Calls) > 0 {
			stop = "tool_use"
		}
	}
	s.add("message_delta", object{
		"delta": object{"stop_reason": stop, "stop_sequence": nil},
		"usage": object{"output_tokens": u.Output},
	})
	s.add("message_stop", object{})
	return s.events
}

type stream struct {
	events []event
	index  int
}

func (s *stream) add(name string, data object) {
	data["type"] = name
	b, err := json.Marshal(data)
	if err != nil {
		b = []byte("{}") // an Input that isn't JSON: Raw is for those
	}
	s.events = append(s.events, event{name, b})
}

func (s *stream) blocks(t Turn) {
	if t.Thinking != "" {
		s.block(object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": t.Thinking},
			object{"type": "signature_delta", "signature": "c2lnbmVk"})
	}
	if t.Text != "" {
		var deltas []object
		for _, piece := range pieces(t.Text) {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		s.block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range t.Calls {
		s.call(c)
	}
}

func (s *stream) call(c Call) {
	id := c.ID
	switch id {
	case "":
		id = "toolu_" + rand.Text()
	case "-":
		id = ""
	}
	input := c.Raw
	if input == "" {
		input = cmp.Or(string(c.Input), "{}")
	}
	var deltas []object
	for _, piece := range pieces(input) {
		deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
	}
	s.block(object{"type": "tool_use", "id": id, "name": c.Name, "input": object{}}, deltas...)
}

func (s *stream) block(begin object, deltas ...object) {
	s.add("content_block_start", object{"index": s.index, "content_block": begin})
	for _, d := range deltas {
		s.add("content_block_delta", object{"index": s.index, "delta": d})
	}
	s.add("content_block_stop", object{"index": s.index})
	s.index++
}

// pieces are s in at most eight parts, as a model's words come.
func pieces(s string) []string {
	size := max(8, (len(s)+7)/8)
	var out []string
	for len(s) > size {
		cut := size
		for cut < len(s) && !utf8.RuneStart(s[cut]) {
			cut++
		}
		out, s = append(out, s[:cut]), s[cut:]
	}
	return append(out, s)
}
