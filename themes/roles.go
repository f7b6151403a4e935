package themes

// Role is a meaning that something on the screen can have. Components ask for
// roles, never for colours.
type Role string

// The roles, by meaning, never by widget.
const (
	Text        Role = "text"
	Muted       Role = "text.muted"
	Title       Role = "title"
	Accent      Role = "accent"
	Link        Role = "link"
	Background  Role = "background"
	Border      Role = "border"
	BorderFocus Role = "border.focus"
	Selection   Role = "selection"
	Mark        Role = "mark"
	Match       Role = "match"
	Key         Role = "key"
	Stale       Role = "stale"

	Bar          Role = "bar"
	BadgeNav     Role = "badge.nav"
	BadgeType    Role = "badge.type"
	BadgeTerm    Role = "badge.term"
	BadgeOffline Role = "badge.offline"

	HealthReady   Role = "health.ready"
	HealthHealing Role = "health.healing"
	HealthBroken  Role = "health.broken"
	HealthUnknown Role = "health.unknown"
	HealthNone    Role = "health.none"

	LifeCold    Role = "life.cold"
	LifeWarming Role = "life.warming"
	LifeWarm    Role = "life.warm"
	LifeWaiting Role = "life.waiting"
	LifeRunning Role = "life.running"

	Info    Role = "info"
	Warning Role = "warning"
	Error   Role = "error"
	Alert   Role = "alert"
	Modal   Role = "modal"

	DiffAdd   Role = "diff.add"
	DiffDel   Role = "diff.del"
	DiffHunk  Role = "diff.hunk"
	DiffAddBG Role = "diff.add.bg"
	DiffDelBG Role = "diff.del.bg"

	ChatUser Role = "chat.user"
	ChatTool Role = "chat.tool"
	ChatAsk  Role = "chat.ask"

	LogDebug Role = "log.debug"
	Chart    Role = "chart"
)

// Roles is every role there is, in the order of the documentation.
var Roles = []Role{
	Text, Muted, Title, Accent, Link, Background, Border, BorderFocus, Selection, Mark, Match, Key, Stale,
	Bar, BadgeNav, BadgeType, BadgeTerm, BadgeOffline,
	HealthReady, HealthHealing, HealthBroken, HealthUnknown, HealthNone,
	LifeCold, LifeWarming, LifeWarm, LifeWaiting, LifeRunning,
	Info, Warning, Error, Alert, Modal,
	DiffAdd, DiffDel, DiffHunk, DiffAddBG, DiffDelBG,
	ChatUser, ChatTool, ChatAsk, LogDebug, Chart,
}

// kind is what a role is used for: what has to be legible on it.
type kind int

const (
	isText    kind = iota // letters on the background and on the selection
	isShape               // lines and signs: 3:1 is enough
	isSurface             // lends its background to others
	isQuiet               // may fade: what is stale, or off
)

// kinds are the roles that aren't plain text.
var kinds = map[Role]kind{
	Background: isSurface, Selection: isSurface, Bar: isSurface, DiffAddBG: isSurface, DiffDelBG: isSurface,
	Border: isShape, BorderFocus: isShape, Mark: isShape, Chart: isShape, HealthNone: isShape, LifeCold: isShape,
	Stale: isQuiet,
}

// GlyphNames are the signs that a theme may replace, with the ones it has.
var GlyphNames = []string{
	"ready", "healing", "broken", "unknown", "none",
	"cold", "warming", "warm", "waiting", "running",
	"done", "todo", "mark", "folded", "unfolded",
}
