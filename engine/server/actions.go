package server

import (
	"strconv"

	"sbx/engine"
)

// The headers of an action: its id, and the Seq that its subject must have.
const (
	idempotencyHeader = "Idempotency-Key"
	ifSeqHeader       = "Sbx-If-Seq"
	maxActionID       = 128
)

// actionRoute is the route of a row of the table of actions.
func actionRoute(e *engine.ActionEntry) route {
	rt := route{
		method: e.Method,
		path:   e.Path,
		least:  e.Least,
		limit:  maxBody,
		words:  e.Verb + " (" + e.Kind + ")",
		out:    engine.Receipt{},
		handle: func(s *Server, c *call) error { return s.act(c, e) },
	}
	if body, err := e.Decode("", nil); err == nil {
		rt.in = body
		if _, file := body.(engine.WriteFile); file {
			rt.limit = maxFileBody
		}
	}
	return rt
}

func (s *Server) act(c *call, e *engine.ActionEntry) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	body, err := e.Decode(c.r.PathValue("id"), b)
	if err != nil {
		return err
	}
	a := engine.NewAction(body)
	a.By = c.actor // who they are says the door, whatever the body says
	if err := actionHeaders(c, &a); err != nil {
		return err
	}
	receipt, err := s.Engine.Do(c.r.Context(), a)
	if err != nil {
		return err
	}
	return c.reply(receipt)
}

func actionHeaders(c *call, a *engine.Action) error {
	if id := c.r.Header.Get(idempotencyHeader); id != "" {
		if len(id) > maxActionID || !visible(id) {
			return engine.Errorf(engine.Invalid, "the header %s isn't 1 to %d visible ASCII characters", idempotencyHeader, maxActionID)
		}
		a.ID = engine.ActionID(id)
	}
	if seq := c.r.Header.Get(ifSeqHeader); seq != "" {
		n, err := strconv.ParseInt(seq, 10, 64)
		if err != nil || n < 0 {
			return engine.Errorf(engine.Invalid, "the header %s isn't a number", ifSeqHeader)
		}
		a.IfSeq = engine.Seq(n)
	}
	return nil
}

func visible(s string) bool {
	for _, b := range []byte(s) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}
