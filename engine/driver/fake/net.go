package fake

import (
	"net"
	"strconv"

	"sbx/engine"
)

// A listener is a port of a box in memory.
type listener struct {
	box    *Box
	proc   *proc
	port   int
	conns  chan net.Conn
	closed chan struct{} // by whoever takes it out of the box's ports
}

// listen takes a port.
func (b *Box) listen(p *proc, port int) (net.Listener, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ports[port] != nil {
		return nil, engine.Errorf(engine.Conflict, "address already in use")
	}
	l := &listener{box: b, proc: p, port: port, conns: make(chan net.Conn), closed: make(chan struct{})}
	b.ports[port] = l
	return l, nil
}

// Accept waits for the next Dial.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close gives the port back.
func (l *listener) Close() error {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	if l.box.ports[l.port] == l {
		delete(l.box.ports, l.port)
		close(l.closed)
	}
	return nil
}

// Addr is the port.
func (l *listener) Addr() net.Addr { return address(l.port) }

type address int

func (address) Network() string  { return "tcp" }
func (a address) String() string { return "127.0.0.1:" + strconv.Itoa(int(a)) }
