package logs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sbx/engine/logs"
)

func TestLinesAreStampedToASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), logs.Options{SegmentSize: 100, Segments: 100})
		w := writer(t, s, false)
		var came []time.Time
		for i := range 200 {
			time.Sleep(time.Duration(i*37%1700) * time.Millisecond)
			came = append(came, time.Now())
			say(t, w, fmt.Sprintf("line %d\n", i))
		}
		lines := read(t, s, logs.Query{})
		if len(lines) != len(came) {
			t.Fatalf("%d lines", len(lines))
		}
		for i, l := range lines {
			if off := came[i].Sub(l.Time); off < -time.Millisecond || off > time.Second {
				t.Errorf("line %d came at %s, stamped %s before", i, came[i], off)
			}
		}
		for _, i := range []int{0, 1, 50, 120, 199} {
			from := read(t, s, logs.Query{Since: came[i]})[0]
			for k, at := range came {
				if from.Text == fmt.Sprintf("line %d", k) && (k > i || came[i].Sub(at) > 2*time.Second) {
					t.Errorf("since line %d begins with line %d, %s earlier", i, k, came[i].Sub(at))
				}
			}
		}
		if got := read(t, s, logs.Query{Since: time.Now().Add(time.Hour)}); len(got) != 0 {
			t.Errorf("%d lines came in the future", len(got))
		}
		if got := read(t, s, logs.Query{Since: came[0].Add(-time.Hour)}); len(got) != len(lines) {
			t.Errorf("%d lines came since before the first", len(got))
		}
	})
}

func TestSinceAfterALongSilenceSkipsWhatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), logs.Options{})
		w := writer(t, s, false)
		say(t, w, "old\n")
		time.Sleep(time.Hour)
		since := time.Now()
		time.Sleep(time.Hour)
		say(t, w, "new\n")
		equal(t, "lines", texts(read(t, s, logs.Query{Since: since})), []string{"new"})
	})
}

func TestALostIndexCostsExactTimesOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, logs.Options{SegmentSize: 20, Segments: 100})
	w := writer(t, s, false)
	for i := range 20 {
		say(t, w, fmt.Sprintf("line %d\n", i))
	}
	w.Close()
	files, err := filepath.Glob(filepath.Join(dir, string(ps), "*.idx"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	for i, f := range files {
		switch i % 3 {
		case 0:
			err = os.Remove(f)
		case 1:
			err = os.Truncate(f, 7) // torn in its first record
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range read(t, s, logs.Query{}) {
		if since := time.Since(l.Time); since < 0 || since > time.Minute {
			t.Errorf("%q is of %s", l.Text, l.Time)
		}
	}
	equal(t, "lines since", len(read(t, s, logs.Query{Since: time.Now().Add(-time.Minute)})), 20)
	say(t, writer(t, s, false), "more\n") // a writer makes it whole again
	equal(t, "lines", len(read(t, s, logs.Query{})), 21)
}
