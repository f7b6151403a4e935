//go:build linux

package shim

import (
	"testing"
	"time"
)

// A minute of a writer that never stops: it may begin as fast as it likes, and
// has no more than the rate after that.
func TestAFloodIsSlowedToItsRate(t *testing.T) {
	var f flood
	const chunk = 64 << 10
	begun := time.Unix(1_000_000, 0)
	now, written := begun, int64(0)
	for now.Sub(begun) < time.Minute {
		written += chunk
		now = now.Add(20*time.Microsecond + f.took(now, chunk)) // 3 GB/s if it may
	}
	if most := int64(floodBurst + 61*floodRate); written > most || written < floodBurst {
		t.Errorf("in a minute it wrote %d MiB, want at most %d", written>>20, most>>20)
	}
	// An hour of silence later it may burst again, and not twice.
	now = now.Add(time.Hour)
	for range floodBurst / chunk {
		if d := f.took(now, chunk); d != 0 {
			t.Fatalf("after an hour it waits %s", d)
		}
	}
	if f.took(now, chunk) <= 0 {
		t.Error("an hour of silence saved up more than one burst")
	}
}

func TestWhoWritesLittleNeverWaits(t *testing.T) {
	var f flood
	now := time.Unix(1_000_000, 0)
	for range 100_000 { // 10 MB a second for hours
		now = now.Add(100 * time.Millisecond)
		if d := f.took(now, 1<<20); d != 0 {
			t.Fatalf("it waits %s", d)
		}
	}
}
