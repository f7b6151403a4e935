package logs_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sbx/engine"
	"sbx/engine/logs"
)

// The floor of both benchmarks is the same bytes into a plain file.
const benchLine = 100

// BenchmarkBulk writes lines of 100 bytes, 64 KiB at a time, as a pump does
// that reads a full pipe.
func BenchmarkBulk(b *testing.B) {
	chunk := bytes.Repeat(append(bytes.Repeat([]byte("x"), benchLine-1), '\n'), (64<<10)/benchLine)
	compare(b, chunk)
}

// BenchmarkLine writes each line by itself.
func BenchmarkLine(b *testing.B) {
	compare(b, append(bytes.Repeat([]byte("x"), benchLine-1), '\n'))
}

func compare(b *testing.B, chunk []byte) {
	run := func(b *testing.B, w io.WriteCloser) {
		b.SetBytes(int64(len(chunk)))
		for b.Loop() {
			if _, err := w.Write(chunk); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(chunk)/benchLine), "ns/line")
		w.Close()
	}
	b.Run("plain", func(b *testing.B) {
		f, err := os.OpenFile(filepath.Join(b.TempDir(), "plain"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		run(b, f)
	})
	b.Run("logs", func(b *testing.B) {
		s, err := logs.Open(b.TempDir(), logs.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		w, err := s.Writer("ps-bench", engine.Stdout, true)
		if err != nil {
			b.Fatal(err)
		}
		run(b, w)
	})
}

// BenchmarkRead reads lines of 100 bytes back.
func BenchmarkRead(b *testing.B) {
	s, err := logs.Open(b.TempDir(), logs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w, err := s.Writer("ps-bench", engine.Stdout, true)
	if err != nil {
		b.Fatal(err)
	}
	chunk := bytes.Repeat(append(bytes.Repeat([]byte("x"), benchLine-1), '\n'), 100_000)
	if _, err := w.Write(chunk); err != nil {
		b.Fatal(err)
	}
	w.Close()
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		n := 0
		for _, err := range s.Lines(b.Context(), "ps-bench", engine.Stdout, logs.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 100_000 {
			b.Fatalf("%d lines", n)
		}
	}
}
