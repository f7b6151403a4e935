package server

import (
	"sbx/engine"
)

func incidentParams() []param {
	return []param{
		{"sandbox", "string", "only those that it is or was a member of"},
		{"open", "boolean", "only those that have not ended"},
		{"since", "string", "a time: only those opened since, or still open"},
		{"limit", "integer", "the newest so many"},
	}
}

func (s *Server) incidents(c *call) error {
	v := c.values()
	q := engine.IncidentQuery{
		Sandbox: engine.SandboxID(v.Get("sandbox")), Open: v.yes("open"), Since: v.moment("since"), Limit: v.small("limit"),
	}
	if v.err != nil {
		return v.err
	}
	list, err := s.Engine.Incidents(c.r.Context(), q)
	if err != nil {
		return err
	}
	return c.reply(orEmpty(list))
}

func (s *Server) incident(c *call) error {
	id := engine.IncidentID(c.r.PathValue("id"))
	list, err := s.Engine.Incidents(c.r.Context(), engine.IncidentQuery{ID: id})
	if err != nil {
		return err
	}
	if len(list) != 1 {
		return engine.Errorf(engine.NotFound, "no incident %q", id)
	}
	return c.reply(list[0])
}

func (s *Server) budgets(c *call) error {
	b, err := s.Engine.Budgets(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(b)
}
