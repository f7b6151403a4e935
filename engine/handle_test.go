package engine

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestKeptOutputIsCutInTheMiddleOnly(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 19, 20, 21, 30, 1000} {
		k := kept{max: 20}
		whole := strings.Repeat("0123456789", n/10+1)[:n]
		for part := range strings.SplitSeq(whole, "5") {
			k.add(LogLine{Text: part, Partial: true})
			if len(part) < len(whole) {
				k.add(LogLine{Text: "5", Partial: true})
			}
		}
		whole = strings.Join(strings.Split(whole, "5"), "5")
		text, cut := k.text()
		head, tail, marked := strings.Cut(text, "\n… ")
		if n < 20 && (marked || cut != 0 || !strings.HasPrefix(text, whole)) {
			t.Errorf("%d bytes: %q, cut %d", n, text, cut)
		}
		if n > 21 && (!marked || len(head) != 10 || !strings.HasPrefix(whole, head) || cut < int64(n-20)) {
			t.Errorf("%d bytes: %q and %q, cut %d", n, head, tail, cut)
		}
	}
}

func TestKeptOutputCountsWhatFellOffBeforeItWasRead(t *testing.T) {
	k := kept{max: 100}
	k.add(LogLine{Text: "after", Lost: 7})
	if text, cut := k.text(); cut != 7 || !strings.HasSuffix(text, "after\n") {
		t.Errorf("kept %q, cut %d", text, cut)
	}
	none := kept{}
	none.add(LogLine{Text: "anything"})
	if text, _ := none.text(); text != "" {
		t.Errorf("kept %q of what was not to be kept", text)
	}
}

func TestKeptOutputEndsInWholeCharacters(t *testing.T) {
	k := kept{max: 50}
	for range 100 {
		k.add(LogLine{Text: "日本", Partial: true})
	}
	text, _ := k.text()
	if _, tail, _ := strings.Cut(text, "cut …\n"); !utf8.ValidString(tail) || tail == "" {
		t.Errorf("the end is %q", tail)
	}
}

func TestAnExitSaysWhatIsTrue(t *testing.T) {
	for want, e := range map[string]Exit{
		"exit 3":                         {Code: 3},
		"SIGKILL":                        {Code: 137, Signal: "SIGKILL"},
		"timed out":                      {Code: 124, TimedOut: true},
		"out of memory":                  {Code: 137, Signal: "SIGKILL", OOM: true},
		"not started: no such directory": {Code: 126, Error: "no such directory"},
		"the engine stopped":             {Code: 137, Signal: "SIGKILL", Killed: true, Error: "the engine stopped"},
		"its exit can't be read":         {Code: 128, Uptime: Duration(time.Second), Error: "its exit can't be read"},
	} {
		if got := e.String(); got != want {
			t.Errorf("%+v is told as %q, want %q", e, got, want)
		}
	}
}

func TestARefusedNameIsRepeatedInPart(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", 1<<20), strings.Repeat("é", 1000), strings.Repeat("\xff", 1000)} {
		err := CheckName(name)
		if AsCode(err) != Invalid || len(err.Error()) > 500 || !strings.Contains(err.Error(), "…") {
			t.Errorf("a name of %d bytes is refused with %d bytes: %.200s", len(name), len(err.Error()), err)
		}
	}
	if got := cutRunes("héllo", 5); got != "héllo" {
		t.Errorf("what fits became %q", got)
	}
	if got := cutRunes("héllos", 5); got != "héll…" {
		t.Errorf("what doesn't fit became %q", got)
	}
}
