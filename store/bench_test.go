package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sbx/engine"
)

// pingPong makes the nth change of a sandbox that waits and runs in turn.
func pingPong(n int) engine.LifeTrigger {
	if n%2 == 0 {
		return engine.Begin
	}
	return engine.Rest
}

// BenchmarkFloor is the least that the work needs: a row of the size of an
// event and nothing else, a transaction each, all of it on the disk.
func BenchmarkFloor(b *testing.B) {
	db := openDB(writeDSN(pathIn(b.TempDir()), "full"))
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL) STRICT"); err != nil {
		b.Fatal(err)
	}
	text, err := encode(sampleSandbox("floor"))
	if err != nil {
		b.Fatal(err)
	}
	st, err := db.Prepare("INSERT INTO t (body) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := st.Exec(text); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFloorBatched is the same a hundred rows to a transaction: what the
// rows cost without the disk.
func BenchmarkFloorBatched(b *testing.B) {
	db := openDB(writeDSN(pathIn(b.TempDir()), "full"))
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL) STRICT"); err != nil {
		b.Fatal(err)
	}
	text, err := encode(sampleSandbox("floor"))
	if err != nil {
		b.Fatal(err)
	}
	var tx *sql.Tx
	var st *sql.Stmt
	for n := 0; b.Loop(); n++ {
		if n%100 == 0 {
			if tx != nil {
				err = tx.Commit()
			}
			if err == nil {
				tx, err = db.Begin()
			}
			if err == nil {
				st, err = tx.Prepare("INSERT INTO t (body) VALUES (?)")
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if _, err := st.Exec(text); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkChangeAlone is one state change with its event, durable, alone.
func BenchmarkChangeAlone(b *testing.B) {
	s := openStore(b, b.TempDir())
	id := putSample(b, s, "alone").ID
	took := make([]time.Duration, 0, 1<<16)
	n := 0
	for b.Loop() {
		start := time.Now()
		fire(b, s, id, pingPong(n))
		took = append(took, time.Since(start))
		n++
	}
	b.ReportMetric(float64(percentile(took, 50).Microseconds()), "p50-µs")
	b.ReportMetric(float64(percentile(took, 99).Microseconds()), "p99-µs")
}

// BenchmarkChangeGrouped is the same from 8 writers, while 8 readers follow
// the journal to its end.
func BenchmarkChangeGrouped(b *testing.B) {
	for _, writers := range []int{8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) { changeGrouped(b, writers, 8) })
	}
}

func changeGrouped(b *testing.B, writers, readers int) {
	s := openStore(b, b.TempDir())
	ids := make([]engine.SandboxID, writers)
	for i := range ids {
		ids[i] = putSample(b, s, fmt.Sprint("grouped-", i)).ID
	}
	from, err := s.Position(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	last := from.Seq + engine.Seq(b.N)
	var read, write sync.WaitGroup
	for range readers {
		read.Go(func() {
			for ev, err := range s.Events(context.Background(), from.Seq) {
				if err != nil {
					b.Error(err)
				}
				if err != nil || ev.Seq == last {
					return
				}
			}
		})
	}
	var next atomic.Int64
	b.ResetTimer()
	for _, id := range ids {
		write.Go(func() {
			for n := 0; next.Add(1) <= int64(b.N); n++ {
				fire(b, s, id, pingPong(n))
			}
		})
	}
	write.Wait()
	read.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
}
