package logs

import (
	"bytes"
	"strings"
	"testing"

	"sbx/engine"
)

// FuzzSplitter holds the splitter to its law: whatever comes, in whatever
// chunks, the pieces lie side by side, none is longer than a line may be, and
// put together with their line ends they are what came.
func FuzzSplitter(f *testing.F) {
	long := strings.Repeat("x", engine.MaxLogLine)
	for _, seed := range []string{
		"", "\n", "\r\n", "a\nb", "a\r\n\r\nb\r", "\x00\xff\n", long, long + "\n", long + "\r\n", long + "x\r\n",
		long[:engine.MaxLogLine-1] + "é\n", long + long + long + "\n\n", strings.Repeat("\xe2\x82", 40_000),
	} {
		for _, chunk := range []uint16{1, 7, 4096, 65535} {
			if chunk > 7 || len(seed) < 1000 {
				f.Add([]byte(seed), chunk, uint16(0))
				f.Add([]byte(seed), chunk, uint16(len(seed)/2))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, chunk, gap uint16) {
		var s splitter
		c := collector{t: t, data: data}
		for at := 0; at < len(data); {
			c.drain(&s, false)
			n := copy(s.room()[:min(len(s.room()), int(chunk)+1)], data[at:])
			if n == 0 {
				t.Fatal("no room")
			}
			if at > 0 && at == int(gap) {
				const lost = 1000
				s.cut(int64(at) + lost)
				c.gap, c.lost = at, lost
			}
			s.fill(n)
			at += n
		}
		c.drain(&s, true)
		if c.pos != int64(len(data))+c.lost {
			t.Errorf("pieces end at %d of %d", c.pos, len(data))
		}
	})
}

type collector struct {
	t    *testing.T
	data []byte
	pos  int64
	gap  int   // where in data
	lost int64 // there
}

func (c *collector) drain(s *splitter, end bool) {
	for {
		p, ok := s.next(end)
		if !ok {
			return
		}
		c.check(p)
	}
}

func (c *collector) check(p piece) {
	shift := int64(0)
	if c.lost > 0 && c.pos >= int64(c.gap) {
		c.pos, shift = max(c.pos, int64(c.gap)+c.lost), c.lost
	}
	if p.pos != c.pos || p.next <= p.pos || len(p.text) > engine.MaxLogLine {
		c.t.Fatalf("a piece from %d to %d with %d bytes, after %d", p.pos, p.next, len(p.text), c.pos)
	}
	came := c.data[p.pos-shift : p.next-shift]
	end := string(came[len(p.text):])
	if !bytes.HasPrefix(came, p.text) || (end != "\n" && end != "\r\n" && end != "") || (end != "" && p.partial) {
		c.t.Fatalf("%q was made of %q", p.text, came)
	}
	if bytes.IndexByte(p.text, '\n') >= 0 {
		c.t.Fatalf("%q has a line end", p.text)
	}
	c.pos = p.next
}
