package tui

import (
	"fmt"
	"math/rand/v2"
	"time"

	"sbx/engine"
)

// seeded is an engine with n sandboxes as the wireframes have them: two broken,
// three healing, the rest ready, resting or cold. The same n and now give the
// same engine.
func seeded(n int, now time.Time) *fakeEngine {
	s := engine.NewSnapshot(engine.Position{Epoch: 1, Seq: 1000})
	s.About = engine.About{Version: "0.1", Host: "runner-2", Model: "claude-sonnet"}
	f := newFake(s)
	r := rand.New(rand.NewPCG(1, 2))
	f.sample = engine.Gauges{Sandboxes: map[engine.SandboxID]engine.Sample{}, Pool: engine.PoolLevels{MaxCapacity: n + 56}}
	for i := range n {
		sb := seedSandbox(i, now)
		s.Sandboxes[sb.ID] = sb
		if !sb.State.Live() {
			continue
		}
		p := engine.Process{
			ID: engine.ProcessID(fmt.Sprintf("ps-%010d", i)), Sandbox: sb.ID, Name: engine.AppName,
			Kind: engine.Supervised, Port: 4100 + i%900, PID: 4000 + i, State: engine.ProcessRunning, Started: now.Add(-22 * time.Minute),
		}
		if sb.Health == engine.Broken {
			p.State, p.Restarts, p.Exit = engine.ProcessFailed, 4, &engine.Exit{Code: 1, At: now.Add(-6 * time.Minute)}
			p.Reason = "2 failed starts in a row"
		}
		s.Processes[p.ID] = p
		f.sample.Sandboxes[sb.ID] = engine.Sample{
			Usage:   engine.Usage{CPU: r.Float64() / 2, Memory: engine.Size(200+r.IntN(900)) * engine.MiB},
			Probe:   engine.Probe{At: now, OK: sb.Health == engine.Ready, Detail: map[bool]string{true: "200", false: "connection refused"}[sb.Health == engine.Ready]},
			LogLine: "GET /health 200 1ms",
		}
	}
	if n >= 5 {
		seedHeals(f, now)
	}
	seedLog(f, now)
	return f
}

var seedOwners = []string{"dana@acme.io", "lena@acme.io", "ops-bot", "mike@acme.io", "ines@acme.io", "anna@acme.io", "bo@acme.io"}

func seedID(i int) engine.SandboxID {
	return engine.SandboxID(fmt.Sprintf("sb-%04x%06d", (i*40503+0x7f3c)&0xffff, i))
}

func seedSandbox(i int, now time.Time) engine.Sandbox {
	sb := engine.Sandbox{
		ID: seedID(i), Name: fmt.Sprintf("web-%d", i), Owner: seedOwners[i%len(seedOwners)],
		Template: "node-mastra", TemplateRevision: "v14", Labels: map[string]string{"team": "web"},
		Wanted: engine.Up, State: engine.Running, Health: engine.Ready, Isolation: "bubblewrap",
		Created: now.Add(-76 * time.Hour), StateChanged: now.Add(-22 * time.Minute),
		HealthChanged: now.Add(-time.Duration(i) * time.Minute), Active: now.Add(-time.Duration(i) * time.Minute), Seq: engine.Seq(i + 1),
	}
	sb.Spec.Heal.Attempts = 3
	sb.Spec.Limits.Memory = 2 * engine.GiB
	sb.Spec.Limits.CPU = 1
	names := []string{"agent-weather", "checkout", "api", "search-index", "billing"}
	switch {
	case i < 3:
		sb.Health, sb.Reason, sb.Name = engine.Healing, "health failed twice", names[i]
		sb.HealthChanged = now.Add(-136*time.Second + time.Duration(i)*time.Minute/2)
	case i < 5:
		sb.Health, sb.Reason, sb.Name = engine.Broken, "Cannot find module 'zod/v4'", names[i]
		sb.HealthChanged = now.Add(-time.Duration(i*3-3) * time.Minute)
	case i%7 == 0:
		sb.State, sb.Owner = engine.Warm, ""
	case i%11 == 0:
		sb.State, sb.Health = engine.Cold, engine.Unknown
	case i%13 == 0:
		sb.State, sb.Health = engine.Warming, engine.Unknown
	case i%3 == 0:
		sb.State = engine.Waiting
	}
	return sb
}

