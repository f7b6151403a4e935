package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sbx/engine"
	"sbx/store"
)

// lines is a writer that keeps whole lines for whoever looks meanwhile.
type lines struct {
	mu   sync.Mutex
	rest []byte
	all  []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		l.all, l.rest = append(l.all, string(line)), rest
	}
}

func (l *lines) now() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// background is a command of sbx that goes on until it is interrupted.
type background struct {
	cmd      *exec.Cmd
	out, err lines
	ended    chan struct{}
}

func (w *world) start(env []string, args ...string) *background {
	w.t.Helper()
	b := &background{cmd: w.command(args...), ended: make(chan struct{})}
	b.cmd.Env = append(slices.Clone(w.env), env...)
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.err
	if err := b.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = b.cmd.Wait() // its exit code is looked at
		close(b.ended)
	}()
	w.t.Cleanup(func() {
		_ = b.cmd.Process.Kill() // it may have ended
		<-b.ended
	})
	return b
}

// interrupt ends the command as Ctrl-C does and returns its exit code.
func (b *background) interrupt(w *world) int {
	w.t.Helper()
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		w.t.Fatal(err)
	}
	w.eventually("an interrupted command ends", func() bool {
		select {
		case <-b.ended:
			return true
		default:
			return false
		}
	})
	return b.cmd.ProcessState.ExitCode()
}

// proxy is a way to an engine that can be cut.
type proxy struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	live map[net.Conn]bool
	all  sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, to: to, live: map[net.Conn]bool{}}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		p.live[in], p.live[out] = true, true
		p.mu.Unlock()
		p.all.Go(func() { p.pump(in, out) })
		p.all.Go(func() { p.pump(out, in) })
	}
}

func (p *proxy) pump(to, from net.Conn) {
	buf := make([]byte, 700) // so that cuts come within frames
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, to)
	delete(p.live, from)
}

// cut resets every connection, and says how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.live) / 2
	for c := range p.live {
		_ = c.(*net.TCPConn).SetLinger(0) // a FIN cuts it as well
		c.Close()
	}
	return n
}

const counting = `import http.server, os, threading, time

def count():
    n = 0
    while True:
        n += 1
        print("line", n, flush=True)
        time.sleep(0.002)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args):
        pass

threading.Thread(target=count, daemon=True).start()
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
`

var listening = regexp.MustCompile(`address=(127\.0\.0\.1:\d+)`)

// serveHTTP runs an engine over HTTP, and returns where it listens.
func (w *world) serveHTTP() string {
	w.t.Helper()
	b := w.start(nil, "serve", "--listen", "127.0.0.1:0")
	var at string
	w.eventually("the engine listens", func() bool {
		text := strings.Join(b.err.now(), "\n")
		if m := listening.FindStringSubmatch(text); m != nil && strings.Contains(text, "msg=ready") {
			at = m[1]
		}
		return at != ""
	})
	return at
}

