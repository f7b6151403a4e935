//go:build linux

package shim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx/engine"
)

func TestAChildLivesItsLife(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	o := shell("ps-life", "echo up; read line; echo got $line; exit 7")
	o.Stdin = true
	r := d.start(c, o)
	if !alive(r.Tree().Root) || r.Started().IsZero() || r.LogStart() != 0 {
		t.Errorf("it is %+v", r.State())
	}
	if _, err := c.Start(bounded(t), shell("ps-none", ""), Hooks{}); err != nil {
		t.Errorf("an empty script: %v", err)
	}
	bad := shell("ps-bad", "")
	bad.Argv = []string{"/nowhere/at/all"}
	if _, err := c.Start(bounded(t), bad, Hooks{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a program that isn't there: %v", err)
	}
	if _, err := r.Input().Write([]byte("this\n")); err != nil {
		t.Fatal(err)
	}
	if exit := d.ended(r); exit.Code != 7 || exit.Killed || exit.Signal != "" {
		t.Errorf("it ended as %+v", exit)
	}
	if got := d.said("ps-life"); got != "up\ngot this\n" {
		t.Errorf("its log is %q", got)
	}
	if err := r.Signal(bounded(t), "SIGHUP"); !errors.Is(err, engine.Conflict) {
		t.Errorf("a signal to what has exited: %v", err)
	}
}

func TestAnExitIsKeptUntilItWasNoted(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	r := d.start(c, shell("ps-kept", "exit 9"))
	d.ended(r)
	left := filepath.Join(d.dir, exitsDir, "ps-kept")
	until(t, "it is written down", func() bool { _, err := os.Stat(left); return err == nil })
	c.Close()

	second := d.connect()
	list, err := second.Adopt(bounded(t), func(State) Hooks { return Hooks{} })
	if err != nil || len(list) != 1 || list[0].State().ID != "ps-kept" || list[0].State().Box != "sb-test" {
		t.Fatalf("adopted: %v %v", list, err)
	}
	if exit := d.ended(list[0]); exit.Code != 9 {
		t.Errorf("it ended as %+v", exit)
	}
	list[0].Forget()
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is still written down: %v", err)
	}
	if list, err := d.connect().Adopt(bounded(t), func(State) Hooks { return Hooks{} }); err != nil || len(list) != 0 {
		t.Errorf("told again: %v %v", list, err)
	}
}

func TestAnExitOutlivesTheShim(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	d.ended(d.start(c, shell("ps-late", "exit 3")))
	left := filepath.Join(d.dir, exitsDir, "ps-late")
	until(t, "it is written down", func() bool { _, err := os.Stat(left); return err == nil })
	SignalOne(c.self, unix.SIGKILL)
	<-c.Dead()
	Tidy(d.dir)
	exits, err := Exits(d.dir)
	if err != nil || len(exits) != 1 || exits[0].Exit.Code != 3 {
		t.Fatalf("left are %+v %v", exits, err)
	}
	ours := exits[0]
	if exits[0].Boot = "another"; Left(d.dir, exits[0]).Tree() != (Tree{}) || Left(d.dir, ours).Tree() != ours.Tree {
		t.Error("what is left of another boot is looked for")
	}
	Left(d.dir, ours).Forget()
	Tidy(d.dir)
	if _, err := os.Stat(d.dir); !os.IsNotExist(err) {
		t.Errorf("its directory stays: %v", err)
	}
}

func TestTwoEnginesHearTheSame(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	one := d.launch()
	mine := d.start(one, shell("ps-mine", "exec sleep 3600"))
	two := d.connect()
	list, err := two.Adopt(bounded(t), func(State) Hooks { return Hooks{} })
	if err != nil || len(list) != 1 || list[0].PID() != mine.PID() || list[0].Tree() != mine.Tree() {
		t.Fatalf("adopted: %+v %v", list, err)
	}
	if _, err := two.Start(bounded(t), shell("ps-mine", "exit 0"), Hooks{}); err != nil {
		t.Errorf("an engine that orders what runs gets it anew: %v", err)
	}
	until(t, "the first is gone", func() bool { return !alive(mine.Tree().Root) })
	if exit := d.ended(mine); exit.Code != 137 {
		t.Errorf("its end as told to the other engine: %+v", exit)
	}
}

