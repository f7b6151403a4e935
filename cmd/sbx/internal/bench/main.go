// Command bench runs the project's benchmarks and prints each as a ratio
// against its floor, which is measured in the same run: the machines are
// shared and noisy, so a ratio counts and a time doesn't.
//
// The one rule: it measures nothing itself. Benchmarks are Go's, beside the
// code that they measure, and a floor is a benchmark too.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pair is one line of the table: what we do against the least that it needs.
type pair struct {
	what        string
	pkg         string
	ours, floor string // benchmarks; a floor of "" is none
	unit        string // "" is ns/op
	reach       string
}

// pairs is what is measured; FIGURES names are in the words.
var pairs = []pair{
	{"exit → recorded event", "./engine/local", "BenchmarkExitToEvent", "BenchmarkFloorExitSeen", "", "2× of noticing it alone"},
	{"kill -9 → restarted child's first line", "./engine/local", "BenchmarkKillToFirstLine", "BenchmarkFloorSpawnToFirstLine", "", "1.5× of a bare start"},
	{"2,000,000 log lines of 100 bytes, in bulk", "./engine/logs", "BenchmarkBulk/ours", "BenchmarkBulk/floor", "", "≤ 1.3× the plain file"},
	{"2,000,000 log lines of 100 bytes, a write each", "./engine/logs", "BenchmarkLines/ours", "BenchmarkLines/floor", "", "≤ 0.8× the plain file"},
	{"state change + event, alone", "./store", "BenchmarkChangeAlone", "BenchmarkFloorInsertAlone", "", "2× of a bare INSERT"},
	{"state change + event, 8 writers, 8 readers", "./store", "BenchmarkChangeGrouped", "BenchmarkFloorInsertAlone", "", "less than a bare INSERT alone"},
	{"a frame of the fleet, 10,000 rows, one changes", "./tui", "BenchmarkFleetOneRow/10000", "BenchmarkFloorFrame", "", "≤ 2 ms"},
	{"sbx ls of 200 sandboxes, whole process", "./cmd/sbx", "BenchmarkLs", "BenchmarkFloorCobra", "", "≤ 4 ms, floor 3.6 ms in FIGURES"},
}

func main() {
	rounds := flag.Int("rounds", 3, "how often each is measured; the best counts, the spread is printed")
	only := flag.String("only", "", "only the lines whose words match this regular expression")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	fmt.Printf("%-50s %22s %22s %7s  %s\n", "", "ours", "floor", "ratio", "to reach")
	failed := false
	for _, p := range pairs {
		if !match.MatchString(p.what) {
			continue
		}
		if err := p.measure(*rounds); err != nil {
			failed = true
			fmt.Printf("%-50s %v\n", p.what, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func (p pair) measure(rounds int) error {
	names := "^(" + top(p.ours) + "|" + top(p.floor) + ")$"
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", names, "-count", strconv.Itoa(rounds), "-timeout", "10m", p.pkg)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %s", err, lastLines(out, 3))
	}
	ours, floor := samples(out, p.ours), samples(out, p.floor)
	if len(ours) == 0 || len(floor) == 0 {
		return fmt.Errorf("no result of %s or %s in %q", p.ours, p.floor, lastLines(out, 3))
	}
	fmt.Printf("%-50s %22s %22s %6.2f×  %s\n", p.what, spread(ours), spread(floor), ours[0]/floor[0], p.reach)
	return nil
}

// top is a benchmark without its sub-benchmark: what -bench takes per level.
func top(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return regexp.QuoteMeta(name)
}

var resultLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op`)

// samples are the ns/op of one benchmark, best first.
func samples(out []byte, name string) []float64 {
	var list []float64
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		m := resultLine.FindStringSubmatch(sc.Text())
		if m == nil || m[1] != name {
			continue
		}
		if ns, err := strconv.ParseFloat(m[2], 64); err == nil {
			list = append(list, ns)
		}
	}
	slices.Sort(list)
	return list
}

// spread is the best and, after a dash, the worst.
func spread(ns []float64) string {
	return human(ns[0]) + " – " + human(ns[len(ns)-1])
}

func human(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	}
	return fmt.Sprintf("%.2f s", ns/1e9)
}

func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
