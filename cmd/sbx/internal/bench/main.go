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
	{"exit → recorded event", "./engine/local", "BenchmarkExitToEvent", "BenchmarkFloorExitSeen", "a child waited for and a line synced"},
	{"kill -9 → restarted child's first line", "./engine/local", "BenchmarkKillToFirstLine/none", "BenchmarkFloorSpawnToFirstLine", "a child started again and read"},
	{"the same in bubblewrap", "./engine/local", "BenchmarkKillToFirstLine/bubblewrap", "BenchmarkFloorSpawnToFirstLine", "a child started again and read, unconfined"},
	{"2,000,000 log lines of 100 bytes, in a sandbox", "./engine/local", "BenchmarkTwoMillionLines", "BenchmarkFloorTwoMillionLines", "the same writer into a plain file; ≤ 1.3×"},
	{"log, 64 KiB in bulk", "./engine/logs", "BenchmarkBulk/logs", "BenchmarkBulk/plain", "the same writer into a plain file; ≤ 1.3×"},
	{"log, a write per line of 100 bytes", "./engine/logs", "BenchmarkLine/logs", "BenchmarkLine/plain", "the same writer into a plain file"},
	{"state change + event, alone", "./store", "BenchmarkChangeAlone", "BenchmarkFloor", "a bare INSERT of a row, synced"},
	{"state change + event, 8 writers, 8 readers", "./store", "BenchmarkChangeGrouped/writers=8", "BenchmarkFloor", "a bare INSERT of a row, synced"},
	{"a probe beside a cpu hog", "./engine/driver/host", "BenchmarkNeighbour/cpu", "BenchmarkNeighbour/nobody", "the same probe alone; both sandboxes limited"},
	{"a probe beside a fork bomb", "./engine/driver/host", "BenchmarkNeighbour/forks", "BenchmarkNeighbour/nobody", "the same probe alone; both sandboxes limited"},
	{"a probe beside a memory hog", "./engine/driver/host", "BenchmarkNeighbour/memory", "BenchmarkNeighbour/nobody", "the same probe alone; both sandboxes limited"},
	{"a probe beside a log flood", "./engine/driver/host", "BenchmarkNeighbour/output", "BenchmarkNeighbour/nobody", "the same probe alone; both sandboxes limited"},
	{"begin or rest, 100 live + 10 cold", "./store", "BenchmarkBeginRest/records=110", "BenchmarkFloor", "a bare INSERT of a row, synced"},
	{"begin or rest, 100,000 records", "./store", "BenchmarkBeginRest/records=100000", "BenchmarkFloor", "a bare INSERT of a row, synced"},
	{"whom to evict, 100 live + 10 cold", "./store", "BenchmarkVictim/records=110", "BenchmarkFloorVictim", "the same asked of SQLite; ≤ 8 µs"},
	{"whom to evict, 100,000 records", "./store", "BenchmarkVictim/records=100000", "BenchmarkFloorVictim", "of 110 records asked of SQLite; ≤ 8 µs"},
	{"claim of a warm sandbox", "./engine/local", "BenchmarkClaim", "BenchmarkFloorCommit", "an empty session row committed; ≤ 1 ms"},
	{"cold resume, our part", "./engine/local", "BenchmarkColdResume", "BenchmarkFloorSpawnToFirstLine", "a child started and read; ≤ 15 ms"},
	{"archive of a workspace, 1,000 files", "./engine/local", "BenchmarkArchive", "BenchmarkFloorTar", "tar | zstd -1, synced; SBX_BENCH_FILES=20000 for more"},
	{"the same again, unchanged", "./engine/local", "BenchmarkArchiveUnchanged", "BenchmarkFloorTar", "tar | zstd -1, synced"},
	{"restore of it", "./engine/local", "BenchmarkArchiveRestore", "BenchmarkFloorUntar", "zstd -d | tar -x, synced, the old tree deleted"},
	{"frame of the fleet, 10,000 rows, one changes", "./tui", "BenchmarkFrameWithOneChangedRow/10000", "BenchmarkFloor", "an unchanged frame drawn; ≤ 2 ms"},
	{"sbx ls of 200 sandboxes, whole process", "./cmd/sbx", "BenchmarkLs", "BenchmarkFloorCobra", "a bare cobra binary and a fetch"},
}

func main() {
	rounds := flag.Int("rounds", 3, "how often each is measured, in turns with its floor; the median ratio and the spreads are printed")
	only := flag.String("only", "", "only the lines whose words match this regular expression")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err == nil && *rounds < 1 {
		err = fmt.Errorf("-rounds %d: one at least", *rounds)
	}
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

// measure takes both sides in turns, round by round: a load that comes and
// goes is then on both, and the ratio is of rounds that were neighbours.
func (p pair) measure(rounds int) error {
	binary, err := build(p.pkg)
	if err != nil {
		return err
	}
	defer os.Remove(binary)
	var ours, floor, ratios []float64
	for range rounds {
		a, err := run(binary, p.pkg, p.ours)
		if err != nil {
			return err
		}
		b, err := run(binary, p.pkg, p.floor)
		if err != nil {
			return err
		}
		ours, floor, ratios = append(ours, a), append(floor, b), append(ratios, a/b)
	}
	slices.Sort(ratios)
	fmt.Printf("%-50s %22s %22s %6.2f×  %s\n", p.what, spread(ours), spread(floor), ratios[len(ratios)/2], p.against)
	return nil
}

// build makes a package's test binary, once for all rounds.
func build(pkg string) (string, error) {
	f, err := os.CreateTemp("", "sbx-bench-*.test")
	if err != nil {
		return "", err
	}
	f.Close()
	if out, err := exec.Command("go", "test", "-c", "-o", f.Name(), pkg).CombinedOutput(); err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("%v: %s", err, lastLines(out, 3))
	}
	// Sandboxes run it as their launcher, as another user.
	return f.Name(), os.Chmod(f.Name(), 0o755)
}

// run is one round of one benchmark, in ns/op.
func run(binary, pkg, name string) (float64, error) {
	cmd := exec.Command(binary, "-test.run", "^$", "-test.bench", exactly(name), "-test.timeout", "10m")
	cmd.Dir = pkg
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%v: %s", err, lastLines(out, 3))
	}
	ns, ok := result(out, name)
	if !ok {
		return 0, fmt.Errorf("no result of %s in %q", name, lastLines(out, 3))
	}
	return ns, nil
}

// exactly is the pattern that matches a benchmark alone, level by level.
func exactly(name string) string {
	levels := strings.Split(name, "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}

var resultLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op`)

// result is the ns/op of one benchmark.
func result(out []byte, name string) (float64, bool) {
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		if m := resultLine.FindStringSubmatch(sc.Text()); m != nil && m[1] == name {
			ns, err := strconv.ParseFloat(m[2], 64)
			return ns, err == nil
		}
	}
	return 0, false
}

// spread is the best and, after a dash, the worst.
func spread(ns []float64) string {
	return human(slices.Min(ns)) + " – " + human(slices.Max(ns))
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
