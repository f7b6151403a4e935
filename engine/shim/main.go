//go:build linux

package shim

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/engine/logs"
)

// DefaultIdle is how long a shim stays that has no child and hears of no
// engine.
const DefaultIdle = time.Minute

// Main is `sbx shim`, the process. It is to be called on the main thread of the
// program (see [OnMainThread]): whatever forks a child must live as long as it,
// and when one program executes another only that thread goes on.
func Main(args []string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s := &server{log: log, held: map[string]*held{}, wires: map[*wire]bool{}}
	var logsDir string
	resume := -1
	f := flag.NewFlagSet("shim", flag.ContinueOnError)
	f.StringVar(&s.dir, "dir", "", "its directory")
	f.StringVar(&logsDir, "logs", "", "the directory of logs")
	f.DurationVar(&s.idle, "idle", DefaultIdle, "how long it stays with nobody to serve")
	f.IntVar(&resume, "resume", -1, "descriptor of what the program before this one has left")
	if err := f.Parse(args); err != nil || s.dir == "" || logsDir == "" {
		fmt.Fprintln(os.Stderr, "sbx shim: it is started by an engine")
		return 2
	}
	s.args = []string{"--dir", s.dir, "--logs", logsDir, "--idle", s.idle.String()}
	if err := s.main(logsDir, resume); err != nil {
		log.Error("the shim ends", "err", err)
		return 1
	}
	return 0
}

// OnMainThread keeps the main goroutine of a shim on the main thread. It must be
// called while the program initialises: later the goroutine may have moved.
func OnMainThread(args []string) bool {
	mine := len(args) > 1 && args[1] == "shim"
	if mine {
		runtime.LockOSThread()
	}
	return mine
}

func (s *server) main(logsDir string, resume int) error {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		return fmt.Errorf("not on the main thread")
	}
	unix.Umask(0o022)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&[]byte("sbx-shim\x00")[0])), 0, 0, 0) // for ps
	signal.Ignore(unix.SIGHUP, unix.SIGPIPE, unix.SIGINT)
	if err := adoptOrphans(); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	s.version = BuildOf(exe)
	if s.logs, err = logs.Open(logsDir, logs.Options{}); err != nil {
		return err
	}
	s.runner = &Runner{exe: exe, spawner: newSpawner(), outlives: true}
	if os.Geteuid() == 0 {
		if err := s.runner.Shed(); err != nil {
			s.log.Info("children of another user need the launcher", "err", err)
		}
	}
	if err := s.takeUp(resume); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer s.runner.spawner.stop()
		s.work(ctx)
	}()
	s.runner.spawner.here()
	return nil
}

// takeUp opens the socket, or goes on with what the program before this one
// had.
func (s *server) takeUp(resume int) (err error) {
	if resume >= 0 {
		return s.resume(resume)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, exitsDir), 0o700); err != nil {
		return err
	}
	s.l, err = listen(s.dir)
	return err
}

// work serves until nobody needs this shim any more.
func (s *server) work(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { s.runner.reapOrphans(ctx) })
	parts.Go(func() {
		if err := s.serve(ctx); err != nil {
			s.log.Error("serving", "err", err)
		}
	})
	s.untilIdle(ctx)
	s.l.Close()
	s.hangUp()
	cancel()
	parts.Wait()
	s.runner.work.Wait()
	Tidy(s.dir)
}

// untilIdle returns when there has been no child and no engine for a while, or
// when it is told to end and has killed everything.
func (s *server) untilIdle(ctx context.Context) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, unix.SIGTERM)
	tick := time.NewTicker(max(s.idle/4, 50*time.Millisecond))
	defer tick.Stop()
	used := time.Now()
	for {
		select {
		case <-ends:
			if err := s.stop(ctx, stopGrace); err != nil {
				s.log.Error("stopping its children", "err", err)
			}
			return
		case <-tick.C:
		}
		if s.needed() {
			used = time.Now()
		}
		if time.Since(used) > s.idle && s.shutIfIdle() {
			return
		}
	}
}

// stopGrace is what children have between TERM and KILL when their shim is
// told to end.
const stopGrace = 5 * time.Second

func (s *server) needed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.neededLocked()
}

func (s *server) neededLocked() bool {
	for _, h := range s.held {
		if h.state.Exit == nil {
			return true
		}
	}
	return len(s.wires) > 0
}

func (s *server) shutIfIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = !s.neededLocked()
	return s.shut
}

func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.wires {
		w.c.Close()
	}
}

// Tidy removes the directory of a shim that has ended, but for exits that nobody
// has taken note of.
func Tidy(dir string) {
	_ = os.Remove(filepath.Join(dir, socketName))
	if os.Remove(filepath.Join(dir, exitsDir)) == nil { // it is empty
		_ = os.RemoveAll(dir)
	}
}
