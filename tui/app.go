package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/clean"
	"sbx/tui/style"
)

// App is the dashboard: the only tea.Model. It routes, and the parts do the
// rest: size → layout; frames → world, then screen; keys → overlay, else a
// Typist, else everywhere's, else the screen; anything else → whom it is for.
type App struct {
	w       *world
	c       *commands
	actions []action

	width, height int
	layout        layout
	screen        screen
	fromIncidents bool // the sandbox was opened from there
	fleet         *fleet
	sandbox       *sandbox
	incidents     *incidents
	overlay       overlay
	toast         toast
	said          []toast // latest last
	tap           tap

	dark, few bool
	choice    Choice

	hits  []hit // what can be clicked, as it was drawn last
	click click // the last one

	alarm   time.Time // when the pending tick comes
	alarmNo int
}

// overlay is a Component that lies over the screen until it is done.
type overlay interface {
	Component
	done() bool
}

// tickMsg wakes the screen where time alone changes it.
type tickMsg int

// tap is a key that must be pressed again within two seconds.
type tap struct {
	key   string
	until time.Time
}

func newApp(c Config, cmds *commands) (*App, error) {
	w := newWorld(c)
	a := &App{w: w, c: cmds, actions: newActions(w.keys), dark: darkBefore(c.Environ)}
	a.fleet = newFleet(w)
	a.sandbox = newSandbox(w, cmds, a.actions)
	a.incidents = newIncidents(w, cmds)
	a.w.now = time.Now()
	a.w.link.since = a.w.now
	_, wrong := remap(c.Keys)
	for _, notice := range append(c.Notices, wrong...) {
		a.say(themes.Warning, notice)
	}
	return a, a.restyle()
}

// restyle loads the theme that fits the terminal as it is known by now.
func (a *App) restyle() error {
	name := themes.For(a.w.cfg.Theme, a.dark)
	if a.w.cfg.NoColor {
		name = themes.Mono
	}
	t, err := themes.Load(name, a.w.cfg.ThemeDir)
	if err != nil {
		return err
	}
	named := a.w.cfg.Theme != "" && a.w.cfg.Theme != themes.Auto
	a.w.restyle(t, style.Options{Few: a.few, Paint: named && !a.w.cfg.NoColor, ASCII: a.w.cfg.ASCII})
	return nil
}

// Init asks the terminal what its background is.
func (a *App) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, a.tick()) }

// Update routes a message.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	a.w.now = time.Now()
	cmd := a.route(msg)
	a.fleet.sync()
	return a, tea.Batch(cmd, a.tick())
}

func (a *App) route(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.width, a.height = msg.Width, msg.Height
		a.arrange()
	case tea.BackgroundColorMsg:
		a.dark = msg.IsDark()
		return a.themed()
	case tea.ColorProfileMsg:
		a.few = msg.Profile <= colorprofile.ANSI
		return a.themed()
	case tickMsg:
		if int(msg) == a.alarmNo {
			a.alarm = time.Time{}
			a.w.spin++
		}
	case frameMsg:
		return a.frame(msg)
	case tea.KeyPressMsg:
		return a.key(msg)
	case tea.PasteMsg:
		return a.paste(msg)
	case tea.MouseWheelMsg:
		return a.wheel(msg)
	case tea.MouseClickMsg:
		return a.clicked(msg)
	case actionMsg:
		a.received(msg)
	case bulkMsg:
		a.bulked(msg)
	case openMsg:
		return a.open(msg.id, msg.tab)
	case showMsg:
		a.show(msg.over)
	case filesChangedMsg:
		a.received(msg.action)
		if a.files().id == msg.id {
			return a.files().refresh()
		}
	case overwriteMsg:
		return a.files().overwrite(msg)
	case takeOverMsg:
		a.askTakeOver(msg)
	case notice:
		a.say(msg.role, msg.text)
	case watchMsg:
		a.say(themes.Warning, a.w.keys.Watch.Help().Key+": "+msg.why)
	case savedMsg:
		a.saved(msg)
	default:
		return a.deliver(msg)
	}
	return nil
}

// deliver hands an answer to the part that asked for it.
func (a *App) deliver(msg tea.Msg) tea.Cmd {
	if heals, ok := msg.(healsMsg); ok && heals.query.Sandbox == "" {
		a.remember(heals)
		return a.incidents.Update(heals)
	}
	return a.sandbox.Update(msg)
}

// remember takes what happened before this dashboard was opened.
func (a *App) remember(msg healsMsg) {
	if a.w.snap == nil {
		return
	}
	var list []happening
	for _, rec := range msg.records {
		sb, _ := a.w.sandbox(rec.Body.Of())
		a.w.chronicle.take(rec, sb.Name)
		list = append(list, happeningOf(a.w.snap, rec))
	}
	a.w.past.merge(list)
}

func (a *App) themed() tea.Cmd {
	if err := a.restyle(); err != nil {
		a.say(themes.Error, err.Error())
	}
	return nil
}

