package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"

	"sbx/engine"
)

// metrics answers in Prometheus's text format. It is small, and written by
// hand: the client library would cost every `sbx ls` its start-up.
func (s *Server) metrics(c *call) error {
	snap, err := s.Engine.Snapshot(c.r.Context())
	if err != nil {
		return err
	}
	g, err := s.sample(c.r.Context())
	if err != nil {
		return err
	}
	var b bytes.Buffer
	poolMetrics(&b, g.Pool)
	health := map[engine.Health]int{}
	for _, sb := range snap.Sandboxes {
		health[sb.Health]++
	}
	head(&b, "sbx_sandboxes_health", "gauge", "Sandboxes by health.")
	for _, h := range []engine.Health{engine.Unknown, engine.Starting, engine.Ready, engine.Healing, engine.Broken} {
		fmt.Fprintf(&b, "sbx_sandboxes_health{health=%q} %d\n", h, health[h])
	}
	one(&b, "sbx_sessions", "gauge", "Sessions that have not ended.", int64(len(snap.Sessions)))
	one(&b, "sbx_journal_seq", "counter", "Events in the journal so far.", int64(snap.Position.Seq))
	one(&b, "sbx_engine_memory_bytes", "gauge", "Resident memory of the engine.", int64(g.Engine.Memory))
	head(&b, "sbx_engine_cpu_cores", "gauge", "Cores that the engine uses.")
	fmt.Fprintf(&b, "sbx_engine_cpu_cores %g\n", g.Engine.CPU)
	one(&b, "sbx_engine_start_time_seconds", "gauge", "When the engine started.", snap.About.Started.Unix())
	if s.Metrics != nil {
		if err := s.Metrics(&b); err != nil {
			return err
		}
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(replyTimeout)) // writers of tests have none
	c.w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = c.w.Write(b.Bytes()) // a peer that has gone needs no answer
	return nil
}

func poolMetrics(w io.Writer, p engine.PoolLevels) {
	head(w, "sbx_pool_sandboxes", "gauge", "Sandboxes by state; what is leaving is in none.")
	for _, l := range []struct {
		state engine.State
		n     int
	}{{engine.Cold, p.Cold}, {engine.Warming, p.Warming}, {engine.Warm, p.Warm}, {engine.Waiting, p.Waiting}, {engine.Running, p.Running}} {
		fmt.Fprintf(w, "sbx_pool_sandboxes{state=%q} %d\n", l.state, l.n)
	}
	one(w, "sbx_pool_total", "gauge", "Sandboxes, live and cold.", int64(p.Total))
	one(w, "sbx_pool_max_capacity", "gauge", "How many sandboxes there may be.", int64(p.MaxCapacity))
	head(w, "sbx_pool_resumes_total", "counter", "Resumes of sessions, by what had the workspace.")
	for _, c := range []struct {
		path engine.ResumePath
		n    int64
	}{
		{engine.PathAlive, p.ResumeWarmHits},
		{engine.PathWorkspace, p.ResumeColdHits},
		{engine.PathLocal, p.ResumeColdLocalHits},
		{engine.PathRemote, p.ResumeColdCloudHits},
		{engine.PathFresh, p.ResumeColdFreshHits},
	} {
		fmt.Fprintf(w, "sbx_pool_resumes_total{path=%q} %d\n", c.path, c.n)
	}
	one(w, "sbx_pool_pre_warm_hits_total", "counter", "Sessions that claimed a warm sandbox.", p.PreWarmHits)
	one(w, "sbx_pool_evictions_total", "counter", "Sandboxes evicted to make room.", p.Evictions)
	one(w, "sbx_pool_idle_sweeps_total", "counter", "Sandboxes put to sleep when idle.", p.IdleSweeps)
	one(w, "sbx_pool_cold_cleanups_total", "counter", "Sandboxes deleted after being cold for too long.", p.ColdCleanups)
	if len(p.PreWarm) == 0 {
		return
	}
	head(w, "sbx_pool_pre_warm", "gauge", "Warm sandboxes of each template, wanted and ready.")
	for _, l := range p.PreWarm {
		fmt.Fprintf(w, "sbx_pool_pre_warm{template=%q,is=\"wanted\"} %d\n", l.Template, l.Wanted)
		fmt.Fprintf(w, "sbx_pool_pre_warm{template=%q,is=\"ready\"} %d\n", l.Template, l.Ready)
	}
}

func head(w io.Writer, name, kind, help string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func one(w io.Writer, name, kind, help string, n int64) {
	head(w, name, kind, help)
	fmt.Fprintf(w, "%s %d\n", name, n)
}