func seedHeals(f *fakeEngine, now time.Time) {
	seedRuns(f.snap, now)
	seedAttempts(f)
	for i := range 5 {
		sig, r := f.snap.Signals[seedID(i)], f.snap.Runs[seedID(i)]
		f.records = append(f.records, engine.HealRecord{Seq: engine.Seq(900 + 2*i), Time: sig.At, By: engine.System, Body: engine.SignalRaised{Signal: sig}})
		if !r.Open() {
			f.records = append(f.records, engine.HealRecord{Seq: engine.Seq(901 + 2*i), Time: r.Ended, By: engine.System, Body: engine.HealFinished{Run: r}})
		}
	}
	run := f.snap.Runs[seedID(0)]
	f.points = []engine.Checkpoint{
		{ID: "cp-7c1eabcdef", Sandbox: run.Sandbox, Note: "before the heal run", Created: run.Started},
		{ID: "cp-11aaabcdef", Sandbox: run.Sandbox, Good: true, Note: "ready for a minute", Created: run.Started.Add(-time.Hour)},
	}
}

func seedRuns(s *engine.Snapshot, now time.Time) {
	doing := []string{"edit", "read", "restart"}
	for i := range 5 {
		id := seedID(i)
		sig := engine.Signal{
			ID: engine.SignalID(900 + i), Sandbox: id, Kind: engine.HealthSignal, At: now.Add(-136 * time.Second),
			Observed: "GET :4100/health → connection refused, twice in 10 s", Probes: make([]engine.Probe, 2), Run: engine.RunID(fmt.Sprintf("ru-%010d", i)),
		}
		sig.Verdict = &engine.Verdict{Action: engine.Repair, Reason: "two probes failed while the process runs", At: sig.At}
		run := engine.HealRun{
			ID: sig.Run, Sandbox: id, Signal: sig.ID, Cause: "health failed twice", By: engine.System,
			State: engine.RunModel, Checkpoint: "cp-7c1eabcdef", Attempt: 1, MaxAttempts: 3, Started: sig.At,
			Spent: engine.Spent{Steps: 13, InputTokens: 4100, CacheReads: 58_000, OutputTokens: 1900, Dollars: 0.09},
		}
		if i < 3 {
			run.Doing = doing[i]
		}
		if i == 0 {
			run.Attempt = 2
		}
		if i >= 3 {
			sig.Kind, sig.Exit, sig.Probes, sig.Observed = engine.ExitSignal, &engine.Exit{Code: 1}, nil, "exit 1 after 0.4s, 2 failed starts in a row"
			run.State, run.Outcome, run.Attempt, run.Ended = engine.RunEnded, engine.NotHealed, 3, now.Add(-6*time.Minute)
			run.Started = now.Add(-11 * time.Minute)
			run.Summary = "Cannot find module 'zod/v4': the lock file pins zod 3, and install has no network."
			run.Next = "allow the network for install, or pin zod 4 by hand"
		}
		s.Signals[id], s.Runs[id] = sig, run
	}
}

func seedAttempts(f *fakeEngine) {
	s := f.snap
	id, run := seedID(0), s.Runs[seedID(0)]
	s.Attempts[id] = []engine.Attempt{
		{
			Run: run.ID, Sandbox: id, Number: 1, Outcome: engine.NotHealed, Why: "export renamed, import not updated",
			Summary: "server not healthy after 30 s", Started: run.Started, Ended: run.Started.Add(50 * time.Second), Spent: engine.Spent{Steps: 6},
		},
		{Run: run.ID, Sandbox: id, Number: 2, Why: "import, then wrong database port", Started: run.Started.Add(50 * time.Second), Spent: engine.Spent{Steps: 7, Dollars: 0.06}},
	}
	s.Steps[id] = seedSteps(run, 2)
	broken := s.Runs[seedID(3)]
	for n := 1; n <= 3; n++ {
		a := engine.Attempt{
			Run: broken.ID, Sandbox: broken.Sandbox, Number: n, Outcome: engine.NotHealed, Why: "zod 4 is imported, 3 is installed",
			Summary: "install failed: no network", Started: broken.Started.Add(time.Duration(n) * time.Minute), Ended: broken.Started.Add(time.Duration(n)*time.Minute + 48*time.Second),
		}
		s.Attempts[broken.Sandbox] = append(s.Attempts[broken.Sandbox], a)
	}
	for _, st := range seedSteps(broken, 3) {
		f.records = append(f.records, engine.HealRecord{Seq: engine.Seq(800 + len(f.records)), Time: st.Started, By: engine.System, Body: engine.HealStepped{Step: st}})
	}
}

