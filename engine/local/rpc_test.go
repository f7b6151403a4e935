package local

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/textproto"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"sbx/client"
	"sbx/engine"
	"sbx/engine/server"
)

// rpc speaks JSON-RPC over a pipe.
type rpc struct {
	t    *testing.T
	pipe engine.Pipe
	in   *bufio.Reader
	last int
	told []int // the progress that came by itself
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Code int `json:"code"`
	} `json:"error,omitempty"`
}

func (r *rpc) send(method string, params any, id int) {
	r.t.Helper()
	p, err := json.Marshal(params)
	if err != nil {
		r.t.Fatal(err)
	}
	body, err := json.Marshal(message{ID: id, Method: method, Params: p})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(r.pipe, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		r.t.Fatalf("send %s: %v", method, err)
	}
}

func (r *rpc) receive() message {
	r.t.Helper()
	head, err := textproto.NewReader(r.in).ReadMIMEHeader()
	if err != nil {
		r.t.Fatalf("receive: %v", err)
	}
	n, err := strconv.Atoi(head.Get("Content-Length"))
	if err != nil {
		r.t.Fatalf("the head is %v", head)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r.in, body); err != nil {
		r.t.Fatalf("receive: %v", err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		r.t.Fatalf("receive %q: %v", body[:min(n, 200)], err)
	}
	return m
}

// answer is the answer to a request; what comes before it by itself is noted.
func (r *rpc) answer(id int) message {
	r.t.Helper()
	for {
		m := r.receive()
		if m.Method == "progress" {
			var p struct{ N int }
			if err := json.Unmarshal(m.Params, &p); err != nil {
				r.t.Fatal(err)
			}
			r.told = append(r.told, p.N)
			continue
		}
		if m.ID != id {
			r.t.Fatalf("the answer is to %d, want %d", m.ID, id)
		}
		return m
	}
}

func (r *rpc) call(method string, params any) message {
	r.t.Helper()
	r.last++
	r.send(method, params, r.last)
	return r.answer(r.last)
}

func needNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("node is not installed, and CI leaves nothing out")
	}
	t.Skip("node is not installed")
}

// ways are an engine in this process, and the same through a server and client.
func ways(t *testing.T) (sandbox engine.SandboxID, ways map[string]engine.Engine) {
	t.Helper()
	e := open(t, config(t, t.TempDir(), ""))
	srv := &server.Server{Engine: e, Version: "test", Authenticate: func(context.Context, string) (engine.Actor, engine.Role, error) {
		return engine.Actor{Kind: engine.ActorClient, Name: "peer"}, engine.Operator, nil
	}}
	h := httptest.NewServer(srv.Handler())
	t.Cleanup(h.Close)
	t.Cleanup(func() { _ = srv.Shutdown(context.Background()) }) // hangs up; nothing to wait for
	c, err := client.Dial(t.Context(), client.Config{URL: h.URL, Token: "any"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	sb := ready(t, e, engine.CreateSandbox{Name: "peers", Origin: source(t), Keep: true})
	return sb.ID, map[string]engine.Engine{"in this process": e, "through a client": c}
}

func TestALanguageServerCanBeSpokenTo(t *testing.T) {
	needNode(t)
	sandbox, ways := ways(t)
	peer, err := os.ReadFile("testdata/peer.js")
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range ways {
		if _, err := engine.Save(t.Context(), e, sandbox, name+".js", "", peer); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			h, err := engine.SpawnHandle(ctx, e, sandbox, engine.Command{Shell: "exec node '" + name + ".js'"},
				engine.SpawnOptions{Stdin: true, OnStderr: func(engine.LogLine) {}, Keep: -1})
			if err != nil {
				t.Fatal(err)
			}
			p, err := h.Pipe(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			converse(t, &rpc{t: t, pipe: p, in: bufio.NewReader(p)})
			res, err := h.Wait(ctx)
			if err != nil || !res.Success {
				t.Errorf("the peer ended with %+v, %v", res.ExecResult, err)
			}
			if rest, err := io.ReadAll(p); err != nil || len(rest) > 0 {
				t.Errorf("after its end it wrote %q, %v", rest, err)
			}
		})
	}
}

// converse is a whole conversation: the beginning, a thousand requests, some
// of them at once, a big one, and the end.
func converse(t *testing.T, r *rpc) {
	if m := r.call("echo", map[string]int{"n": 1}); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("before it is initialized: %+v", m)
	}
	if m := r.call("initialize", map[string]any{"processId": os.Getpid()}); !strings.Contains(string(m.Result), `"name":"peer"`) {
		t.Fatalf("initialize: %s", m.Result)
	}
	for n := 1; n <= 500; n++ {
		if m := r.call("echo", map[string]int{"n": n}); string(m.Result) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("echo %d: %s", n, m.Result)
		}
	}
	first := r.last + 1
	for n := 501; n <= 1000; n++ { // without waiting for the answers
		r.last++
		r.send("echo", map[string]int{"n": n}, r.last)
	}
	for n := 501; n <= 1000; n++ {
		if m := r.answer(first + n - 501); string(m.Result) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("echo %d: %s", n, m.Result)
		}
	}
	if got := fmt.Sprint(r.told); got != "[100 200 300 400 500 600 700 800 900 1000]" {
		t.Errorf("it told its progress as %s", got)
	}
	big := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	var echoed struct{ Text string }
	if err := json.Unmarshal(r.call("echo", map[string]any{"n": 1, "text": big}).Result, &echoed); err != nil || echoed.Text != big {
		t.Errorf("of a message of %d bytes %d came back: %v", len(big), len(echoed.Text), err)
	}
	if m := r.call("shutdown", nil); m.Error != nil {
		t.Errorf("shutdown: %+v", m.Error)
	}
	r.send("exit", nil, 0)
}

func TestAPeerThatIsHungUpOnEndsByItself(t *testing.T) {
	needNode(t)
	sandbox, ways := ways(t)
	e := ways["through a client"]
	peer, err := os.ReadFile("testdata/peer.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Save(t.Context(), e, sandbox, "peer.js", "", peer); err != nil {
		t.Fatal(err)
	}
	h, err := engine.SpawnHandle(t.Context(), e, sandbox, engine.Command{Shell: "exec node peer.js"}, engine.SpawnOptions{Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.CloseStdin(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := h.Wait(t.Context())
	if err != nil || res.ExitCode != 3 || res.Stderr != "peer is up\n" {
		t.Errorf("it ended with %+v, %v; want its own 3", res, err)
	}
}