// frame takes what the engine told.
func (a *App) frame(msg frameMsg) tea.Cmd {
	var cmds []tea.Cmd
	if msg.snap != nil {
		fresh := a.w.snap == nil
		a.w.take(msg.snap)
		if fresh {
			cmds = append(cmds, a.c.heals(engine.HealQuery{Since: a.w.now.Add(-time.Hour), Limit: keptPast}), a.begin())
		}
	}
	for _, ev := range msg.events {
		a.w.apply(ev)
	}
	if msg.gauges != nil {
		a.w.measure(*msg.gauges)
	}
	a.connect(msg)
	a.fleet.sync()
	a.arrange()
	switch a.screen {
	case onSandbox:
		cmds = append(cmds, a.sandbox.Update(msg))
	case onIncidents:
		cmds = append(cmds, a.incidents.show())
	}
	return tea.Batch(cmds...)
}

// begin opens the sandbox that the dashboard was started for.
func (a *App) begin() tea.Cmd {
	if a.w.cfg.Open == "" {
		return nil
	}
	sb, err := a.w.snap.Find(a.w.cfg.Open)
	if err != nil {
		a.say(themes.Error, err.Error())
		return nil
	}
	t := tabOverview
	for _, entry := range a.sandbox.tabs {
		if strings.EqualFold(entry.title, a.w.cfg.Pane) {
			t = entry.tab
		}
	}
	return a.open(sb.ID, t)
}

// connect notes whether the engine answers, and says when it is back.
func (a *App) connect(msg frameMsg) {
	before := a.w.link.state
	switch {
	case msg.lost:
		a.w.link.failed(a.w.now, msg.cause)
	case msg.snap != nil, msg.gauges != nil:
		back := a.w.link.heard(a.w.now)
		if back > 0 {
			a.say(themes.Info, "back after "+span(back))
		}
	case len(msg.events) > 0:
		a.w.link.news = a.w.now
	}
	if a.w.link.state != before {
		a.w.fade()
	}
}

func (a *App) arrange() {
	inspect := a.fleet.opened
	if a.width >= wideWidth {
		inspect = !a.fleet.closed
	}
	a.layout = arrange(a.width, a.height, a.screen, inspect && !a.fleet.zoomed, a.fleet.zoomed)
	a.fleet.SetSize(a.layout.main.w, a.layout.main.h)
	a.incidents.SetSize(a.layout.main.w, a.layout.main.h)
	if a.screen == onSandbox {
		a.sandbox.SetSize(a.layout.main.w, a.layout.main.h)
	}
	if a.overlay != nil {
		a.overlay.SetSize(a.width, a.height)
	}
}

// open shows a sandbox's tab.
func (a *App) open(id engine.SandboxID, t tab) tea.Cmd {
	if _, ok := a.w.sandbox(id); !ok {
		return nil
	}
	a.fromIncidents = a.screen == onIncidents || a.screen == onSandbox && a.fromIncidents
	a.screen = onSandbox
	a.fleet.jump(id)
	a.arrange()
	return a.sandbox.show(id, t)
}

// goHome goes back to the fleet.
func (a *App) goHome() {
	a.sandbox.hide()
	a.screen = onFleet
	a.arrange()
}

// tick asks to be woken when time alone will change the screen: four times a
// second while something spins, each second of a countdown, else each minute.
func (a *App) tick() tea.Cmd {
	at := a.wake()
	if !a.alarm.IsZero() && !a.alarm.After(at) {
		return nil
	}
	a.alarm = at
	a.alarmNo++
	no := tickMsg(a.alarmNo)
	return tea.Tick(at.Sub(a.w.now), func(time.Time) tea.Msg { return no })
}

func (a *App) wake() time.Time {
	now := a.w.now
	at := now.Truncate(time.Minute).Add(time.Minute)
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	if a.w.link.state != live || a.w.cfg.Still {
		sooner(now.Truncate(time.Second).Add(time.Second))
	} else if a.spinning() {
		sooner(now.Add(250 * time.Millisecond))
	}
	sooner(a.toast.until)
	sooner(a.tap.until)
	if d, ok := a.overlay.(*dialog); ok {
		sooner(d.hears())
	}
	return at
}

// spinning reports whether anything that shows is being healed.
func (a *App) spinning() bool {
	switch a.screen {
	case onSandbox:
		sb, _ := a.w.sandbox(a.sandbox.id)
		return sb.Health == engine.Healing || a.sandbox.tab == tabChat && a.chat().open() != nil
	case onIncidents:
		return false // an open lane grows with the clock
	}
	for y := range max(0, a.fleet.height-1) {
		if e, _ := a.fleet.at(a.fleet.top + y); e != nil && e.health == engine.Healing {
			return true
		}
	}
	sb, _ := a.w.sandbox(a.fleet.cursor)
	return a.layout.side.w > 0 && sb.Health == engine.Healing
}

// title is the window's.
func (a *App) title() string {
	title := "sbx " + clean.Cut(a.w.cfg.Name, 40)
	if sb, ok := a.w.sandbox(a.sandbox.id); ok && a.screen == onSandbox {
		title += " › " + clean.Line(sb.Name)
	}
	return title
}
