package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"sbx/engine"
)

// cast writes what a terminal printed as an asciicast of version 2: a line of
// JSON for the head and one for each moment. What isn't kept any more is a
// marker.
func (c *cli) cast(ctx context.Context, ref string) error {
	e, err := c.open(ctx, toLook)
	if err != nil {
		return err
	}
	defer e.Close()
	p, err := engine.FindProcess(ctx, e, ref)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.out)
	w := &castWriter{to: out, title: p.Name}
	for r, err := range e.Recording(ctx, p.ID) {
		if err == nil {
			err = w.moment(r)
		}
		if err != nil {
			return err
		}
	}
	if err := w.end(); err != nil {
		return err
	}
	if p.Terminal != nil && !p.Terminal.Recorded {
		c.say("it was not opened with --record: its times are known to about a second")
	}
	return out.Flush()
}

// castWriter writes an asciicast.
type castWriter struct {
	to    io.Writer
	title string
	begun time.Time
	last  float64
	size  engine.TermSize
	rest  []byte // the beginning of a character
}

func (w *castWriter) moment(r engine.Recorded) error {
	if w.begun.IsZero() {
		w.begun = r.At
		size := r.Size
		if size.Zero() {
			size = engine.DefaultTermSize
		}
		w.size = size
		if err := w.line(map[string]any{
			"version": 2, "width": size.Cols, "height": size.Rows, "timestamp": r.At.Unix(), "title": w.title,
			"env": map[string]string{"TERM": "xterm-256color"},
		}); err != nil {
			return err
		}
	}
	if r.Lost > 0 {
		if err := w.event(r.At, "m", fmt.Sprintf("%d bytes before this are not kept any more", r.Lost)); err != nil {
			return err
		}
	}
	if !r.Size.Zero() && r.Size != w.size {
		w.size = r.Size
		if err := w.event(r.At, "r", fmt.Sprintf("%dx%d", r.Size.Cols, r.Size.Rows)); err != nil {
			return err
		}
	}
	if len(r.Output) == 0 {
		return nil
	}
	return w.output(r)
}

// output writes text: JSON has no other bytes. A character that comes in two
// moments is of the second one.
func (w *castWriter) output(r engine.Recorded) error {
	b := append(w.rest, r.Output...)
	cut := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut -= i
			}
			break
		}
	}
	w.rest = bytes.Clone(b[cut:])
	if cut == 0 {
		return nil
	}
	return w.event(r.At, "o", strings.ToValidUTF8(string(b[:cut]), "\ufffd"))
}

func (w *castWriter) event(at time.Time, kind, data string) error {
	w.last = max(w.last, at.Sub(w.begun).Seconds()) // a clock that was put back puts nothing back
	return w.line([]any{json.Number(fmt.Sprintf("%.6f", w.last)), kind, data})
}

func (w *castWriter) end() error {
	if len(w.rest) == 0 {
		return nil
	}
	return w.line([]any{json.Number(fmt.Sprintf("%.6f", w.last)), "o", "\ufffd"})
}

func (w *castWriter) line(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.to.Write(escapeActing(b.Bytes()))
	return err
}
