package logs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sbx/engine"
	"sbx/engine/logs"
)

func TestFollowersMissAndRepeatNothing(t *testing.T) {
	for name, other := range map[string]bool{"in this store": false, "in another": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := logs.Options{SegmentSize: 4096, Segments: 1000}
			s := open(t, dir, o)
			reader := s
			if other {
				reader = open(t, dir, o)
			}
			w := writer(t, s, true)
			const lines = 20_000
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { expectNumbers(t, reader, lines) })
			}
			for i := range lines {
				if _, err := fmt.Fprintf(w, "line %d\n", i); err != nil {
					t.Error(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}

// expectNumbers follows until the stream ends.
func expectNumbers(t *testing.T, s *logs.Store, lines int) {
	i := 0
	var pos engine.LogPosition
	for l, err := range s.Lines(t.Context(), ps, engine.Stdout, logs.Query{Follow: true}) {
		if err != nil {
			t.Error(err)
			return
		}
		if want := fmt.Sprintf("line %d", i); l.Text != want || l.Lost != 0 || l.Pos != pos || l.Partial {
			t.Errorf("got %+v, want %q at %d", l, want, pos)
			return
		}
		i, pos = i+1, l.Next
	}
	if i != lines {
		t.Errorf("the stream ended after %d lines", i)
	}
}

func TestAFollowerOfAFloodAccountsForEveryByte(t *testing.T) {
	dir := t.TempDir()
	o := logs.Options{SegmentSize: 1000, Segments: 2}
	s, other := open(t, dir, o), open(t, dir, o)
	w := writer(t, s, true)
	var wg sync.WaitGroup
	for _, reader := range []*logs.Store{s, other} {
		wg.Go(func() {
			var pos engine.LogPosition
			for l, err := range reader.Lines(t.Context(), ps, engine.Stdout, logs.Query{Follow: true}) {
				if err != nil || l.Pos != pos+engine.LogPosition(l.Lost) {
					t.Errorf("a line at %d with %d lost, after %d: %v", l.Pos, l.Lost, pos, err)
					return
				}
				pos = l.Next
			}
			if pos != w.Position() {
				t.Errorf("ended at %d of %d", pos, w.Position())
			}
		})
	}
	for i := range 5_000 {
		say(t, w, fmt.Sprintf("%d %s\n", i, strings.Repeat("x", i%97)))
	}
	w.Close()
	wg.Wait()
}

func TestAFollowerWaitsForALogThatIsNotThereYet(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for l, err := range s.Lines(t.Context(), ps, engine.Stdout, logs.Query{Follow: true}) {
			if err != nil || l.Text != "hello" {
				t.Errorf("%v %v", l, err)
			}
		}
	}()
	w := writer(t, s, true)
	say(t, w, "hello\n")
	w.Close()
	<-ended
}

func TestAFollowerHoldsBackALineUntilItEnds(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	w := writer(t, s, true)
	next, stop := pull(t.Context(), s, logs.Query{Follow: true})
	defer stop()
	say(t, w, "one\ntw")
	equal(t, "first", next(t).Text, "one")
	say(t, w, "o\nthr")
	equal(t, "second", next(t).Text, "two")
	w.Close() // nothing will end it now
	last := next(t)
	equal(t, "third", last.Text, "thr")
	equal(t, "partial", last.Partial, false)
}

func TestEndedStreamsEndTheirFollowers(t *testing.T) {
	dir := t.TempDir()
	here, there := open(t, dir, logs.Options{}), open(t, dir, logs.Options{})
	w := writer(t, here, false)
	say(t, w, "one\n")
	var wg sync.WaitGroup
	for _, s := range []*logs.Store{here, there} {
		for _, st := range []engine.Stream{engine.Stdout, engine.Stderr} {
			wg.Go(func() {
				for _, err := range s.Lines(t.Context(), ps, st, logs.Query{Follow: true}) {
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	w.Close() // not final: it is End that ends it
	if err := here.End(ps); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, s := range []*logs.Store{here, there} { // and those who come later
		for range s.Lines(t.Context(), ps, engine.Stdout, logs.Query{Follow: true}) {
			continue
		}
	}
}

func TestRemovingALogEndsItsFollowers(t *testing.T) {
	dir := t.TempDir()
	here, there := open(t, dir, logs.Options{}), open(t, dir, logs.Options{})
	say(t, writer(t, here, false), "one\n")
	var wg sync.WaitGroup
	for _, s := range []*logs.Store{here, there} {
		reading := make(chan struct{})
		wg.Go(func() {
			for range s.Lines(t.Context(), ps, engine.Stdout, logs.Query{Follow: true}) {
				close(reading) // there is one line
			}
		})
		<-reading
	}
	if err := here.Remove(ps); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestFollowingEndsWithItsContextAndItsStore(t *testing.T) {
	s, err := logs.Open(t.TempDir(), logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := writer(t, s, false)
	say(t, w, "one\n")
	follow := func(ctx context.Context) (err error) {
		for _, err = range s.Lines(ctx, ps, engine.Stdout, logs.Query{Follow: true}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- follow(ctx) }()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled, it ended with %v", err)
	}
	go func() { ended <- follow(t.Context()) }()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, engine.Unavailable) {
		t.Errorf("closed, it ended with %v", err)
	}
	say(t, w, "late words are kept\n")
}

func TestFollowingInsideABubbleNeedsNoInotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), logs.Options{})
		w := writer(t, s, true)
		next, stop := pull(t.Context(), s, logs.Query{Follow: true})
		defer stop()
		for i := range 10 {
			synctest.Wait()
			say(t, w, fmt.Sprintf("%d\n", i))
			equal(t, "line", next(t).Text, fmt.Sprint(i))
		}
		w.Close()
	})
}

func TestBytesAreWhatWasWritten(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{SegmentSize: 10, Segments: 100})
	w := writer(t, s, true)
	say(t, w, "\x00\xff\r\nno end")
	r, err := s.Bytes(t.Context(), ps, engine.Stdout, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		io.WriteString(w, " to the end")
		w.Close()
	}()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "bytes", string(b), "\xff\r\nno end to the end")
}

func TestBytesThatWereLostAreAnErrorAndNoGap(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{SegmentSize: 10, Segments: 2})
	say(t, writer(t, s, false), strings.Repeat("x", 100))
	r, err := s.Bytes(t.Context(), ps, engine.Stdout, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(make([]byte, 10)); !errors.Is(err, engine.Compacted) || engine.Hint(err) != "go on from position 80" {
		t.Errorf("%v (%s)", err, engine.Hint(err))
	}
}

func TestClosingBytesEndsAReadThatWaits(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	writer(t, s, false)
	r, err := s.Bytes(t.Context(), ps, engine.Stdout, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := r.Read(make([]byte, 10))
		ended <- err
	}()
	r.Close()
	if err := <-ended; err == nil {
		t.Error("read something")
	}
}

func TestFilesThatAreTamperedWithHarmNobody(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, logs.Options{})
	w := writer(t, s, false)
	say(t, w, "one\ntwo\n")
	path := filepath.Join(dir, string(ps))
	for name, data := range map[string]string{
		"out-00000000000000000000.idx": "torn",
		"out-garbage.log":              "x",
		"out-99999999999999999999.log": "x",
		"unrelated":                    "x",
	} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "lines", texts(read(t, s, logs.Query{})), []string{"one", "two"})
	if err := os.Truncate(filepath.Join(path, "out-00000000000000000000.log"), 4); err != nil {
		t.Fatal(err)
	}
	equal(t, "lines after a truncation", texts(read(t, s, logs.Query{})), []string{"one"})
}
