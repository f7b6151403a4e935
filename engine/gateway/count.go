package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"sbx/engine"
)

// Bounds of what is looked into: a line of a stream, and an answer in one piece.
const (
	maxLine  = 4 << 20
	maxPiece = 8 << 20
)

// meter is what a sandbox has used since the engine started, requests under way
// included.
type meter struct {
	counted int64 // grows only
	flying  int64 // of it by requests under way
}

// tally is one request's part of its sandbox's meter.
type tally struct {
	g     *Gateway
	key   engine.Key
	model string
	spent engine.Spent
	told  int64 // of spent and guessed, that the meter has
	guess int64 // output that no count has come for, in characters
	most  int64 // what the meter may come to
}

// take begins a request, unless its sandbox's budget is spent.
func (g *Gateway) take(ctx context.Context, k engine.Key) (*tally, error) {
	left, err := g.Left(ctx, k)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.meters[k.Sandbox]
	if m == nil {
		m = &meter{}
		g.meters[k.Sandbox] = m
	}
	if m.flying >= left {
		return nil, engine.Errorf(engine.Exhausted, "the sandbox's tokens of today are spent by requests under way")
	}
	return &tally{g: g, key: k, most: m.counted - m.flying + left}, nil
}

// grow adds what was counted since; it reports whether the budget holds.
func (t *tally) grow() bool {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	now := max(t.spent.Tokens(), t.spent.InputTokens+t.spent.CacheReads+t.spent.CacheWrites+max(t.spent.OutputTokens, t.guess/4))
	m := t.g.meters[t.key.Sandbox]
	m.counted, m.flying, t.told = m.counted+now-t.told, m.flying+now-t.told, now
	return m.counted <= t.most
}

// settle writes down what a request cost, also if it was cut: what no count
// came for is guessed, at four characters a token.
func (g *Gateway) settle(t *tally) {
	t.spent.OutputTokens = max(t.spent.OutputTokens, t.guess/4)
	ctx, cancel := context.WithTimeout(context.Background(), spendWithin)
	defer cancel()
	if err := g.Spend(ctx, t.key, t.model, t.spent); err != nil {
		g.Log.Error("what a request cost was not written down", "sandbox", t.key.Sandbox, "err", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.meters[t.key.Sandbox].flying -= t.told
}

// counter copies an answer and reads the count of tokens in it.
type counter struct {
	w        io.Writer
	flush    *http.ResponseController
	tally    *tally
	provider provider
	sse      bool
	hide     bool // the stream's last chunk is the gateway's own question
}

// copy passes an answer on until it ends, the budget is spent, or ctx ends. A
// client that is told why gets it as an event of the stream.
func (c *counter) copy(ctx context.Context, body io.Reader) error {
	if !c.sse {
		return c.piece(body)
	}
	in := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			line, err = longLine(in, line)
		}
		if len(line) > 0 && !c.line(line) {
			c.tell("rate_limit_error", "the sandbox's budget was spent in the middle of this answer")
			return nil
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			return c.flush.Flush()
		}
		if cause := context.Cause(ctx); engine.AsCode(cause) == engine.Unauthorized {
			c.tell("authentication_error", cause.Error())
			return nil
		}
		return err
	}
}

// longLine is a line that is longer than the reader's buffer.
func longLine(in *bufio.Reader, begun []byte) ([]byte, error) {
	line := bytes.Clone(begun)
	for {
		more, err := in.ReadSlice('\n')
		line = append(line, more...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, errors.New("a line of the answer is too long")
		}
	}
}

// line counts and passes one line; false: the budget is spent.
func (c *counter) line(line []byte) bool {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	ok2 := true
	if ok {
		if drop := c.event(bytes.TrimSpace(data)); drop && c.hide {
			return true
		}
		ok2 = c.tally.grow()
	}
	if _, err := c.w.Write(line); err != nil {
		return true // the reader notices that the client left
	}
	if len(bytes.TrimSpace(line)) == 0 {
		_ = c.flush.Flush() // an event is whole; the next write says if the client left
	}
	return ok2
}

// usage is how either provider tells what was used.
type usage struct {
	Input       int64 `json:"input_tokens"`
	Output      int64 `json:"output_tokens"`
	CacheWrites int64 `json:"cache_creation_input_tokens"`
	CacheReads  int64 `json:"cache_read_input_tokens"`
	Prompt      int64 `json:"prompt_tokens"`
	Completion  int64 `json:"completion_tokens"`
}

// counted is what of an event or an answer is looked at.
type counted struct {
	Type    string `json:"type"`
	Model   string `json:"model"`
	Usage   *usage `json:"usage"`
	Message *struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"` // Anthropic's message_start
	Response *struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"response"` // OpenAI's response.completed
	Delta   json.RawMessage   `json:"delta"`
	Choices []json.RawMessage `json:"choices"`
}

// event reads one event; drop: it has nothing but the count.
func (c *counter) event(data []byte) (drop bool) {
	var ev counted
	if json.Unmarshal(data, &ev) != nil {
		return false // [DONE], or what the client must see for itself
	}
	c.tally.take(ev)
	if c.tally.spent.OutputTokens == 0 { // a count makes guessing needless
		c.tally.guess += int64(len(ev.Delta))
		for _, choice := range ev.Choices {
			c.tally.guess += int64(len(choice))
		}
	}
	return ev.Usage != nil && ev.Choices != nil && len(ev.Choices) == 0
}

// take notes what an event says was used. Counts are of the whole so far.
func (t *tally) take(ev counted) {
	list := []*usage{ev.Usage}
	if t.model == "" {
		t.model = ev.Model
	}
	if ev.Message != nil {
		list, t.model = append(list, ev.Message.Usage), ev.Message.Model
	}
	if ev.Response != nil {
		list, t.model = append(list, ev.Response.Usage), ev.Response.Model
	}
	for _, u := range list {
		if u == nil {
			continue
		}
		s := &t.spent
		s.InputTokens = max(s.InputTokens, u.Input+u.Prompt, 0)
		s.CacheWrites, s.CacheReads = max(s.CacheWrites, u.CacheWrites, 0), max(s.CacheReads, u.CacheReads, 0)
		if out := u.Output + u.Completion; out > 1 { // the first event's is a placeholder
			s.OutputTokens = max(s.OutputTokens, out)
			t.guess = 0
		}
	}
}

// piece copies an answer that is no stream, and reads its count.
func (c *counter) piece(body io.Reader) error {
	var kept bytes.Buffer
	_, err := io.Copy(c.w, io.TeeReader(body, &capped{to: &kept, left: maxPiece}))
	var whole counted
	if json.Unmarshal(kept.Bytes(), &whole) == nil {
		c.tally.take(whole)
	}
	c.tally.grow()
	return err
}

// capped keeps what fits and takes the rest.
type capped struct {
	to   *bytes.Buffer
	left int
}

func (k *capped) Write(b []byte) (int, error) {
	n := min(len(b), k.left)
	k.left -= n
	k.to.Write(b[:n])
	return len(b), nil
}

// tell ends a stream with an error in the provider's shape.
func (c *counter) tell(kind, message string) {
	event := ""
	if c.provider.name == "anthropic" {
		event = "event: error\n"
	}
	_, _ = io.WriteString(c.w, "\n"+event+"data: "+string(c.provider.errorBody(kind, message))+"\n\n") // it may have left
	_ = c.flush.Flush()
}
