package store

import (
	"fmt"
	"testing"

	"sbx/engine"
)

// crowd is a store with so many live and cold sandboxes.
func crowd(b *testing.B, live, cold int) *Store {
	b.Helper()
	s := openStore(b, b.TempDir())
	const at = 1000
	for from := 0; from < live+cold; from += at {
		err := s.Update(b.Context(), func(tx *Tx) error {
			for i := from; i < min(from+at, live+cold); i++ {
				sb := sampleSandbox(fmt.Sprint("s", i))
				sb.ID, sb.Keep, sb.Wanted, sb.State = engine.SandboxID(fmt.Sprintf("sb-%010d", i)), false, engine.Up, engine.Waiting
				if i >= live {
					sb.Wanted, sb.State = engine.Down, engine.Cold
				}
				if err := tx.PutSandbox(&sb); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkVictim chooses whom to evict, with 100 live and 10 cold, and with
// 100,000 records.
func BenchmarkVictim(b *testing.B) {
	for _, n := range []int{110, 100_000} {
		b.Run(fmt.Sprint("records=", n), func(b *testing.B) {
			s := crowd(b, n-n/11, n/11)
			err := s.Update(b.Context(), func(tx *Tx) error {
				for b.Loop() {
					if _, ok := tx.Victim(nil); !ok {
						b.Fatal("there is nobody to evict")
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkFloorVictim is the same asked of SQLite, by a scan.
func BenchmarkFloorVictim(b *testing.B) {
	s := crowd(b, 100, 10)
	err := s.View(b.Context(), func(tx *Tx) error {
		var id string
		for b.Loop() {
			if _, err := tx.one("SELECT id FROM sandboxes WHERE state IN ('cold', 'warm', 'waiting') ORDER BY state, seq LIMIT 1", nil, &id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBeginRest moves one of many between waiting and running.
func BenchmarkBeginRest(b *testing.B) {
	for _, n := range []int{110, 100_000} {
		b.Run(fmt.Sprint("records=", n), func(b *testing.B) {
			s := crowd(b, n-n/11, n/11)
			for i := 0; b.Loop(); i++ {
				err := s.Update(b.Context(), func(tx *Tx) error {
					_, err := tx.Fire("sb-0000000001", pingPong(i))
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
