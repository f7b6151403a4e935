//go:build linux

package host

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"

	"sbx/engine"
	"sbx/engine/driver"
	"sbx/engine/shim"
)

// Dial connects to a port of the box: apps share the host's network.
func (b *box) Dial(ctx context.Context, port int) (net.Conn, error) {
	var d net.Dialer
	var errs []error
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errs[0] // the other address says the same, or that there is no IPv6
}

// FreePort finds a port in the configured range. Each call begins where the
// last one ended, so that many at once get different ones.
func (b *box) FreePort(ctx context.Context, taken func(int) bool) (int, error) {
	h := b.host
	first, last := h.cfg.PortRange[0], h.cfg.PortRange[1]
	for range last - first + 1 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		port := h.nextPort()
		if (taken == nil || !taken(port)) && bindable(ctx, port) {
			return port, nil
		}
	}
	return 0, engine.Errorf(engine.Exhausted, "no port from %d to %d is free", first, last).WithHint("widen the range of ports in the configuration")
}

func (h *Host) nextPort() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	port := h.port
	if h.port++; h.port > h.cfg.PortRange[1] {
		h.port = h.cfg.PortRange[0]
	}
	return port
}

// bindable reports whether a server could listen there, on any address.
func bindable(ctx context.Context, port int) bool {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	for _, host := range []string{"", "127.0.0.1"} {
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// PortHolder says who listens on a port.
func (b *box) PortHolder(ctx context.Context, port int) (driver.Holder, error) {
	if port < 1 || port > 65535 {
		return driver.Holder{}, engine.Errorf(engine.Invalid, "%d is no port", port)
	}
	sockets := listeners(port)
	if len(sockets) == 0 {
		return driver.Holder{}, nil
	}
	table := shim.ReadProcs()
	for _, p := range b.begun() {
		for _, s := range p.child.Members() {
			if holds(s.PID, sockets) {
				return driver.Holder{Held: true, Own: true, Live: true, PID: s.PID, Name: shim.NameOf(s.PID)}, nil
			}
		}
	}
	if s, ok := holderIn(b.strayProcs(table), sockets); ok {
		return driver.Holder{Held: true, Own: true, PID: s.PID, Name: shim.NameOf(s.PID)}, nil
	}
	all := make([]shim.Stat, 0, len(table))
	for _, s := range table {
		all = append(all, s)
	}
	s, _ := holderIn(all, sockets) // another user's is held by nobody that we see
	return driver.Holder{Held: true, PID: s.PID, Name: shim.NameOf(s.PID)}, ctx.Err()
}

// strayProcs are the box's processes that no live Proc has, and some that one
// has.
func (b *box) strayProcs(table map[int]shim.Stat) []shim.Stat {
	var found []shim.Stat
	for _, m := range b.host.marked(table, string(b.id)) {
		found = append(found, m.Stat)
	}
	if b.host.cgroups == nil {
		return found
	}
	for _, g := range b.host.cgroups.of(b.id) {
		for _, pid := range g.Pids() {
			if s, ok := table[pid]; ok {
				found = append(found, s)
			}
		}
	}
	return found
}

func holderIn(procs []shim.Stat, sockets map[string]bool) (shim.Stat, bool) {
	for _, s := range procs {
		if holds(s.PID, sockets) {
			return s, true
		}
	}
	return shim.Stat{}, false
}

// holds reports whether a process has one of the sockets open.
func holds(pid int, sockets map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // it may be ending
	for _, name := range names {
		if to, err := os.Readlink(dir + "/" + name); err == nil && sockets[to] {
			return true
		}
	}
	return false
}

// listeners are the sockets that listen on a port, as /proc/<pid>/fd names
// them.
func listeners(port int) map[string]bool {
	found := map[string]bool{}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if inode, ok := parseListener(lines.Text(), port); ok {
				found["socket:["+inode+"]"] = true
			}
		}
		f.Close()
	}
	return found
}

// parseListener reads a line of /proc/net/tcp: number, local address and port
// in hexadecimal, remote, state (0A is listening), …, the socket's inode.
func parseListener(line string, port int) (inode string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != "0A" {
		return "", false
	}
	_, hex, found := strings.Cut(f[1], ":")
	if !found {
		return "", false
	}
	n, err := strconv.ParseUint(hex, 16, 16)
	return f[9], err == nil && int(n) == port
}
