package server

import (
	"context"
	"slices"
	"time"

	"sbx/engine"
)

func (s *Server) process(c *call) error {
	p, err := s.Engine.ProcessByID(c.r.Context(), engine.ProcessID(c.r.PathValue("id")))
	if err != nil {
		return err
	}
	return c.reply(p)
}

func (s *Server) processes(c *call) error {
	v := c.values()
	pid := v.small("pid")
	if v.err != nil {
		return v.err
	}
	list, err := s.Engine.ListProcesses(c.r.Context(), engine.SandboxID(v.Get("sandbox")))
	if err != nil {
		return err
	}
	if pid != 0 {
		list = slices.DeleteFunc(list, func(p engine.Process) bool { return p.PID != pid || !p.Running() })
	}
	return c.reply(orEmpty(list))
}

// The bounds of how long a call waits for a process. Proxies cut what is
// silent for long.
const (
	usualWithin   = 30 * time.Second
	longestWithin = 5 * time.Minute
)

// wait answers when a process is over.
func (s *Server) wait(c *call) error {
	v := c.values()
	within := v.duration("within", usualWithin, time.Millisecond, longestWithin)
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	c.takeTime()
	over := engine.Errorf(engine.Unavailable, "the process has not ended within %s", within).WithHint("ask again").After(time.Second)
	ctx, cancel := context.WithTimeoutCause(ctx, within, over)
	defer cancel()
	h, err := engine.FindHandle(ctx, s.Engine, c.r.PathValue("id"), engine.SpawnOptions{})
	if err != nil {
		return err
	}
	res, err := h.Wait(ctx)
	switch {
	case ctx.Err() != nil && err != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return c.reply(res)
}
