package spec_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sbx/engine"
	"sbx/engine/spec"
)

// whole is SPEC §3's example.
const whole = `
[app]
command       = "pnpm dev"        # run by the shell; stdout and stderr go to one log
port          = 0
health        = "/health"
start_timeout = "60s"
max_restarts  = 1
min_uptime    = "10s"
restart_delay = "2s"
stop_grace    = "5s"
install       = "pnpm install --frozen-lockfile"
check         = "pnpm dry-run"
env           = { NODE_ENV = "development" }

[[process]]
name = "watcher"
command = "pnpm watch"
max_restarts = 0
restart_delay = "0s"

[limits]
memory    = "2GiB"
cpu       = 1.0
disk      = "1GiB"
processes = 64

[heal]
attempts  = 3
protected = ["src/engine"]
`

func defaults() engine.ProcessSpec {
	return engine.ProcessSpec{
		StartTimeout: engine.Duration(time.Minute), MaxRestarts: 1, MinUptime: engine.Duration(10 * time.Second),
		RestartDelay: engine.Duration(2 * time.Second), StopGrace: engine.Duration(5 * time.Second),
	}
}

func example() engine.Spec {
	app, watcher := defaults(), defaults()
	app.Command, app.Health = "pnpm dev", "/health"
	app.Install, app.Check = "pnpm install --frozen-lockfile", "pnpm dry-run"
	app.Env = map[string]string{"NODE_ENV": "development"}
	watcher.Name, watcher.Command, watcher.MaxRestarts, watcher.RestartDelay = "watcher", "pnpm watch", 0, 0
	return engine.Spec{
		App: app, Processes: []engine.ProcessSpec{watcher},
		Limits: engine.Limits{Memory: 2 * engine.GiB, CPU: 1, Disk: engine.GiB, Processes: 64},
		Heal:   engine.HealSpec{Attempts: 3, Protected: []string{"src/engine"}},
	}
}

func TestWholeSpecIsRead(t *testing.T) {
	got, err := spec.Parse("sbx.toml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(example(), got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	got, err := spec.Parse("sbx.toml", []byte("\ufeff[app]\r\ncommand = 'x'\r\n"))
	want := engine.Spec{App: defaults(), Heal: engine.HealSpec{Attempts: 3}}
	want.App.Command = "x"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestZeroIsNotTheDefault(t *testing.T) {
	got, err := spec.Parse("sbx.toml", []byte("[app]\ncommand='x'\nmax_restarts=0\nrestart_delay='0s'\nmin_uptime='0s'\nstop_grace='0s'\n[heal]\nattempts=0\n[limits]\nmemory='0'\n"))
	want := engine.Spec{App: defaults()}
	want.App.Command = "x"
	want.App.MaxRestarts, want.App.RestartDelay, want.App.MinUptime, want.App.StopGrace = 0, 0, 0, 0
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

const app = "[app]\ncommand = 'x'\n"

var mistakes = []struct{ name, text, want string }{
	{"a misspelt key", "[app]\n\ncomand = 'x'", "sbx.toml:3: app.comand: no such key; did you mean command?"},
	{"a key of another tongue", app + "restart-delay = '1s'", "sbx.toml:3: app.restart-delay: no such key; did you mean restart_delay?"},
	{"an unknown key", app + "colour = 'red'", "sbx.toml:3: app.colour: no such key; there are: command, port"},
	{"a misspelt table", app + "[limit]\ncpu = 1", "sbx.toml:3: limit: no such key; did you mean limits?"},
	{"an unknown key of an array's table", app + "[[process]]\nname='a'\ncommand='a'\n[[process]]\nname='b'\ncomand='b'", "sbx.toml:8: process.comand: no such key; did you mean command?"},
	{"a key in an inline table", "app = { command = 'x', prt = 1 }", "sbx.toml:1: app.prt: no such key; did you mean port?"},
	{"nothing at all", "", "sbx.toml: app.command: is missing"},
	{"no command", "[app]\nport = 1", "sbx.toml:1: app.command: is missing"},
	{"a blank command", "[app]\ncommand = ' '", "sbx.toml:2: app.command: is missing"},
	{"a command that is a number", "[app]\ncommand = 3", "sbx.toml:2: app.command: must be a string in quotes, not a whole number"},
	{"a command with NUL", "[app]\ncommand = \"a\\u0000\"", "app.command: has a NUL character"},
	{"a huge command", "[app]\ncommand = '" + strings.Repeat("x", 40<<10) + "'", "app.command: is longer than 32 KiB"},
	{"a negative port", app + "port = -1", "sbx.toml:3: app.port: -1 is out of range: 0 to 65535"},
	{"a port too high", app + "port = 65536", "app.port: 65536 is out of range"},
	{"a fraction of a port", app + "port = 1.5", "app.port: must be a whole number, not a number"},
	{"a number without a unit", app + "start_timeout = 60", `app.start_timeout: 60 is not a duration: write it as "90s"`},
	{"no duration", app + "start_timeout = 'soon'", `app.start_timeout: "soon" is not a duration`},
	{"a negative duration", app + "restart_delay = '-1s'", `app.restart_delay: "-1s" is negative`},
	{"no time to start", app + "start_timeout = '0s'", "app.start_timeout: 0s is out of range"},
	{"a duration too long", app + "stop_grace = '1000h'", "app.stop_grace: 1000h is out of range"},
	{"restarts below zero", app + "max_restarts = -1", "app.max_restarts: -1 is out of range"},
	{"a health path without a slash", app + "health = 'health'", `app.health: "health" must begin with a slash`},
	{"a health path with a line end", app + `health = "/a\r\nHost: x"`, "can't have"},
	{"an env that is no table", app + "env = 'A=b'", "app.env: must be a table, not a string"},
	{"an env of numbers", app + "[app.env]\nA = 1", "sbx.toml:4: app.env.A: must be a string in quotes"},
	{"a bad variable", app + "[app.env]\n'a b' = 'x'", `"a b" can't be a variable's name`},
	{"the engine's variable", app + "[app.env]\nPORT = '1'", "app.env.PORT: is set by the engine"},
	{"a process without a name", app + "[[process]]\ncommand='a'", "sbx.toml:3: process.name: is missing"},
	{"the app's name", app + "[[process]]\nname='app'\ncommand='a'", `process.name: "app" is the app's own`},
	{"an unsafe name", app + "[[process]]\nname='../x'\ncommand='a'", "can't be a name"},
	{"two of a name", app + "[[process]]\nname='a'\ncommand='a'\n[[process]]\nname='a'\ncommand='a'", `sbx.toml:7: process.name: there are two processes called "a"`},
	{"two on a port", app + "port=80\n[[process]]\nname='a'\ncommand='a'\nport=80", "sbx.toml:7: process.port: port 80"},
	{"a process that is a table", app + "[process]\nname='a'", "sbx.toml:3: process: must be [[process]]"},
	{"two bytes of memory", app + "[limits]\nmemory='2'", "sbx.toml:4: limits.memory: 2 is out of range: 4MiB"},
	{"memory as a number", app + "[limits]\nmemory=2", `limits.memory: 2 is not a size: write it as "512MiB"`},
	{"absurd memory", app + "[limits]\nmemory='9999999TiB'", "limits.memory:"},
	{"negative disk", app + "[limits]\ndisk='-1GiB'", "limits.disk:"},
	{"negative cpu", app + "[limits]\ncpu=-0.5", "limits.cpu: -0.5 is out of range"},
	{"cpu that is none", app + "[limits]\ncpu=nan", "limits.cpu: NaN is out of range"},
	{"negative processes", app + "[limits]\nprocesses=-1", "limits.processes: -1 is out of range"},
	{"attempts without end", app + "[heal]\nattempts=21", "heal.attempts: 21 is out of range: 0 to 20"},
	{"a protected path outside", app + "[heal]\nprotected=['a', '../b']", `sbx.toml:4: heal.protected: "../b" is outside`},
	{"a protected path in disguise", app + "[heal]\nprotected=['a/../../b']", "is outside"},
	{"an absolute protected path", app + "[heal]\nprotected=['/etc']", "is outside"},
	{"all protected", app + "[heal]\nprotected=['./']", "is everything"},
	{"an empty protected path", app + "[heal]\nprotected=['']", "has an empty path"},
	{"a protected pattern", app + "[heal]\nprotected=['src/*']", "is a pattern"},
	{"protected that is no array", app + "[heal]\nprotected='src'", "heal.protected: must be an array of strings, not a string"},
	{"no TOML", "[app]\ncommand = ", "sbx.toml:2: "},
	{"a key twice", app + "command = 'y'", "sbx.toml:3: "},
	{"a huge file", strings.Repeat("#", 300<<10), "sbx.toml: the file is larger than 256 KiB"},
	{"the first of two", "[app]\nport = -1\nhealth = 'x'", "sbx.toml:2: app.port: -1"},
}

func TestMistakesAreNamedWithFileLineAndKey(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			_, err := spec.Parse("sbx.toml", []byte(c.text))
			if !errors.Is(err, engine.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %q, want %q", err, c.want)
			}
		})
	}
}

