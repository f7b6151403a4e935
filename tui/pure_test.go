package tui

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sbx/engine"
	"sbx/themes"
	"sbx/tui/style"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func testSet(t testing.TB, ascii bool) *style.Set {
	t.Helper()
	theme, err := themes.Load("sbx-dark", "")
	if err != nil {
		t.Fatal(err)
	}
	return style.New(theme, style.Options{ASCII: ascii})
}

func TestHealerColumnSaysWhatHappens(t *testing.T) {
	set := testSet(t, false)
	run := engine.HealRun{ID: "ru-1", State: engine.RunModel, Attempt: 2, MaxAttempts: 3, Doing: "edit", Started: noon.Add(-86 * time.Second)}
	for name, c := range map[string]struct {
		edit func(*facts)
		want string
	}{
		"model":    {func(*facts) {}, "2/3 ▰▰▱ edit 1m26s"},
		"queued":   {func(f *facts) { f.run.State = engine.RunQueued }, "queued 1m26s"},
		"waiting":  {func(f *facts) { f.run.State = engine.RunWaiting }, "waits for the model"},
		"playbook": {func(f *facts) { f.run.Attempt, f.run.Doing = 0, "stale-lock" }, "stale-lock 1m26s"},
		"gave up": {func(f *facts) {
			f.run.State, f.run.Attempt, f.run.Outcome, f.sb.Health = engine.RunEnded, 3, engine.NotHealed, engine.Broken
		}, "3/3 ▰▰▰ gave up"},
		"no model": {func(f *facts) {
			f.run.State, f.run.Attempt, f.sb.Health, f.sb.Reason = engine.RunEnded, 0, engine.Broken, "no model is configured"
		}, "no model is configured"},
		"healed": {func(f *facts) {
			f.run.State, f.run.Outcome, f.run.Ended, f.sb.Health = engine.RunEnded, engine.Healed, noon.Add(-time.Hour), engine.Ready
		}, "healed 11:00"},
		"paused": {func(f *facts) {
			f.run, f.sb.Maintenance = engine.HealRun{}, engine.Maintenance{On: true, Until: noon.Add(42 * time.Minute)}
		}, "paused 42m more"},
		"nothing": {func(f *facts) { f.run = engine.HealRun{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{sb: engine.Sandbox{Health: engine.Healing, State: engine.Running}, run: run, now: noon}
			c.edit(&f)
			if got := rowOf(set, f).healer; got != c.want {
				t.Errorf("the column says %q, want %q", got, c.want)
			}
		})
	}
}

func TestColdSandboxesHaveNothingToSayOfTheirHealth(t *testing.T) {
	r := rowOf(testSet(t, false), facts{sb: engine.Sandbox{State: engine.Cold, Health: engine.Unknown}, now: noon})
	if r.health.word != "—" || r.mem != "—" || r.cpu != nil {
		t.Errorf("row is %+v", r)
	}
}

func TestColumnsFitAndDropWhatMattersLeast(t *testing.T) {
	for width := 50; width < 260; width++ {
		list := columns(width, 20, 16, nil)
		if total(list) > width {
			t.Errorf("at %d the columns take %d", width, total(list))
		}
		ids := make([]columnID, len(list))
		for i, c := range list {
			ids[i] = c.id
		}
		for _, must := range []columnID{colHealth, colSandbox, colHealer, colSeen} {
			if !slices.Contains(ids, must) {
				t.Errorf("at %d column %d is missing", width, must)
			}
		}
		if !slices.IsSorted(ids) {
			t.Errorf("at %d the columns are out of order: %v", width, ids)
		}
	}
	if n := len(columns(155, 20, 16, nil)); n != 12 {
		t.Errorf("160 columns show %d of 12", n)
	}
}

func TestLayoutTilesTheScreen(t *testing.T) {
	for _, s := range []screen{onFleet, onSandbox} {
		for _, side := range []bool{false, true} {
			for w := 1; w < 220; w += 7 {
				for h := 1; h < 70; h += 3 {
					l := arrange(w, h, s, side, false)
					if l.small {
						if w >= leastWidth && h >= leastHeight {
							t.Errorf("%d×%d is called too small", w, h)
						}
						continue
					}
					rows := l.bar.h + l.head.h + l.main.h + l.strip.h + l.status.h + l.hints.h
					if l.side.x == 0 {
						rows += l.side.h
					}
					if rows != h || l.main.h < 3 {
						t.Errorf("%d×%d: %d rows, table of %d: %+v", w, h, rows, l.main.h, l)
					}
				}
			}
		}
	}
}

func TestFilterMatchesFieldsAndWords(t *testing.T) {
	sb := engine.Sandbox{
		ID: "sb-7f3cabcdef", Name: "agent-weather", Owner: "Dana@acme.io", Template: "node-mastra",
		Health: engine.Broken, State: engine.Running, Labels: map[string]string{"team": "web"},
	}
	for text, want := range map[string]bool{
		"": true, "weather": true, "agwr": true, "rew": false, "sb-7f": true, "dana": true,
		"health:broken": true, "health:br": true, "health:ready": false, "life:running": true, "owner:dana": true, "owner:lena": false,
		"template:mastra": true, "label:team": true, "label:team=web": true, "label:team=ops": false,
		"health:broken owner:dana weather": true, "health:broken owner:lena": false, "helth:broken": false,
	} {
		if got := parseFilter(text).match(sb); got != want {
			t.Errorf("%q matches: %v", text, got)
		}
	}
	for text, want := range map[string]string{"health:brokn": "broken", "helth:x": "health", "health:ready": "", "life:runing": "running", "web": ""} {
		if got := parseFilter(text).hint; got != want {
			t.Errorf("%q means %q, want %q", text, got, want)
		}
	}
}

func TestOrderStaysSortedWhileSandboxesChange(t *testing.T) {
	for mode := range sortings {
		t.Run(mode.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			fake := seeded(60, noon)
			o := order{sort: mode}
			o.reset(fake.snap)
			for range 500 {
				id := seedID(r.IntN(70))
				sb, ok := fake.snap.Sandboxes[id]
				if r.IntN(5) == 0 {
					delete(fake.snap.Sandboxes, id)
					o.drop(id)
					continue
				}
				if !ok {
					sb = seedSandbox(r.IntN(60), noon)
					sb.ID = id
				}
				sb.Health = []engine.Health{engine.Ready, engine.Broken, engine.Healing}[r.IntN(3)]
				sb.HealthChanged = noon.Add(time.Duration(r.IntN(1000)) * time.Second)
				sb.Active, sb.Owner = sb.HealthChanged, seedOwners[r.IntN(3)]
				fake.snap.Sandboxes[id] = sb
				o.put(sb)
			}
			want := order{sort: mode}
			want.reset(fake.snap)
			if diff := cmp.Diff(idsOf(want.entries), idsOf(o.entries)); diff != "" {
				t.Errorf("moved one by one, the order differs from sorting:\n%s", diff)
			}
			if diff := cmp.Diff(fmt.Sprint(want.health, want.state), fmt.Sprint(o.health, o.state)); diff != "" && len(o.health) == len(want.health) {
				t.Errorf("the counts differ:\n%s", diff)
			}
		})
	}
}

