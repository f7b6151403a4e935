package logs

import (
	"bytes"
	"strings"
)

// lastMax is how much of the last line is kept.
const lastMax = 200

// lastLine remembers the beginning of the last line that isn't blank. Each
// write is searched from its end, for as far as that line reaches.
type lastLine struct {
	whole   []byte // the last line that has its end
	started []byte // what stands after that end
}

func (l *lastLine) write(p []byte) {
	end := bytes.LastIndexByte(p, '\n')
	if end < 0 {
		l.started = addHead(l.started, p)
		return
	}
	rest := p[end+1:]
	for end >= 0 {
		begin := bytes.LastIndexByte(p[:end], '\n')
		if begin < 0 {
			l.started = addHead(l.started, p[:end])
			if !blank(l.started) {
				l.whole, l.started = l.started, l.whole
			}
			break
		}
		if line := p[begin+1 : end]; !blank(head(line)) {
			l.whole = addHead(l.whole[:0], line)
			break
		}
		end = begin
	}
	l.started = addHead(l.started[:0], rest)
}

// String is the last line as text. What is on its way counts: a line that
// never ends is the one a stall is told by.
func (l *lastLine) String() string {
	line := l.started
	if blank(line) {
		line = l.whole
	}
	return strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), " \t\r\uFFFD")
}

func head(line []byte) []byte { return line[:min(len(line), lastMax)] }

func addHead(to, from []byte) []byte {
	return append(to, from[:min(len(from), lastMax-len(to))]...)
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
