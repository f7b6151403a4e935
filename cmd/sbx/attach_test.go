package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNothingASandboxWritesActsOnTheTerminal(t *testing.T) {
	const wrote = "prompt> \x1b[2J日本\r\nnext\x1b]52;c;AAAA\x07 é\n\x9b31m"
	var whole strings.Builder
	for size := 1; size < len(wrote); size++ { // however it is cut
		var out strings.Builder
		w := &tamed{to: &out}
		for rest := []byte(wrote); len(rest) > 0; {
			n := min(size, len(rest))
			if got, err := w.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("wrote %d of %d, %v", got, n, err)
			}
			rest = rest[n:]
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\r") || !utf8.ValidString(out.String()) {
			t.Errorf("cut every %d bytes, %q would act", size, out.String())
		}
		if !strings.HasPrefix(out.String(), "prompt> ") || !strings.Contains(out.String(), "日本\nnext") || !strings.Contains(out.String(), "é\n") {
			t.Errorf("cut every %d bytes, it reads %q", size, out.String())
		}
		whole.WriteString(out.String())
	}
	if strings.Contains(whole.String(), "\ufffd\ufffd\ufffd") {
		t.Error("a character was torn")
	}
}
