package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"sbx/client"
	"sbx/engine"
)

// count is how far a reader is, for others to wait for.
type count struct {
	mu    sync.Mutex
	n     int
	moved chan struct{}
}

func newCount() *count { return &count{moved: make(chan struct{})} }

func (c *count) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *count) reach(t *testing.T, n int) {
	t.Helper()
	for {
		c.mu.Lock()
		now, moved := c.n, c.moved
		c.mu.Unlock()
		if now >= n {
			return
		}
		select {
		case <-moved:
		case <-time.After(20 * time.Second):
			t.Fatalf("a reader stands at %d, want %d", now, n)
		}
	}
}

func create(t *testing.T, e engine.Engine) engine.Sandbox {
	t.Helper()
	sb, err := engine.Create(t.Context(), e, engine.CreateSandbox{Name: "one", Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// witnesses read the same streams at the same time, and note what they saw.
type witnesses struct {
	wg    sync.WaitGroup
	seqs  [2][]engine.Seq // of two readers of the journal
	lines []string        // of a follower of the app's log
	seen  [3]*count
}

func watch(ctx context.Context, c *client.Client, from engine.Position, id engine.SandboxID) *witnesses {
	w := &witnesses{seen: [3]*count{newCount(), newCount(), newCount()}}
	for i := range w.seqs {
		w.wg.Go(func() {
			for ev, err := range c.Events(ctx, from) {
				if err != nil {
					return
				}
				w.seqs[i] = append(w.seqs[i], ev.Seq)
				w.seen[i].add()
			}
		})
	}
	w.wg.Go(func() {
		for line, err := range c.Logs(ctx, engine.LogQuery{Sandbox: id, Follow: true}) {
			if err != nil {
				return
			}
			w.lines = append(w.lines, line.Text)
			w.seen[2].add()
		}
	})
	return w
}

// check holds what they saw, n of each, against what happened.
func (w *witnesses) check(t *testing.T, from engine.Position, n int) {
	t.Helper()
	for i, seqs := range w.seqs {
		for k, seq := range seqs {
			if want := from.Seq + engine.Seq(k) + 1; seq != want {
				t.Fatalf("reader %d: event %d has the seq %d, want %d", i, k, seq, want)
			}
		}
		if len(seqs) != n {
			t.Errorf("reader %d saw %d events, want %d", i, len(seqs), n)
		}
	}
	want := []string{"started"}
	for i := range n {
		want = append(want, fmt.Sprint("line ", i))
	}
	if !slices.Equal(w.lines, want) {
		t.Errorf("the follower saw %d lines, want the %d in order", len(w.lines), len(want))
	}
}

func TestStreamsMissAndRepeatNothingOverTwentyCuts(t *testing.T) {
	const rounds, each = 20, 110
	w := newWorld(t)
	p := newProxy(t, w.addr)
	c := dial(t, hasty(p.addr()))
	sb := create(t, w.fake)
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all := watch(ctx, c, snap.Position, sb.ID)
	for round := range rounds {
		for i := range each {
			w.fake.Print(sb.ID, fmt.Sprintln("line", round*each+i))
			w.fake.Emit(sb.ID, 1)
			if i == each/2 {
				p.cut() // while more comes
			}
		}
		for _, r := range all.seen {
			r.reach(t, round*each+1) // each is connected again, and somewhere in this round
		}
	}
	for _, r := range all.seen {
		r.reach(t, rounds*each)
	}
	all.seen[2].reach(t, rounds*each+1) // the line "started", too
	cancel()
	all.wg.Wait()
	all.check(t, snap.Position, rounds*each)
	if p.cuts < rounds {
		t.Errorf("%d connections were cut, want at least %d: the test tested nothing", p.cuts, rounds)
	}
}

func TestFollowingAnEmptyLogMissesNothingAfterACut(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.addr)
	cfg := hasty(p.addr())
	told := &spy{words: `"empty":true`, seen: newCount()}
	cfg.DialContext = told.dial
	c := dial(t, cfg)
	sb := create(t, w.fake)
	r, err := c.Do(t.Context(), engine.NewAction(engine.Spawn{Sandbox: sb.ID, Stdin: true, Command: engine.Command{Shell: "cat"}}))
	if err != nil {
		t.Fatal(err)
	}
	input, err := w.fake.Pipe(t.Context(), r.Process, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()

	got := make(chan string)
	go func() {
		defer close(got)
		for line, err := range c.Logs(t.Context(), engine.LogQuery{Sandbox: sb.ID, Process: string(r.Process), Tail: 1, Follow: true}) {
			if err != nil {
				return
			}
			got <- line.Text
		}
	}()
	told.seen.reach(t, 1)
	p.set(true)
	if _, err := input.Write([]byte("1\n2\n3\n")); err != nil {
		t.Fatal(err)
	}
	if err := input.CloseInput(); err != nil {
		t.Fatal(err)
	}
	if err := engine.Until(t.Context(), w.fake, 10*time.Second, func(s *engine.Snapshot) bool { return s.Processes[r.Process].ID == "" }); err != nil {
		t.Fatal(err)
	}
	p.set(false)
	var lines []string
	for text := range got {
		lines = append(lines, text)
	}
	if want := []string{"1", "2", "3"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q: all came after the follower did", lines, want)
	}
}

func TestEventsEndWhereTheJournalWasPrunedBehindACut(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.addr)
	c := dial(t, hasty(p.addr()))
	sb := create(t, w.fake)
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.fake.Emit(sb.ID, 1)
	var last error
	n := 0
	for _, err := range c.Events(t.Context(), snap.Position) {
		if last = err; err != nil {
			break
		}
		n++
		p.set(true)
		w.fake.Emit(sb.ID, 10)
		w.fake.Prune(snap.Position.Seq + 5)
		p.set(false)
	}
	if engine.AsCode(last) != engine.Compacted || n != 1 {
		t.Errorf("after %d events: %v; want compacted after 1", n, last)
	}
}

func TestEventsGoOnWithTheNextServer(t *testing.T) {
	w := newWorld(t)
	c := dial(t, hasty(w.addr))
	sb := create(t, w.fake)
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.fake.Emit(sb.ID, 1)
	n := 0
	for ev, err := range c.Events(t.Context(), snap.Position) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; ev.Seq != snap.Position.Seq+engine.Seq(n) {
			t.Fatalf("event %d came as number %d", ev.Seq, n)
		}
		if n == 3 {
			return
		}
		w.restart(t)
		w.fake.Emit(sb.ID, 1)
	}
}

func TestGaugesTellOfALostEngineAndOfItsReturn(t *testing.T) {
	w := newWorld(t)
	p := newProxy(t, w.addr)
	c := dial(t, hasty(p.addr()))
	var phases []string
	for g, err := range c.Gauges(t.Context(), 100*time.Millisecond) {
		phase := "there"
		if err != nil {
			phase = "lost"
			if e := engine.AsError(err); e.Code != engine.Unavailable || e.RetryAfter <= 0 {
				t.Fatalf("%v (%s, again in %s), want unavailable and when the next try is", err, e.Code, e.RetryAfter)
			}
		} else if g.At.IsZero() {
			t.Fatal("an empty sample")
		}
		if len(phases) == 0 || phases[len(phases)-1] != phase {
			phases = append(phases, phase)
			p.set(phase == "there" && len(phases) == 1)
		}
		if len(phases) == 3 {
			break
		}
	}
	if want := []string{"there", "lost", "there"}; !slices.Equal(phases, want) {
		t.Errorf("the engine was %q, want %q", phases, want)
	}
}

func TestGaugesCountSilenceAsLost(t *testing.T) {
	w := newWorld(t)
	cfg := hasty(w.addr)
	frozen := &freezer{}
	cfg.DialContext = frozen.dial
	c := dial(t, cfg)
	var since time.Time
	for _, err := range c.Gauges(t.Context(), 50*time.Millisecond) {
		if err != nil {
			if late := time.Since(since); engine.AsCode(err) != engine.Unavailable || late > 3*time.Second {
				t.Errorf("after %s: %v; want unavailable within 3 s", late, err)
			}
			frozen.thaw()
			return
		}
		if since.IsZero() {
			since = time.Now()
			frozen.freeze()
		}
	}
}

func TestClosingAClientEndsItsStreams(t *testing.T) {
	w := newWorld(t)
	c, err := client.Dial(t.Context(), hasty(w.addr))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range c.Events(context.Background(), snap.Position) {
			ended <- err
		}
	}()
	w.asked.reach(t, 1)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; engine.AsCode(err) != engine.Unavailable {
		t.Errorf("the stream ended with %v, want unavailable", err)
	}
	if _, err := c.Snapshot(t.Context()); engine.AsCode(err) != engine.Unavailable {
		t.Errorf("a call after close: %v, want unavailable", err)
	}
}

func TestAStreamEndsWithItsContextThoughTheServerHangs(t *testing.T) {
	w := newWorld(t)
	h := w.server.Handler()
	arrived := newCount()
	addr := handlerServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/events" {
			h.ServeHTTP(rw, r)
			return
		}
		arrived.add()
		<-r.Context().Done() // never an answer
	}))
	c := dial(t, hasty(addr))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for _, err := range c.Events(ctx, engine.Position{}) {
			ended <- err
		}
	}()
	arrived.reach(t, 1)
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v, want the context's error", err)
		}
	case <-time.After(2 * time.Second):
		t.Error("it goes on after its context")
		<-ended
	}
}
