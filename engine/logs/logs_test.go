package logs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/engine/logs"
)

const ps = engine.ProcessID("ps-aaaaaaaaaa")

func open(t *testing.T, dir string, o logs.Options) *logs.Store {
	t.Helper()
	s, err := logs.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func writer(t *testing.T, s *logs.Store, final bool) *logs.Writer {
	t.Helper()
	w, err := s.Writer(ps, engine.Stdout, final)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func say(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if n, err := io.WriteString(w, text); err != nil || n != len(text) {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
	}
}

func read(t *testing.T, s *logs.Store, q logs.Query) []engine.LogLine {
	t.Helper()
	var list []engine.LogLine
	for l, err := range s.Lines(t.Context(), ps, engine.Stdout, q) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func texts(lines []engine.LogLine) []string {
	var list []string
	for _, l := range lines {
		list = append(list, l.Text)
	}
	return list
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestLinesHaveThePositionsOfTheirBytes(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	w := writer(t, s, false)
	say(t, w, "one\ntwo\r\n\nhalf")

	type line struct {
		text      string
		pos, next engine.LogPosition
		partial   bool
	}
	var got []line
	for _, l := range read(t, s, logs.Query{}) {
		got = append(got, line{l.Text, l.Pos, l.Next, l.Partial})
		if since := time.Since(l.Time); since < 0 || since > time.Minute {
			t.Errorf("%q arrived at %s", l.Text, l.Time)
		}
	}
	want := []line{{"one", 0, 4, false}, {"two", 4, 9, false}, {"", 9, 10, false}, {"half", 10, 14, true}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(line{})); d != "" {
		t.Error(d)
	}
	if w.Position() != 14 {
		t.Errorf("the log ends at %d", w.Position())
	}
}

func TestBytesThatAreNoTextStayAsTheyWere(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	say(t, writer(t, s, true), "a\x00b\xff\xc3\n\x1b[31mred\n")
	equal(t, "lines", texts(read(t, s, logs.Query{})), []string{"a\x00b\xff\xc3", "\x1b[31mred"})
}

func TestALineThatIsTooLongComesInPieces(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	w := writer(t, s, false)
	long := strings.Repeat("x", engine.MaxLogLine-1) + "é" + strings.Repeat("y", 10)
	exact := strings.Repeat("z", engine.MaxLogLine)
	say(t, w, long+"\n"+exact+"\r\nend\n")

	got := read(t, s, logs.Query{})
	if len(got) != 4 {
		t.Fatalf("%d lines", len(got))
	}
	if got[0].Text+got[1].Text != long || !got[0].Partial || got[1].Partial {
		t.Errorf("the pieces are %d and %d bytes, partial %t and %t", len(got[0].Text), len(got[1].Text), got[0].Partial, got[1].Partial)
	}
	if !strings.HasPrefix(got[1].Text, "é") {
		t.Error("a character was cut in two")
	}
	if got[2].Text != exact || got[2].Partial {
		t.Error("a line of exactly the greatest length is not whole")
	}
	for i, l := range got[1:] {
		if l.Pos != got[i].Next {
			t.Errorf("line %d begins at %d, the one before ends at %d", i+1, l.Pos, got[i].Next)
		}
	}
}

func TestPositionsStayTrueOverRotationAndReopening(t *testing.T) {
	dir := t.TempDir()
	o := logs.Options{SegmentSize: 64, Segments: 100}
	var want strings.Builder
	positions := map[engine.LogPosition]string{}
	for round := range 5 {
		s := open(t, dir, o) // as after a crash: the one before was not closed
		w := writer(t, s, false)
		for i := range 20 {
			text := fmt.Sprintf("round %d line %d", round, i)
			if int(w.Position()) != want.Len() {
				t.Fatalf("the log ends at %d, %d were written", w.Position(), want.Len())
			}
			positions[w.Position()] = text
			say(t, w, text+"\n")
			want.WriteString(text + "\n")
		}
	}
	s := open(t, dir, o)
	for pos, text := range positions {
		for l, err := range s.Lines(t.Context(), ps, engine.Stdout, logs.Query{After: pos}) {
			if err != nil || l.Text != text || l.Pos != pos {
				t.Errorf("at %d: %q at %d, %v; want %q", pos, l.Text, l.Pos, err, text)
			}
			break
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, string(ps), "*.log")); len(files) < 10 {
		t.Errorf("%d segments: nothing was rotated", len(files))
	}
}

func TestAReaderThatFellBehindIsToldHowMuchItLost(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{SegmentSize: 100, Segments: 3})
	w := writer(t, s, false)
	line := strings.Repeat("x", 9) + "\n"
	say(t, w, line)
	next, stop := pull(t.Context(), s, logs.Query{Follow: true})
	defer stop()
	before := next(t)
	for range 99 {
		say(t, w, line)
	}
	first, end, err := s.Bounds(ps, engine.Stdout)
	if err != nil || end != 1000 || first < 700 {
		t.Fatalf("bounds %d to %d, %v", first, end, err)
	}

	seen := before.Next
	for seen < end {
		l := next(t)
		if l.Pos != seen+engine.LogPosition(l.Lost) {
			t.Fatalf("a line at %d with %d lost, after one that ended at %d", l.Pos, l.Lost, seen)
		}
		if l.Lost > 0 && l.Pos != first {
			t.Errorf("went on at %d, but %d is kept", l.Pos, first)
		}
		seen = l.Next
	}

	late := read(t, s, logs.Query{After: 50})[0]
	equal(t, "lost to one that comes late", late.Lost, int64(first)-50)
	if tail := read(t, s, logs.Query{Tail: 3}); len(tail) != 3 || tail[0].Lost != 0 {
		t.Errorf("a tail of 3 is %v", tail)
	}
}

// pull is Lines as a function that fails the test.
func pull(ctx context.Context, s *logs.Store, q logs.Query) (next func(*testing.T) engine.LogLine, stop func()) {
	type item struct {
		line engine.LogLine
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	items := make(chan item)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(items)
		for l, err := range s.Lines(ctx, ps, engine.Stdout, q) {
			select {
			case items <- item{l, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	next = func(t *testing.T) engine.LogLine {
		t.Helper()
		select {
		case i, ok := <-items:
			if !ok || i.err != nil {
				t.Fatalf("the log ended: %v", i.err)
			}
			return i.line
		case <-time.After(10 * time.Second):
			t.Fatal("no line came")
		}
		panic("unreachable")
	}
	return next, func() { cancel(); <-done }
}

func TestTailIsTheLastLines(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{SegmentSize: 50, Segments: 100})
	w := writer(t, s, false)
	for i := range 100 {
		say(t, w, fmt.Sprintf("line %d\n", i))
	}
	equal(t, "tail 2", texts(read(t, s, logs.Query{Tail: 2})), []string{"line 98", "line 99"})
	equal(t, "tail 1000", len(read(t, s, logs.Query{Tail: 1000})), 100)
	equal(t, "tail without bound", len(read(t, s, logs.Query{Tail: 1 << 62})), 100)
	say(t, w, "half")
	equal(t, "tail with an unfinished line", texts(read(t, s, logs.Query{Tail: 2})), []string{"line 99", "half"})
	equal(t, "a position beats a tail", texts(read(t, s, logs.Query{Tail: 2, After: w.Position() - 4})), []string{"half"})
}

func TestATailOfOneHugeLineIsBounded(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	say(t, writer(t, s, false), strings.Repeat("x", 20*engine.MaxLogLine))
	if n := len(read(t, s, logs.Query{Tail: 2})); n > 3 {
		t.Errorf("a tail of 2 has %d pieces", n)
	}
}

func TestAPositionBeyondTheEndBeginsAtTheEnd(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	say(t, writer(t, s, false), "one\n")
	if got := read(t, s, logs.Query{After: 1 << 60}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	equal(t, "a negative one", texts(read(t, s, logs.Query{After: -5})), []string{"one"})
}

func TestAnUnknownProcessHasNoLines(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, logs.Options{})
	if got := read(t, s, logs.Query{Tail: 10}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("reading made %v", entries)
	}
}

func TestIdsCannotLeaveTheDirectory(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	for _, id := range []engine.ProcessID{"", "ps-", "..", "ps-../../etc", "/etc", "ps-a/b", "x"} {
		if _, err := s.Writer(id, engine.Stdout, false); !errors.Is(err, engine.Invalid) {
			t.Errorf("%q: %v", id, err)
		}
		if err := s.Remove(id); !errors.Is(err, engine.Invalid) {
			t.Errorf("removing %q: %v", id, err)
		}
	}
	if _, err := s.Writer(ps, "../x", false); !errors.Is(err, engine.Invalid) {
		t.Errorf("a stream of any name: %v", err)
	}
}

func TestNobodyElseCanOpenALog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, logs.Options{})
	say(t, writer(t, s, false), "x\n")
	err := filepath.WalkDir(filepath.Join(dir, string(ps)), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStartBeginsOnALineOfItsOwn(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	w := writer(t, s, false)
	say(t, w, "panic: hal")
	w.Close()
	w = writer(t, s, false)
	equal(t, "where the second start's log begins", w.Position(), 11)
	say(t, w, "listening\n")
	equal(t, "lines", texts(read(t, s, logs.Query{})), []string{"panic: hal", "listening"})
}

func TestRotationKeepsAtMostSoManySegments(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, logs.Options{SegmentSize: 10, Segments: 4})
	w := writer(t, s, false)
	for range 30 {
		say(t, w, strings.Repeat("x", 25)+"\n")
		for _, kind := range []string{"*.log", "*.idx"} {
			if files, _ := filepath.Glob(filepath.Join(dir, string(ps), kind)); len(files) > 4 {
				t.Fatalf("%d files %s", len(files), kind)
			}
		}
	}
}

func TestLastLineIsTheLastThatSaysSomething(t *testing.T) {
	s := open(t, t.TempDir(), logs.Options{})
	w := writer(t, s, false)
	for _, c := range []struct{ write, want string }{
		{"", ""},
		{"one\n", "one"},
		{"two\nthree\n", "three"},
		{"\n  \n\r\n", "three"},
		{"Bundl", "Bundl"},
		{"ing…", "Bundling…"},
		{"\r\n\n", "Bundling…"},
		{"four\n\n \nfi", "fi"},
		{"\n" + strings.Repeat("é", 300) + "\n", strings.Repeat("é", 100)},
		{"a\xffb\n", "a\uFFFDb"},
		{strings.Repeat("\n", 5000), "a\uFFFDb"},
	} {
		say(t, w, c.write)
		if got := s.LastLine(ps); got != c.want {
			t.Errorf("after %.20q the last line is %q, want %q", c.write, got, c.want)
		}
	}
	w.Close()
	if s.LastLine(ps) == "" {
		t.Error("forgot the last line of a process that went")
	}
}

func TestRemovedLogsAreGoneAndSwallowWhatStillComes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, logs.Options{SegmentSize: 10})
	w := writer(t, s, false)
	say(t, w, "one\n")
	if err := s.Remove(ps); err != nil {
		t.Fatal(err)
	}
	say(t, w, strings.Repeat("late\n", 10))
	if _, err := os.Stat(filepath.Join(dir, string(ps))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if got := read(t, s, logs.Query{}); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
