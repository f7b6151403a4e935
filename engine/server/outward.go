package server

import "sbx/engine"

// outward are the reads of what passes between sandboxes, the engine and the
// world outside.
func outward() []route {
	return []route{
		get("/v1/sandboxes/{id}/chat", "the messages of the chat about a sandbox, in order", []engine.Message{}, (*Server).messages,
			param{"after", "integer", "only those with a higher number"}, param{"limit", "integer", "the newest so many"}),
		get("/v1/keys", "virtual keys and their use, never the keys themselves", []engine.Key{}, (*Server).keys,
			param{"sandbox", "string", "an id; absent: the whole fleet"}),
		get("/v1/notices", "the newest notices to the operators' own systems", []engine.Notice{}, (*Server).notices).needs(engine.Operator),
	}
}

func (s *Server) messages(c *call) error {
	v := c.values()
	q := engine.MessageQuery{Sandbox: engine.SandboxID(c.r.PathValue("id")), After: v.small("after"), Limit: v.small("limit")}
	if v.err != nil {
		return v.err
	}
	list, err := s.Engine.Messages(c.r.Context(), q)
	if err != nil {
		return err
	}
	return c.reply(orNone(list))
}

func (s *Server) keys(c *call) error {
	list, err := s.Engine.Keys(c.r.Context(), engine.SandboxID(c.r.URL.Query().Get("sandbox")))
	if err != nil {
		return err
	}
	return c.reply(orNone(list))
}

func (s *Server) notices(c *call) error {
	list, err := s.Engine.Notices(c.r.Context())
	if err != nil {
		return err
	}
	return c.reply(orNone(list))
}

// orNone is a list that is [] in JSON if it is empty.
func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
