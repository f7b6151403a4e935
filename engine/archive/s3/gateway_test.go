package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine/archive/s3"
)

// program is the S3 server, built once from the module proxy. Its module is
// apart from this one's, as those of the other tools are.
var program = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", "-modfile=.tools/versitygw/go.mod", "versitygw")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", errors.New(err.Error() + ": " + errs.String())
	}
	return strings.TrimSpace(string(out)), nil
})

// gateway is a real S3 server over a directory, behind a relay that the test
// can slow down or cut.
type gateway struct {
	t      *testing.T
	dir    string
	relay  net.Listener
	server *exec.Cmd

	mu     sync.Mutex
	passed int64              // bytes towards the server
	pass   func(passed int64) // sees them before they go on; may wait
}

// newGateway makes an empty bucket and a way to it; nothing serves it yet.
func newGateway(t *testing.T) *gateway {
	t.Helper()
	if _, err := program(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the S3 server can't be built, and CI leaves nothing out: %v", err)
		}
		t.Skipf("the S3 server can't be built: %v", err)
	}
	g := &gateway{t: t, dir: t.TempDir()}
	for _, dir := range []string{"root/bucket", "meta"} { // a directory of the root is a bucket
		if err := os.MkdirAll(filepath.Join(g.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if g.relay, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.relay.Close() })
	t.Cleanup(g.kill)
	go g.accept()
	return g
}

// start has it serve; it returns when it does.
func (g *gateway) start() {
	g.t.Helper()
	exe, err := program()
	if err != nil {
		g.t.Fatal(err)
	}
	log, err := os.OpenFile(g.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	defer log.Close()
	_ = os.Remove(g.socket()) // of one that was killed
	// Metadata beside the objects: not every file system has attributes.
	g.server = exec.Command(exe, "--port", g.socket(), "--access", "key", "--secret", "hunter2-secret",
		"posix", "--sidecar", filepath.Join(g.dir, "meta"), filepath.Join(g.dir, "root"))
	g.server.Dir, g.server.Stdout, g.server.Stderr = g.dir, log, log
	g.server.Env = []string{"HOME=" + g.dir, "PATH=" + os.Getenv("PATH")}
	if err := g.server.Start(); err != nil {
		g.t.Fatal(err)
	}
	eventually(g.t, "the server to listen", func() bool {
		c, err := net.Dial("unix", g.socket())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill ends it without a word, as a power cut does.
func (g *gateway) kill() {
	if g.server == nil {
		return
	}
	_ = g.server.Process.Kill()
	_ = g.server.Wait() // killed
	g.server = nil
	if g.t.Failed() {
		b, _ := os.ReadFile(g.log())
		g.t.Logf("the server said:\n%s", b[max(0, len(b)-4000):])
	}
}

func (g *gateway) socket() string { return filepath.Join(g.dir, "s") }
func (g *gateway) log() string    { return filepath.Join(g.dir, "log") }

func (g *gateway) url() string {
	return "s3://bucket/some/prefix?region=us-east-1&endpoint=http://" + g.relay.Addr().String()
}

func (g *gateway) bucket() *s3.Bucket {
	g.t.Helper()
	b, err := open(g.url())
	if err != nil {
		g.t.Fatal(err)
	}
	return b
}

func open(url string) (*s3.Bucket, error) {
	return s3.Open(s3.Config{URL: url, AccessKey: "key", SecretKey: "hunter2-secret"})
}

// watch sets who sees what passes from now on, counted from 0.
func (g *gateway) watch(pass func(passed int64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed, g.pass = 0, pass
}

func (g *gateway) accept() {
	for {
		c, err := g.relay.Accept()
		if err != nil {
			return // the test is over
		}
		go g.carry(c)
	}
}

// carry is one connection; where nothing serves, it is hung up.
func (g *gateway) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("unix", g.socket())
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		_, _ = io.Copy(c, s) // cut on either side: both ends see it
		c.Close()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		g.count(n)
		if _, err2 := s.Write(b[:n]); err != nil || err2 != nil {
			return
		}
	}
}

func (g *gateway) count(n int) {
	g.mu.Lock()
	g.passed += int64(n)
	pass, passed := g.pass, g.passed
	g.mu.Unlock()
	if pass != nil {
		pass(passed)
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(2 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited two minutes in vain: %s", what)
		}
	}
}
