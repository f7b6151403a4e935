package client_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and a server, and cuts connections.
type proxy struct {
	ln net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	down  bool
	cuts  int // connections that were open when they were cut
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, to: to, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.set(true)
		_ = ln.Close()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		down := p.down
		if !down {
			p.conns[in] = struct{}{}
		}
		p.mu.Unlock()
		if down {
			_ = in.Close()
			continue
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.wg.Go(func() { p.carry(in, out) })
		p.wg.Go(func() { p.carry(out, in) })
	}
}

func (p *proxy) carry(from, to net.Conn) {
	_, _ = io.Copy(to, from) // however it ends, both ends are closed
	_ = to.Close()
	_ = from.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
}

// cut ends all connections.
func (p *proxy) cut() { p.set(false) }

// set cuts, and refuses new connections while down.
func (p *proxy) set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for conn := range p.conns {
		_ = conn.Close()
		p.cuts++
	}
	clear(p.conns)
}
