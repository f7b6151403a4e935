package detect

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sbx/engine/driver"
)

// tcpBox is a box whose ports are this machine's.
type tcpBox struct{ driver.Box }

func (tcpBox) Dial(ctx context.Context, port int) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// answer listens and gives each connection to fn, which reads the request if
// it wants to. It returns the port.
func answer(t *testing.T, fn func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			fn(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().(*net.TCPAddr).Port
}

// says answers every request with the same text.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		buf := make([]byte, 4096)
		_, _ = c.Read(buf)
		_, _ = c.Write([]byte(text))
	}
}

func TestAProbeIsHealthyWhenTheAnswerIs2xx(t *testing.T) {
	for text, want := range map[string]struct {
		ok     bool
		detail string
	}{
		"HTTP/1.1 200 OK\r\n\r\n":                                        {true, "200"},
		"HTTP/1.0 204 No Content\r\n\r\n":                                {true, "204"},
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n":           {true, "200"},
		"HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n":                 {false, "302"},
		"HTTP/1.1 503 Service Unavailable\r\n\r\n":                       {false, "503"},
		"SSH-2.0-OpenSSH_9.6\r\n":                                        {false, "not an HTTP answer"},
		"":                                                               {false, "closed without an answer"},
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxHead):        {false, "closed without an answer"},
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 2*maxInterim):    {false, "not an HTTP answer"},
		"HTTP/1.1 99999999999999999999 \x1b]0;title\x07\r\nA: b\r\n\r\n": {false, "not an HTTP answer"},
	} {
		p := Get(t.Context(), tcpBox{}, answer(t, says(text)), "/health", 5*time.Second)
		if p.OK != want.ok || p.Detail != want.detail || p.At.IsZero() || p.Latency <= 0 {
			t.Errorf("%.40q: %+v, want %+v", text, p, want)
		}
	}
}

func TestAProbeAsksForItsPathOnly(t *testing.T) {
	got := make(chan string, 1)
	port := answer(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		n, _ := c.Read(buf)
		got <- string(buf[:n])
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	})
	Get(t.Context(), tcpBox{}, port, "/health?deep=1", time.Second)
	want := fmt.Sprintf("GET /health?deep=1 HTTP/1.1\r\nHost: localhost:%d\r\n", port)
	if text := <-got; !strings.HasPrefix(text, want) {
		t.Errorf("the request is %q", text)
	}
	for _, path := range []string{"", "health", "/a b\r\nX: y", "http://elsewhere/", "/\x00"} {
		if p := Get(t.Context(), tcpBox{}, port, path, time.Second); p.OK || p.Detail != errPath.Error() {
			t.Errorf("path %q: %+v", path, p)
		}
	}
}

func TestAProbeDoesNotWaitForEver(t *testing.T) {
	hold := make(chan struct{})
	port := answer(t, func(net.Conn) { <-hold })
	p := Get(t.Context(), tcpBox{}, port, "/", 50*time.Millisecond)
	close(hold)
	if p.OK || p.Detail != "no answer within 50ms" {
		t.Errorf("%+v", p)
	}
}

func TestAClosedPortIsSaidSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	if p := Get(t.Context(), tcpBox{}, port, "/", time.Second); p.OK || p.Detail != "connection refused" {
		t.Errorf("%+v", p)
	}
}

func BenchmarkProbe(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(c)
			c.Close()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	for b.Loop() {
		if p := Get(b.Context(), tcpBox{}, port, "/health", time.Second); !p.OK {
			b.Fatal(p.Detail)
		}
	}
}
