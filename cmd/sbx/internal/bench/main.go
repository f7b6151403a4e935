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
	against     string // the floor in words, and what is to be reached
}

// pairs is what is measured; FIGURES names are in the words.
var pairs = []pair{
	{"exit → recorded event", "./engine/local", "BenchmarkExitToEvent", "BenchmarkFloorExitSeen", "a child waited for"},
	{"kill -9 → restarted child's first line", "./engine/local", "BenchmarkKillToFirstLine", "BenchmarkFloorSpawnToFirstLine", "a child started again and read"},
	{"2,000,000 log lines of 100 bytes, in a sandbox", "./engine/local", "BenchmarkTwoMillionLines", "BenchmarkFloorTwoMillionLines", "the same writer into a plain file; ≤ 1.3×"},
	{"log, 64 KiB in bulk", "./engine/logs", "BenchmarkBulk/logs", "BenchmarkBulk/plain", "the same writer into a plain file; ≤ 1.3×"},
	{"log, a write per line of 100 bytes", "./engine/logs", "BenchmarkLine/logs", "BenchmarkLine/plain", "the same writer into a plain file"},
	{"state change + event, alone", "./store", "BenchmarkChangeAlone", "BenchmarkFloor", "a bare INSERT of a row, synced"},
	{"state change + event, 8 writers, 8 readers", "./store", "BenchmarkChangeGrouped/writers=8", "BenchmarkFloor", "a bare INSERT of a row, synced"},
	{"frame of the fleet, 10,000 rows, one changes", "./tui", "BenchmarkFrameWithOneChangedRow/10000", "BenchmarkFloor", "an unchanged frame drawn; ≤ 2 ms"},
	{"sbx ls of 200 sandboxes, whole process", "./cmd/sbx", "BenchmarkLs", "BenchmarkFloorCobra", "a bare cobra binary and a fetch"},
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
	fmt.Printf("%-50s %22s %22s %7s  %s\n", "", "ours", "floor", "ratio", "the floor")
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
	fmt.Printf("%-50s %22s %22s %6.2f×  %s\n", p.what, spread(ours), spread(floor), ours[0]/floor[0], p.against)
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
