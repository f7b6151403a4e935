package server

import (
	"net/http"
	"slices"

	"sbx/engine"
)

// route is one row of what the server answers. All that is known of it stands
// here: the mux, the door, the description at /v1/openapi.json and the tests
// are made of these rows.
type route struct {
	method, path string
	least        engine.Role
	open         bool // no token; for /healthz alone
	limit        int64
	words        string // what it does, for people
	query        []param
	in, out      any    // values of the types of the body and the answer
	media        string // of the answer: "" is JSON
	handle       func(s *Server, c *call) error
}

// param is a query parameter.
type param struct{ name, kind, words string }

// The media of streams, as the description names them.
const (
	mediaLines  = "application/x-ndjson"
	mediaSocket = "websocket"

	mediaMetrics = "text/plain; version=0.0.4"
)

// nowhere answers for all paths that aren't there.
var nowhere = route{path: "/", least: engine.Viewer, handle: func(_ *Server, c *call) error {
	return engine.Errorf(engine.NotFound, "no route %s %s", c.r.Method, c.r.URL.Path).
		WithHint("the routes are in GET /v1/openapi.json")
}}

// routes are the actions, and the reads.
func routes() []route {
	var list []route
	for _, e := range engine.ActionTable {
		list = append(list, actionRoute(e))
	}
	return slices.Concat(list, reads(), outward(), fileRoutes(), sessionReads(), streamed())
}

// get is a row of a read.
func get(path, words string, out any, handle func(*Server, *call) error, query ...param) route {
	return route{method: http.MethodGet, path: path, least: engine.Viewer, words: words, out: out, handle: handle, query: query}
}

func (rt route) as(media string) route         { rt.media = media; return rt }
func (rt route) needs(least engine.Role) route { rt.least = least; return rt }
func (rt route) untouched() route              { rt.open, rt.least = true, ""; return rt }
func (rt route) pattern() string               { return rt.method + " " + rt.path }

func reads() []route {
	return []route{
		get("/healthz", "whether the server answers; open to all", nil, (*Server).healthz).untouched(),
		get("/v1/openapi.json", "this description", nil, (*Server).openapi),
		get("/metrics", "the engine, the pool and the healer in numbers, for Prometheus", nil, (*Server).metrics).as(mediaMetrics),
		get("/v1/hello", "who is there and which protocols it speaks", Hello{}, (*Server).hello),
		get("/v1/status", "counts of the pool and of healths", StatusReport{}, (*Server).status),
		get("/v1/snapshot", "everything at one position of the journal", engine.Snapshot{}, (*Server).snapshot),
		get("/v1/processes", "the processes of a sandbox or of the fleet, those that are over included", []engine.Process{}, (*Server).processes,
			param{"sandbox", "string", "an id; absent: the whole fleet"}, param{"pid", "integer", "only the one that runs under this pid"}),
		get("/v1/processes/{id}/wait", "how a spawned process ended and what it wrote, as soon as it has", engine.Result{}, (*Server).wait,
			param{"within", "string", "how long to wait, like 30s; then unavailable: ask again"}),
		get("/v1/processes/{id}", "a process", engine.Process{}, (*Server).process),
		get("/v1/incidents", "faults that several sandboxes have, oldest first", []engine.Incident{}, (*Server).incidents, incidentParams()...),
		get("/v1/incidents/{id}", "an incident", engine.Incident{}, (*Server).incident),
		get("/v1/budgets", "what models may use and have used today", engine.Budgets{}, (*Server).budgets),
		get("/v1/sandboxes/{id}/checkpoints", "a sandbox's checkpoints, newest first", []engine.Checkpoint{}, (*Server).checkpoints),
		get("/v1/sandboxes/{id}/diff", "what changed between two checkpoints", engine.Diff{}, (*Server).diff,
			param{"from", "string", "a checkpoint"}, param{"to", "string", "a checkpoint; absent: the workspace as it is"}),
		get("/v1/sandboxes/{id}/files", "a directory of the workspace", []engine.FileInfo{}, (*Server).files,
			param{"dir", "string", "in the workspace; absent: its root"}),
		get("/v1/sandboxes/{id}/file", "a file of the workspace", engine.File{}, (*Server).file,
			param{"name", "string", "in the workspace"}),
	}
}

func streamed() []route {
	return []route{
		get("/v1/events", `frames {"events":[…]}, or one last {"error":…}`, engine.Event{}, (*Server).events,
			param{"after", "string", "a position like 7.481; absent: now"}).as(mediaSocket),
		get("/v1/gauges", `frames {"gauges":…}, or {"error":…}`, engine.Gauges{}, (*Server).gauges,
			param{"every", "string", "at least so often, like 1s"}).as(mediaSocket),
		get("/v1/logs", `frames {"lines":[…]}, or one last {"error":…}`, engine.LogLine{}, (*Server).logs, logParams()...).as(mediaSocket),
		get("/v1/processes/{id}/pipe", `binary frames of stdout and stdin; the text frame {"closeInput":true} ends stdin`, nil, (*Server).pipe,
			param{"after", "integer", "a position in the log"}).as(mediaSocket).needs(engine.Operator),
		get("/v1/processes/{id}/terminal", `binary frames of what is printed and typed; text frames {"position":…} and {"resize":…}; viewers by role only watch`, nil, (*Server).terminal,
			param{"from", "string", "a position in the log; absent or screen: the screen as it is"},
			param{"live", "boolean", "one that falls far behind gets the screen instead of all that led there"},
			param{"cols", "integer", "of the viewer's window"}, param{"rows", "integer", "of the viewer's window"},
			param{"watch", "boolean", "type nothing, and have no say in the size"}).as(mediaSocket),
		get("/v1/processes/{id}/recording", "what a terminal printed, and its sizes, in the order of time", engine.Recorded{}, (*Server).recording).as(mediaLines),
		get("/v1/heals", "the healer's records, oldest first", engine.Event{}, (*Server).heals, healParams()...).as(mediaLines),
		get("/v1/audit", "who changed what, oldest first", engine.AuditEntry{}, (*Server).audit, auditParams()...).as(mediaLines).needs(engine.Admin),
	}
}