// putToken leaves a token in the data directory, before an engine owns it.
func (w *world) putToken(token string, role engine.Role) {
	w.t.Helper()
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		w.t.Fatal(err)
	}
	s, err := store.Open(w.t.Context(), w.home, store.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer s.Close()
	sum := sha256.Sum256([]byte(token))
	err = s.Update(w.t.Context(), func(tx *store.Tx) error {
		return tx.PutToken(store.Token{Name: string(role), Role: role, Hash: sum[:], Created: tx.Now})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestFollowersOverABadWireMissNothing cuts the way to an engine twenty times
// under three followers.
func TestFollowersOverABadWireMissNothing(t *testing.T) {
	t.Parallel()
	needCommand(t, "python3")
	w := newWorld(t, nil)
	p := newProxy(t, w.serveHTTP())
	dir := t.TempDir()
	w.write(dir, "sbx.toml", "[app]\ncommand = \"exec python3 count.py\"\nhealth = \"/\"\nstart_timeout = \"200s\"\n")
	w.write(dir, "count.py", counting)
	w.ok("create", "--from", dir, "--name", "app")

	token, err := os.ReadFile(filepath.Join(w.home, "token"))
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"SBX_TOKEN=" + strings.TrimSpace(string(token))}
	over := []string{"--engine", "http://" + p.l.Addr().String()}
	first := w.start(env, append(over, "events", "--follow", "--json")...)
	second := w.start(env, append(over, "events", "--follow", "--json")...)
	log := w.start(env, append(over, "logs", "--follow", "app")...)
	all := []*background{first, second, log}
	for range 20 {
		had := []int{len(first.out.now()), len(second.out.now()), len(log.out.now())}
		ran := w.start(nil, "exec", "app", "--", "true")
		w.eventually("every follower gets on", func() bool {
			for i, b := range all {
				if len(b.out.now()) <= had[i] {
					return false
				}
			}
			return true
		})
		if n := p.cut(); n < len(all) {
			t.Errorf("only %d connections were cut", n)
		}
		<-ran.ended
		if code := ran.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exec: exit %d: %v", code, ran.err.now())
		}
	}
	w.sameLines(all)
}

// sameLines interrupts the followers once they are up to date, and holds what
// they printed against the journal and the count.
func (w *world) sameLines(all []*background) {
	w.t.Helper()
	want := strings.Split(strings.TrimSpace(w.ok("events", "--json")), "\n")
	printed := len(all[2].out.now())
	w.eventually("the followers are up to date", func() bool {
		return len(all[0].out.now()) >= len(want) && len(all[1].out.now()) >= len(want) && len(all[2].out.now()) > printed+100
	})
	for _, b := range all {
		if code := b.interrupt(w); code != exitInterrupted {
			w.t.Errorf("%v: exit %d, want %d: %v", b.cmd.Args, code, exitInterrupted, b.err.now())
		}
	}
	for _, b := range all[:2] {
		if got := b.out.now()[:len(want)]; !slices.Equal(got, want) {
			w.t.Errorf("a follower of the journal got other lines:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for i, line := range all[2].out.now() {
		if line != fmt.Sprintf("line %d", i+1) {
			w.t.Fatalf("line %d of the log is %q", i+1, line)
		}
	}
}

// TestDoors tries an engine's doors with wrong keys, and where there is none.
func TestDoors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.putToken("sbx_admin", engine.Admin)
	w.putToken("sbx_viewer", engine.Viewer)
	at := "http://" + w.serveHTTP()
	w.ok("create", "--template", "demo", "--name", "app")
	pid := w.enginePID()
	for _, c := range []struct {
		name, token, words string
		code               int
		args               []string
	}{
		{"admin looks", "sbx_admin", "", 0, []string{"ls", "--engine", at}},
		{"admin acts", "sbx_admin", "", 0, []string{"exec", "app", "--engine", at, "--", "true"}},
		{"viewer looks", "sbx_viewer", "", 0, []string{"show", "app", "--engine", at}},
		{"viewer acts", "sbx_viewer", "viewer", exitRefused, []string{"exec", "app", "--engine", at, "--", "true"}},
		{"viewer stops", "sbx_viewer", "viewer", exitRefused, []string{"stop", "app", "--engine", at}},
		{"viewer heals", "sbx_viewer", "viewer", exitRefused, []string{"heal", "app", "--engine", at}},
		{"wrong token", "sbx_wrong", "SBX_TOKEN", exitRefused, []string{"ls", "--engine", at}},
		{"wrong token, following", "sbx_wrong", "SBX_TOKEN", exitRefused, []string{"events", "--follow", "--engine", at}},
		{"no engine", "sbx_admin", "sbx serve", exitUnreachable, []string{"ls", "--engine", "http://127.0.0.1:1"}},
		{"second engine", "", fmt.Sprint("process ", pid), exitBusy, []string{"serve", "--listen", "none"}},
		{"second engine, detached", "", fmt.Sprint(pid), exitBusy, []string{"serve", "--detach"}},
		{"dashboard without a terminal", "", "terminal", exitUsage, []string{"tui"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := w.in(t)
			if c.token != "" {
				sub.env = append(slices.Clone(w.env), "SBX_TOKEN="+c.token)
			}
			r := sub.run(c.args...)
			if r.code != c.code || !strings.Contains(r.err, c.words) {
				t.Errorf("exit %d, want %d with %q\n%s%s", r.code, c.code, c.words, r.out, r.err)
			}
		})
	}
	if w.enginePID() != pid {
		t.Error("the engine is another one")
	}
}
