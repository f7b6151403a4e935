package redact

import (
	"bytes"
	"io"
	"strings"
)

// Bounds of a stream's memory.
const (
	maxHeld = 64 << 10
	overlap = 4 << 10 // of a line that is longer than what may be held
)

// Writer is a stream that is redacted on its way: whole lines, and private keys
// as a whole. Close writes what is still held; it doesn't close what is below.
type Writer struct {
	r    *Redactor
	to   io.Writer
	held []byte
	// whole is how much of held are whole lines: some, if a private key among
	// them has not ended.
	whole int
}

// Writer is one that redacts what is written to it, to w.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, to: w} }

// Write takes all of b.
func (w *Writer) Write(b []byte) (int, error) {
	if at := bytes.LastIndexByte(b, '\n'); at >= 0 {
		w.whole = len(w.held) + at + 1
	}
	w.held = append(w.held, b...)
	cut := w.whole
	if begin := openKey(w.held[:cut]); begin >= 0 && len(w.held)-begin < maxKey {
		cut = begin
	}
	if cut == 0 && len(w.held) > maxHeld {
		cut = w.wordEnd(len(w.held) - overlap)
	}
	if cut == 0 {
		return len(b), nil
	}
	err := w.flush(cut)
	return len(b), err
}

// wordEnd is a place at or before i, at the end of a word if one is near.
func (w *Writer) wordEnd(i int) int {
	if at := bytes.LastIndexAny(w.held[i-overlap:i], " \t,;\"'"); at >= 0 {
		return i - overlap + at + 1
	}
	return i
}

// Close writes what is held.
func (w *Writer) Close() error { return w.flush(len(w.held)) }

func (w *Writer) flush(n int) error {
	if n == 0 {
		return nil
	}
	_, err := io.WriteString(w.to, w.r.String(string(w.held[:n])))
	w.held = append(w.held[:0], w.held[n:]...)
	w.whole = max(0, w.whole-n)
	return err
}

// openKey is where a private key begins whose end has not come, or -1.
func openKey(b []byte) int {
	begin := bytes.LastIndex(b, []byte("-----BEGIN "))
	if begin < 0 || bytes.Contains(b[begin:], []byte("-----END ")) {
		return -1
	}
	head, _, _ := strings.Cut(string(b[begin:min(len(b), begin+64)]), "\n")
	if !strings.Contains(head, "PRIVATE KEY") {
		return -1
	}
	return begin
}
