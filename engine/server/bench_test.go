package server

import (
	"bytes"
	"io"
	"sync"
	"testing"
)

// BenchmarkEvents is the journal flat out to many sockets: an op is one event
// delivered to one of them.
func BenchmarkEvents(b *testing.B) {
	const sockets, burst = 1000, 200
	l := newLive(b, nil)
	from := l.position(b)
	var ready, wg sync.WaitGroup
	rounds := make([]chan struct{}, 0, sockets)
	for range sockets {
		ws := l.open(b, "/v1/events?after="+from.String(), "viewer-token")
		round := make(chan struct{}, 1)
		rounds = append(rounds, round)
		wg.Go(func() {
			var buf bytes.Buffer
			for range round {
				for n := 0; n < burst; {
					_, r, err := ws.NextReader()
					if err != nil {
						b.Error(err)
						return
					}
					buf.Reset()
					if _, err := io.Copy(&buf, r); err != nil {
						b.Error(err)
						return
					}
					n += bytes.Count(buf.Bytes(), []byte(`"kind":"sandbox.changed"`))
				}
				ready.Done()
			}
		})
	}
	l.reading(b, sockets)
	b.ResetTimer()
	done := 0
	for ; done < b.N; done += sockets * burst {
		ready.Add(sockets)
		for _, round := range rounds {
			round <- struct{}{}
		}
		l.fake.Emit(l.sb, burst)
		ready.Wait()
	}
	b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "deliveries/s")
	for _, round := range rounds {
		close(round)
	}
	wg.Wait()
}
