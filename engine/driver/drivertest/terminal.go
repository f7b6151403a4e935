package drivertest

import (
	"errors"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// terminal starts a shell command on a terminal.
func (e *env) terminal(box driver.Box, shell string) *run {
	e.Helper()
	r := &run{out: NewOutput()}
	p, err := box.Start(e.context(), engine.ProcessID(engine.NewID(engine.ProcessPrefix)), driver.Command{
		Command: engine.Command{Shell: shell}, Profile: driver.ProfileApp,
		Terminal: &driver.Terminal{Size: engine.TermSize{Cols: 91, Rows: 33}},
	}, r.out, nil)
	e.must(err)
	r.Proc = p
	return r
}

func (e *env) await(r *run, text string) {
	e.Helper()
	e.must(r.out.Await(e.context(), text))
}

func (e *env) keys(r *run, keys string) {
	e.Helper()
	_, err := r.Input().Write([]byte(keys))
	e.must(err)
}

func isTerminal(e *env) {
	_, box := e.boot()
	r := e.terminal(box, `test -t 0 && test -t 1 && test -t 2 && echo "ter""minal $TERM" && stty size && echo own > /dev/tty; printf %s "$SHELL"; exit 3`)
	exit := e.wait(r)
	if got := r.out.String(); exit.Code != 3 || !strings.HasPrefix(got, "terminal xterm-256color\r\n33 91\r\nown\r\n/") {
		e.Errorf("it ended as %+v with %q", exit, got)
	}
}

func resizes(e *env) {
	_, box := e.boot()
	r := e.terminal(box, `trap 'echo told; stty size' WINCH; echo rea""dy; while :; do sleep 0.05; done`)
	e.await(r, "ready")
	e.must(r.Resize(e.context(), engine.TermSize{Cols: 120, Rows: 40}))
	e.await(r, "told\r\n40 120\r\n")
	if err := r.Resize(e.context(), engine.TermSize{Cols: 5000, Rows: 40}); !errors.Is(err, engine.Invalid) {
		e.Errorf("a size that can't be: %v", err)
	}
	e.must(r.Kill(e.context(), 0))
	plain := e.start(box, "sleep 60")
	if err := plain.Resize(e.context(), engine.TermSize{Cols: 80, Rows: 24}); !errors.Is(err, engine.Conflict) {
		e.Errorf("what has no terminal: %v", err)
	}
	e.must(plain.Kill(e.context(), 0))
}

// interrupts: ctrl+C is for the command, not for what confines it.
func interrupts(e *env) {
	_, box := e.boot()
	r := e.terminal(box, `trap 'echo got it; exit 9' INT; echo rea""dy; while :; do sleep 0.05; done`)
	e.await(r, "ready")
	e.keys(r, "\x03")
	if exit := e.wait(r); exit.Code != 9 || !strings.Contains(r.out.String(), "got it") {
		e.Errorf("it ended as %+v with %q", exit, r.out)
	}
	r = e.terminal(box, `echo rea""dy; read line`)
	e.await(r, "ready")
	e.keys(r, "\x03")
	if exit := e.wait(r); exit.Code != 130 || exit.Signal != "SIGINT" {
		e.Errorf("it ended as %+v, want SIGINT", exit)
	}
}

// jobControl types at a real shell, and never before it says that it listens.
func jobControl(e *env) {
	_, box := e.boot()
	r := e.terminal(box, `unset ENV PROMPT_COMMAND; PS1='[$? \j]> ' exec bash --norc --noprofile --noediting -i`)
	e.await(r, "[0 0]> ")
	e.keys(r, "sh -c 'echo fore\"\"ground; read line; echo it got $line'\n")
	e.await(r, "foreground")
	e.keys(r, "\x1a")
	e.await(r, "[148 1]> ") // stopped, and the shell is back
	e.keys(r, "echo in \"\"between; fg\n")
	e.await(r, "in between")
	e.keys(r, "a line\n") // nobody but the job can read it now
	e.await(r, "it got a line")
	e.await(r, "[0 0]> ")
	e.keys(r, "sh -c 'echo se\"\"cond; read line'\n")
	e.await(r, "second")
	e.keys(r, "\x03")
	e.await(r, "[130 0]> ")
	e.keys(r, "exit 5\n")
	if exit := e.wait(r); exit.Code != 5 {
		e.Errorf("it ended as %+v with %q", exit, r.out)
	}
}

// killShell: an interactive shell ignores TERM, and goes with its terminal.
func killShell(e *env) {
	_, box := e.boot()
	r := e.terminal(box, `PS1='rea''dy> ' exec bash --norc --noprofile -i`)
	e.await(r, "ready>")
	e.keys(r, "sleep 600 & echo behind\"\" it\n")
	e.await(r, "behind it")
	e.must(r.Kill(e.context(), time.Minute)) // longer than anybody waits here
	if exit := e.wait(r); !exit.Killed {
		e.Errorf("it ended as %+v", exit)
	}
	select {
	case <-r.out.Closed():
	case <-e.context().Done():
		e.Error("its output was not closed")
	}
}

// fullOutput: what was printed before the exit is there at the exit.
func fullOutput(e *env) {
	_, box := e.boot()
	for range 5 {
		r := e.terminal(box, `i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; printf the-end`)
		e.wait(r)
		if got := r.out.String(); strings.Count(got, "\r\n") != 500 || !strings.HasSuffix(got, "the-end") {
			e.Fatalf("%d lines at the exit, and %.40q at the end", strings.Count(got, "\r\n"), got[max(0, len(got)-40):])
		}
	}
}