func TestAKilledShimLosesItsOwn(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	r := d.start(c, shell("ps-lost", "setsid sleep 3600 & sleep 3600 & wait"))
	var before []Stat
	until(t, "three processes run", func() bool { before = r.Members(); return len(before) == 3 })
	SignalOne(c.self, unix.SIGKILL)
	exit := d.ended(r)
	if !r.Lost() || exit.Error != LostReason {
		t.Errorf("it ended as %+v, lost %t", exit, r.Lost())
	}
	<-c.Dead()
	for _, s := range before {
		until(t, fmt.Sprintf("%d is gone", s.PID), func() bool { return !alive(s) })
	}
	if c.Alive() {
		t.Error("the shim is called alive")
	}
	if _, err := c.Start(bounded(t), shell("ps-next", "exit 0"), Hooks{}); !errors.Is(err, engine.Unavailable) {
		t.Errorf("a start on a shim that is gone: %v", err)
	}
}

// TestAStartCutByTheShimsEnd: its hooks are nobody's, since it has failed.
func TestAStartCutByTheShimsEnd(t *testing.T) {
	t.Parallel()
	for range 10 {
		d := newDen(t, time.Minute)
		c := d.launch()
		self := c.self
		cut := make(chan error)
		var told int
		go func() {
			var err error
			for err == nil {
				err = func() error {
					done := make(chan struct{})
					r, err := c.Start(bounded(t), shell("ps-cut", "exit 0"), Hooks{Gone: func() { close(done) }})
					if err != nil {
						select {
						case <-done:
							told++
						default:
						}
						return err
					}
					<-done
					r.Forget()
					return nil
				}()
			}
			cut <- err
		}()
		SignalOne(self, unix.SIGKILL)
		if err := <-cut; !errors.Is(err, engine.Unavailable) || told > 0 {
			t.Errorf("%v; the end of what did not start was told %d times", err, told)
		}
	}
}

func TestAShimWithNothingToDoEnds(t *testing.T) {
	t.Parallel()
	d := newDen(t, 200*time.Millisecond)
	c := d.launch()
	self := c.self
	r := d.start(c, shell("ps-last", "while ! test -e "+filepath.Join(d.dir, "go")+"; do sleep 0.05; done"))
	c.Close()
	if err := os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the shim has ended", func() bool { return !alive(self) })
	if alive(r.Tree().Root) {
		t.Error("it ended before its child")
	}
	if exits, err := Exits(d.dir); err != nil || len(exits) != 1 || exits[0].Exit.Code != 0 {
		t.Errorf("left are %+v %v", exits, err)
	}
}

func TestAStoppedShimIsToldToGoOn(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	r := d.start(c, shell("ps-on", "exec sleep 3600"))
	SignalOne(c.self, unix.SIGSTOP)
	list, err := d.connect().Adopt(bounded(t), func(State) Hooks { return Hooks{} })
	if err != nil || len(list) != 1 || list[0].Tree() != r.Tree() {
		t.Errorf("adopted: %+v %v", list, err)
	}
	if !alive(r.Tree().Root) {
		t.Error("it has ended")
	}
}