func TestFormattedSpecIsReadBack(t *testing.T) {
	text := rapid.StringMatching(`[a-z"'\\ =#é]{0,20}[a-z]`)
	duration := rapid.Map(rapid.IntRange(1, 86400), func(s int) engine.Duration { return engine.Duration(s) * engine.Duration(time.Second) })
	process := func(t *rapid.T, name string) engine.ProcessSpec {
		return engine.ProcessSpec{
			Name: name, Command: strings.TrimSpace(text.Draw(t, "command")),
			Health: rapid.SampledFrom([]string{"", "/", "/health?x=1"}).Draw(t, "health"), StartTimeout: duration.Draw(t, "timeout"),
			MaxRestarts: rapid.IntRange(0, 9).Draw(t, "restarts"), MinUptime: duration.Draw(t, "uptime"),
			RestartDelay: duration.Draw(t, "delay"), StopGrace: duration.Draw(t, "grace"),
			Install: strings.TrimSpace(text.Draw(t, "install")), Env: map[string]string{"A_1": text.Draw(t, "env")},
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := engine.Spec{
			App:    process(t, ""),
			Limits: engine.Limits{Memory: engine.Size(rapid.IntRange(4<<20, 1<<40).Draw(t, "memory")), CPU: rapid.Float64Range(0.01, 64).Draw(t, "cpu")},
			Heal:   engine.HealSpec{Attempts: rapid.IntRange(0, 20).Draw(t, "attempts"), Protected: []string{"src/[id]", "b c"}},
		}
		for _, name := range []string{"one", "two"}[:rapid.IntRange(0, 2).Draw(t, "processes")] {
			want.Processes = append(want.Processes, process(t, name))
		}
		out := spec.Format(want)
		got, err := spec.Parse("sbx.toml", out)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v\n%s\n%s", err, diff, out)
		}
	})
}

func FuzzParseNeverPanicsAndReadsBackWhatItAccepts(f *testing.F) {
	f.Add(whole)
	f.Add("app = { command = 'x' }\nprocess = [{name='a',command='b'},{}]")
	f.Add("[app.env]\n[[process.x]]\n[app.env.y]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := spec.Parse("f", []byte(text))
		if err != nil {
			return
		}
		again, err := spec.Parse("f", spec.Format(s))
		if err != nil {
			t.Fatalf("%v\n%s", err, spec.Format(s))
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
