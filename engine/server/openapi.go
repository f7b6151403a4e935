package server

import (
	"strings"

	"sbx/engine"
)

// object is a JSON object of the description.
type object = map[string]any

// openapi is the description of the routes, made from their table: what isn't
// in it isn't served, and the other way round.
func (s *Server) openapi(c *call) error {
	return c.reply(describe(s.Version))
}

func describe(version string) object {
	schemas := newSchemas()
	paths := object{}
	for _, rt := range routes() {
		item, ok := paths[rt.path].(object)
		if !ok {
			item = object{}
			paths[rt.path] = item
		}
		item[strings.ToLower(rt.method)] = operation(rt, schemas)
	}
	errorSchema := object{"type": "object", "properties": object{"error": schemas.of(engine.Error{})}}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "sbx", "version": version, "description": "Every error is {\"error\":{code,message,hint,retryAfter}}; the code counts."},
		"paths":   paths,
		"components": object{
			"schemas":         schemas.named,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses": object{"error": object{
				"description": "what went wrong",
				"content":     object{"application/json": object{"schema": errorSchema}},
			}},
		},
		"security": []object{{"token": []string{}}},
	}
}

func operation(rt route, schemas *schemas) object {
	op := object{
		"summary":   rt.words,
		"responses": object{"200": answer(rt, schemas), "default": object{"$ref": "#/components/responses/error"}},
	}
	if rt.open {
		op["security"] = []object{}
	} else {
		op["x-role"] = rt.least
	}
	if params := parameters(rt); len(params) > 0 {
		op["parameters"] = params
	}
	if rt.in != nil {
		op["requestBody"] = object{"content": object{"application/json": object{"schema": schemas.of(rt.in)}}}
	}
	return op
}

func answer(rt route, schemas *schemas) object {
	switch {
	case rt.out == nil:
		return object{"description": rt.words}
	case rt.media == mediaSocket:
		return object{"description": "a WebSocket: " + rt.words, "x-carries": schemas.of(rt.out)}
	}
	media := "application/json"
	if rt.media != "" {
		media = rt.media
	}
	return object{"description": rt.words, "content": object{media: object{"schema": schemas.of(rt.out)}}}
}

func parameters(rt route) []object {
	var list []object
	add := func(in, name, kind, words string, required bool) {
		list = append(list, object{"in": in, "name": name, "required": required, "description": words, "schema": object{"type": kind}})
	}
	if strings.Contains(rt.path, "{id}") {
		add("path", "id", "string", "an id", true)
	}
	for _, p := range rt.query {
		add("query", p.name, p.kind, p.words, false)
	}
	if rt.in != nil {
		add("header", idempotencyHeader, "string", "the action's id: a retry under it is done once", false)
		add("header", ifSeqHeader, "integer", "only if the subject's seq is still this", false)
	}
	return list
}
