package engine

import (
	"fmt"
	"unicode/utf8"
)

// kept is what a bounded reader keeps of a stream: its beginning and its end.
type kept struct {
	max        int
	head, tail []byte
	cut        int64 // bytes that were between them
}

// add takes a line. The end of a line that has one is "\n".
func (k *kept) add(l LogLine) {
	k.cut += l.Lost
	k.write(l.Text)
	if !l.Partial {
		k.write("\n")
	}
}

func (k *kept) write(s string) {
	if k.max == 0 {
		return
	}
	half := k.max / 2
	if room := k.max - half - len(k.head); room > 0 && len(k.tail) == 0 && k.cut == 0 {
		n := min(room, len(s))
		k.head = append(k.head, s[:n]...)
		s = s[n:]
	}
	if k.tail = append(k.tail, s...); len(k.tail) > 2*half { // rarely, so that it costs little
		k.trim(half)
	}
}

// trim leaves the last n bytes of the tail.
func (k *kept) trim(n int) {
	over := len(k.tail) - n
	if over <= 0 {
		return
	}
	for over < len(k.tail) && !utf8.RuneStart(k.tail[over]) {
		over++ // no half characters
	}
	k.cut += int64(over)
	k.tail = append(k.tail[:0], k.tail[over:]...)
}

// text is what is kept, with a word on what isn't.
func (k *kept) text() (string, int64) {
	if k.max > 0 {
		k.trim(k.max / 2)
	}
	if k.cut == 0 {
		return string(k.head) + string(k.tail), 0
	}
	return fmt.Sprintf("%s\n… %d bytes cut …\n%s", k.head, k.cut, k.tail), k.cut
}