const seedDiff = `--- a/src/mastra/agents/weather.ts
+++ b/src/mastra/agents/weather.ts
@@ -1,4 +1,4 @@
 import { Agent } from '@mastra/core/agent';
-import { weatherTool } from '../tools/weather';
+import { weatherLookup } from '../tools/weather';
 
-  tools: { weatherTool },
+  tools: { weatherLookup },
`

func seedSteps(run engine.HealRun, attempt int) []engine.Step {
	at := run.Started.Add(50 * time.Second)
	var list []engine.Step
	add := func(kind engine.StepKind, state engine.StepState, name, arg, text, diff string, took time.Duration) {
		st := engine.Step{
			Run: run.ID, Sandbox: run.Sandbox, Attempt: attempt, Number: len(list) + 1, Kind: kind, State: state,
			Name: name, Argument: arg, Text: text, Diff: diff, Started: at,
		}
		if state != engine.StepRunning {
			st.Ended = at.Add(took)
		}
		at = at.Add(took + 2*time.Second)
		list = append(list, st)
	}
	add(engine.StepThought, engine.StepOK, "", "", "I'll read the log after the last start marker.", "", 0)
	add(engine.StepTool, engine.StepOK, "read", ".logs/app.log (tail 200)", "…200 lines…", "", 100*time.Millisecond)
	add(engine.StepTool, engine.StepOK, "search", `"weatherTool" src/`, "3 hits", "", 100*time.Millisecond)
	add(engine.StepThought, engine.StepOK, "", "", "The agent file imports a tool that was renamed; the export is now weatherLookup.", "", 0)
	add(engine.StepTool, engine.StepOK, "edit", "src/mastra/agents/weather.ts", "", seedDiff, 0)
	add(engine.StepTool, engine.StepFailed, "restart", "app", "TypeError: fetch failed (ECONNREFUSED 127.0.0.1:5432)", "", 31200*time.Millisecond)
	add(engine.StepTool, engine.StepOK, "run", "ss -ltnp | grep 5432", "exit 1", "", 200*time.Millisecond)
	add(engine.StepThought, engine.StepOK, "", "", "Postgres is not listening. The compose file sets the port to 5433; .env still says 5432.", "", 0)
	if run.Open() {
		add(engine.StepTool, engine.StepRunning, "edit", ".env", "", "", 0)
	} else {
		add(engine.StepNote, engine.StepOK, "", "", "rolled back 2 files to checkpoint cp-7c1e", "", 0)
	}
	return list
}

func seedLog(f *fakeEngine, now time.Time) {
	texts := []string{
		"Starting dev server…", "Bundling src/mastra/index.ts", "Bundled 214 modules in 2210 ms", "\x1b[32mLoading agents:\x1b[0m weather, support",
		"WARN retrying database in 5 s", "GET /health 503 1ms", "TypeError: fetch failed",
		"    at Object.query (src/mastra/db.ts:18:9)", "    at async start (src/mastra/index.ts:41:3)", "    cause: ECONNREFUSED 127.0.0.1:5432",
		"server exited with code 1", "title \x1b]0;owned\x07 and \x1b[2J and a\u202eb",
	}
	pos := engine.LogPosition(0)
	for i := range 60 {
		t := texts[i%len(texts)]
		next := pos + engine.LogPosition(len(t)+1)
		f.lines = append(f.lines, engine.LogLine{Process: "ps-0", Stream: engine.Stdout, Pos: pos, Next: next, Time: now.Add(time.Duration(i-60) * time.Second), Text: t})
		pos = next
	}
}
