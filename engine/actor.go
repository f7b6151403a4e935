package engine

// ActorKind is who or what made a change.
type ActorKind string

// The kinds of actors.
const (
	ActorOperator ActorKind = "operator" // a person at a terminal or dashboard
	ActorScript   ActorKind = "script"   // a command with no terminal
	ActorClient   ActorKind = "client"   // a program over HTTP
	ActorEngine   ActorKind = "engine"   // sbx itself: supervisor, pool, detectors
	ActorHealer   ActorKind = "healer"   // the healer's loop
	ActorAgent    ActorKind = "agent"    // a model, by a tool call
)

// Actor is who made a change. The engine's door sets it (the server from the
// token, the command from the terminal), never the caller.
type Actor struct {
	Kind ActorKind `json:"kind"`
	Name string    `json:"name,omitempty"` // user or token name
	From string    `json:"from,omitempty"` // "socket", "embedded", or a network address
}

// String is the actor as the audit log and the screen show it.
func (a Actor) String() string {
	if a.Name == "" {
		return string(a.Kind)
	}
	return string(a.Kind) + " " + a.Name
}

// System is the actor of what the engine does by itself.
var System = Actor{Kind: ActorEngine}

// Role is what a token may do. Each role may all that the ones before it may.
type Role string

// The roles of SPEC §10, least first.
const (
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Admin    Role = "admin"
)

var roleRank = map[Role]int{Viewer: 1, Operator: 2, Admin: 3}

// Allows reports whether a holder of r may do what needs least. An unknown
// role allows nothing.
func (r Role) Allows(least Role) bool { return roleRank[r] >= roleRank[least] && roleRank[r] > 0 }
