package healer

import (
	"regexp"
	"strings"

	"sbx/engine"
)

// noFingerprint is the fingerprint of a run whose fault can't be told from
// others: nothing that was written says what is wrong.
const noFingerprint = "none"

// Bounds of a fingerprint.
const (
	maxFingerprint = 240
	tellLines      = 400 // of the log's end, to find the error in
)

// The ways in which programs say what ended them, best first: the line that
// names an error, and any line that sounds like one.
var (
	errorLine = lazily(`^(?:uncaught |unhandled |fatal: |caused by: )?(?:[A-Za-z_$][\w$.]*(?:Error|Exception|Warning|Failure)\b.*:|panic: |fatal error: |Error: )`)
	troubled  = lazily(`(?i)\b(?:error|exception|panic|fatal|cannot|can't|could not|not found|no such file|failed|failure|denied|refused|segmentation fault|undefined|unknown|missing|already in use|out of memory|E[A-Z]{3,})\b`)
)

// fingerprint is what two sandboxes with the same fault have in common, and
// the fault in one line. It is pure: the kind of signal and exit, and the error
// that the log ends with, without what differs from one start to the next.
func fingerprint(sig engine.Signal, exit *engine.Exit, log string) (print, title string) {
	kind := string(sig.Kind)
	if sig.Kind == engine.ExitSignal && exit != nil {
		kind = exit.String()
		if exit.Error != "" {
			kind = "not started"
		}
	}
	said := errorOf(clean(log))
	if said == "" && exit != nil && exit.Error != "" && sig.Kind == engine.ExitSignal {
		said = exit.Error
	}
	if said == "" {
		return noFingerprint, kind
	}
	return cutHead(kind+" · "+normal(said), maxFingerprint), line(kind+" · "+said, maxCause)
}

// errorOf is the line of a log that says what went wrong; "" if none does.
func errorOf(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	lines = lines[max(0, len(lines)-tellLines):]
	sounds := ""
	for i := len(lines) - 1; i >= 0; i-- {
		l := strings.TrimSpace(stamp().ReplaceAllString(strings.TrimSpace(lines[i]), ""))
		switch {
		case l == "" || framed().MatchString(l):
		case errorLine().MatchString(l):
			return l
		case sounds == "" && troubled().MatchString(l):
			sounds = l
		}
	}
	return sounds
}

var (
	// stamp is a time, a level or a name in brackets that a line begins with.
	stamp = lazily(`^(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?\s*|\[?\d\d:\d\d:\d\d[.,\d]*\]?\s*|\[[\w .:/-]{1,40}\]\s+)+`)
	// framed is a frame of a stack.
	framed = lazily(`^(?:at |File "|\s*~?\^+|\.\.\. \d+ more|goroutine \d+|Node\.js v)`)
)

// What differs between two starts of the same fault, and what stands for it.
var differing = []struct {
	what func() *regexp.Regexp
	by   string
}{
	{lazily(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`), "<id>"},
	{lazily(`\b(?:sb|ps|ru|se|te|cp|in)-[a-z2-7]{10}\b`), "<id>"},
	{lazily(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?`), "<time>"},
	{lazily(`\b0x[0-9a-fA-F]+\b`), "<n>"},
	// A path keeps its last element: where a workspace lies differs, what is in
	// it doesn't.
	{lazily(`(?:file://)?(?:/[\w.@+~-]+)+/([\w.@+~-]+)`), "$1"},
	{lazily(`\b[0-9a-f]{12,64}\b`), "<id>"},
	{lazily(`\d+`), "<n>"},
}

// normal is a line without what differs from one start to the next.
func normal(l string) string {
	for _, d := range differing {
		l = d.what().ReplaceAllString(l, d.by)
	}
	return strings.ToLower(strings.Join(strings.Fields(l), " "))
}