func TestATerminalIsResizedByWhoeverAdoptsIt(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	o := shell("ps-tty", `echo up; read x; until [ "$(stty size)" = "20 80" ]; do sleep 0.05; done; echo small; read x; exit 4`)
	o.TTY = &TTY{Cols: 100, Rows: 30}
	d.start(c, o)
	until(t, "it listens", func() bool { return strings.Contains(d.said("ps-tty"), "up") })
	c.Close()
	list, err := d.connect().Adopt(bounded(t), func(State) Hooks { return Hooks{} })
	if err != nil || len(list) != 1 {
		t.Fatalf("adopted: %v %v", list, err)
	}
	r := list[0]
	fmt.Fprint(r.Input(), "\r")
	if err := r.Resize(bounded(t), TTY{Cols: 80, Rows: 20}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is small", func() bool { return strings.Contains(d.said("ps-tty"), "small") })
	fmt.Fprint(r.Input(), "\r")
	if exit := d.ended(r); exit.Code != 4 {
		t.Errorf("it ended as %+v", exit)
	}
}

// TestAnUpgradeInPlace executes a copy of this binary, which is another build.
func TestAnUpgradeInPlace(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	o := shell("ps-goes", `i=0; while test $i -lt 2000; do i=$((i+1)); echo $i; done; read code; exit $code`)
	o.Stdin = true
	r := d.start(c, o)
	ended := d.start(c, shell("ps-over", "exit 5"))
	d.ended(ended)
	for i := range 5 {
		upgrade(t, c, i)
	}
	until(t, "it has counted", func() bool { return strings.HasSuffix(d.said("ps-goes"), "\n2000\n") })
	var want strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&want, i+1)
	}
	if d.said("ps-goes") != want.String() {
		t.Error("its log has a hole, or a line twice")
	}
	fmt.Fprintln(r.Input(), 6)
	if exit := d.ended(r); exit.Code != 6 {
		t.Errorf("it ended as %+v", exit)
	}
	list, err := d.connect().Adopt(bounded(t), func(State) Hooks { return Hooks{} })
	if err != nil || len(list) != 2 {
		t.Errorf("adopted: %v %v", list, err)
	}
}

func upgrade(t *testing.T, c *Client, i int) {
	t.Helper()
	was := c.Hello()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), fmt.Sprint("newer-", i))
	syscall.ForkLock.RLock() // else a fork holds it open for writing, and nobody may execute it
	err = os.WriteFile(name, data, 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	changed, err := c.Upgrade(bounded(t), exe, BuildOf(exe))
	if now := c.Hello(); err != nil || !changed || now.PID != was.PID || now.Start != was.Start || now.Version != BuildOf(exe) {
		t.Fatalf("upgrade %d: %t %v, %+v was %+v", i, changed, err, now, was)
	}
	if again, err := c.Upgrade(bounded(t), exe, BuildOf(exe)); again || err != nil {
		t.Errorf("the same once more: %t %v", again, err)
	}
}

// TestNonsenseIsRefused: whoever speaks it loses the connection, or gets a clear
// answer, and nobody else notices.
func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	d := newDen(t, time.Minute)
	c := d.launch()
	r := d.start(c, shell("ps-calm", "exec sleep 3600"))
	for _, data := range [][]byte{
		binary.BigEndian.AppendUint32(nil, maxMessage+1),
		append(binary.BigEndian.AppendUint32(nil, 4), "]{[}"...),
		[]byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		conn, err := dial(d.dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(data); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: %d %v", data, n, err)
		}
		conn.Close()
	}
	for _, q := range []request{{Do: "dance", Child: "ps-calm"}, {Do: "start"}, {Do: "start", Order: &Order{ID: "ps-x"}}, {Do: "upgrade"}, {Do: "kill", Child: "ps-none"}} {
		if _, err := c.call(bounded(t), q); engine.AsCode(err) != engine.Invalid && engine.AsCode(err) != engine.NotFound {
			t.Errorf("%s: %v", q.Do, err)
		}
	}
	if !alive(r.Tree().Root) || !c.answers(time.Minute) {
		t.Error("it was noticed")
	}
}

// TestAnotherUserIsRefused by the kernel's word on who connects, also where the
// socket's mode lets them.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	d := newDen(t, time.Minute)
	d.launch()
	sock := filepath.Join(d.dir, socketName)
	for dir := d.dir; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(sock, 0o777); err != nil {
		t.Fatal(err)
	}
	conn := dialAs(t, 65534, sock)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	_ = newWire(conn).send(request{ID: 1, Do: "list"}) // it may be closed already
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a stranger is answered: %d %v", n, err)
	}
}

// dialAs connects as another user: the kernel notes who connects.
func dialAs(t *testing.T, uid int, path string) *net.UnixConn {
	t.Helper()
	type dialed struct {
		fd  int
		err error
	}
	done := make(chan dialed)
	go func() { // its thread isn't given back: it is another user's
		runtime.LockOSThread()
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
				err = e
			} else {
				err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
			}
		}
		done <- dialed{fd, err}
	}()
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	f := os.NewFile(uintptr(got.fd), "stranger")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.UnixConn)
}