func idsOf(list []*entry) []engine.SandboxID {
	ids := make([]engine.SandboxID, len(list))
	for i, e := range list {
		ids[i] = e.id
	}
	return ids
}

func TestNamesSortByTheirNumbers(t *testing.T) {
	list := []string{"web-10", "web-9", "web-1", "api", "web", "web-09", "b2-1"}
	slices.SortFunc(list, natural)
	if diff := cmp.Diff([]string{"api", "b2-1", "web", "web-1", "web-9", "web-09", "web-10"}, list); diff != "" {
		t.Error(diff)
	}
}

func TestTimesAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 4 * time.Second: "4s", 86 * time.Second: "1m26s", 125 * time.Minute: "2h05m", 76 * time.Hour: "3d4h",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestRingKeepsTheLatestLinesAndTheirNumbers(t *testing.T) {
	var r ring
	r.filter("keep")
	for i := range 30 {
		var batch []engine.LogLine
		for j := range 1000 {
			text := "line"
			if (i*1000+j)%100 == 0 {
				text = "Keep this"
			}
			batch = append(batch, engine.LogLine{Text: text, Next: engine.LogPosition(i*1000 + j + 1)})
		}
		r.add(batch)
	}
	if n := len(r.lines); n < keptLines || n > keptLines+keptLines/8 {
		t.Errorf("%d lines are kept", n)
	}
	if r.end() != 30_000 || r.first+len(r.lines) != 30_000 {
		t.Errorf("the end is at %d, number %d", r.end(), r.first+len(r.lines))
	}
	for i := range r.size() {
		if l := r.at(i); l.Text != "Keep this" || int(l.Next)-1 != r.number(i) {
			t.Fatalf("line %d is %+v, number %d", i, l, r.number(i))
		}
	}
	if r.size() < 100 {
		t.Errorf("%d lines match", r.size())
	}
	r.add([]engine.LogLine{{Text: string(make([]byte, keptBytes))}})
	if len(r.lines) > 2 {
		t.Errorf("a huge line leaves %d lines", len(r.lines))
	}
}

func TestASCIIScreensHaveNothingElse(t *testing.T) {
	set := testSet(t, true)
	if set.Spark(7) != "#" || set.Spinner(1) != "/" {
		t.Errorf("spark %q, spinner %q", set.Spark(7), set.Spinner(1))
	}
}
