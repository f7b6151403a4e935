package server

import (
	"context"
	"net/http"
	"time"

	"sbx/engine"
)

// Hello is what a client asks first.
type Hello struct {
	Version  string        `json:"version"`
	Protocol ProtocolRange `json:"protocol"`
}

// ProtocolRange are the versions of the wire that an engine speaks.
type ProtocolRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// StatusReport is the fleet in numbers.
type StatusReport struct {
	About    engine.About          `json:"about"`
	Position engine.Position       `json:"position"`
	Pool     engine.PoolLevels     `json:"pool"`
	Health   map[engine.Health]int `json:"health"`
	Engine   engine.EngineUsage    `json:"engine"`
}

func (s *Server) healthz(c *call) error {
	c.write(http.StatusOK, []byte(`{"ok":true}`))
	return nil
}

func (s *Server) hello(c *call) error {
	return c.reply(Hello{Version: s.Version, Protocol: ProtocolRange{Min: engine.Protocol, Max: engine.Protocol}})
}

func (s *Server) snapshot(c *call) error {
	snap, err := s.Engine.Snapshot(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(snap)
}

// sampleTimeout is how long a status waits for the first gauges, which come at
// once from an engine that is well.
const sampleTimeout = 2 * time.Second

func (s *Server) status(c *call) error {
	snap, err := s.Engine.Snapshot(c.r.Context())
	if err != nil {
		return err
	}
	g, err := s.sample(c.r.Context())
	if err != nil {
		return err
	}
	report := StatusReport{About: snap.About, Position: snap.Position, Pool: g.Pool, Engine: g.Engine, Health: map[engine.Health]int{}}
	for _, h := range []engine.Health{engine.Unknown, engine.Starting, engine.Ready, engine.Healing, engine.Broken} {
		report.Health[h] = 0
	}
	for _, sb := range snap.Sandboxes {
		report.Health[sb.Health]++
	}
	return c.reply(report)
}

// sample is the first of the gauges.
func (s *Server) sample(ctx context.Context) (engine.Gauges, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	for g, err := range s.Engine.Gauges(ctx, time.Second) {
		return g, err
	}
	return engine.Gauges{}, engine.Errorf(engine.Unavailable, "the engine has no gauges")
}

func (s *Server) checkpoints(c *call) error {
	list, err := s.Engine.Checkpoints(c.r.Context(), c.sandbox())
	if err != nil {
		return err
	}
	return c.reply(orEmpty(list))
}

func (s *Server) diff(c *call) error {
	q := c.r.URL.Query()
	d, err := s.Engine.Diff(c.r.Context(), c.sandbox(), engine.CheckpointID(q.Get("from")), engine.CheckpointID(q.Get("to")))
	if err != nil {
		return err
	}
	return c.reply(d)
}

func (s *Server) files(c *call) error {
	list, err := s.Engine.ReadDir(c.r.Context(), c.sandbox(), c.r.URL.Query().Get("dir"))
	if err != nil {
		return err
	}
	return c.reply(orEmpty(list))
}

func (s *Server) file(c *call) error {
	f, err := s.Engine.ReadFile(c.r.Context(), c.sandbox(), c.r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	return c.reply(f)
}

func (c *call) sandbox() engine.SandboxID { return engine.SandboxID(c.r.PathValue("id")) }

// orEmpty makes an empty list [] in JSON, not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
