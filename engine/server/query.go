package server

import (
	"net/url"
	"strconv"
	"time"

	"sbx/engine"
)

// values reads query parameters and keeps the first thing that is wrong with
// them.
type values struct {
	url.Values
	err error
}

func (c *call) values() *values { return &values{Values: c.r.URL.Query()} }

func (v *values) wrong(name, want string) {
	if v.err == nil {
		v.err = engine.Errorf(engine.Invalid, "the parameter %s=%q isn't %s", name, v.Get(name), want)
	}
}

func (v *values) number(name string) int64 {
	text := v.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		v.wrong(name, "a number of 0 or more")
	}
	return n
}

// small is a number that fits any int.
func (v *values) small(name string) int {
	n := v.number(name)
	if n > 1<<30 {
		v.wrong(name, "a number that small")
		return 0
	}
	return int(n)
}

func (v *values) yes(name string) bool {
	text := v.Get(name)
	if text == "" {
		return false
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		v.wrong(name, "true or false")
	}
	return b
}

func (v *values) moment(name string) time.Time {
	text := v.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		v.wrong(name, "a time like 2026-01-31T15:04:05Z")
	}
	return t
}

func (v *values) duration(name string, unset, least, most time.Duration) time.Duration {
	text := v.Get(name)
	if text == "" {
		return unset
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		v.wrong(name, "a duration like 1s")
	}
	return min(max(d, least), most)
}

func logParams() []param {
	return []param{
		{"sandbox", "string", "whose"},
		{"process", "string", "an id or a name; absent: the app"},
		{"stream", "string", "out or err; absent: out"},
		{"after", "integer", "a position"},
		{"tail", "integer", "the last so many lines"},
		{"since", "string", "a time"},
		{"sinceStart", "boolean", "from the process's last start"},
		{"follow", "boolean", "wait for more"},
	}
}

func logQuery(c *call) (engine.LogQuery, error) {
	v := c.values()
	q := engine.LogQuery{
		Sandbox:    engine.SandboxID(v.Get("sandbox")),
		Process:    v.Get("process"),
		Stream:     engine.Stream(v.Get("stream")),
		After:      engine.LogPosition(v.number("after")),
		Tail:       v.small("tail"),
		Since:      v.moment("since"),
		SinceStart: v.yes("sinceStart"),
		Follow:     v.yes("follow"),
	}
	if q.Stream != "" && q.Stream != engine.Stdout && q.Stream != engine.Stderr {
		v.wrong("stream", "out or err")
	}
	return q, v.err
}

func healParams() []param {
	return []param{
		{"sandbox", "string", "absent: the fleet"},
		{"run", "string", "a run"},
		{"attempt", "integer", "only steps and results of this one"},
		{"since", "string", "a time"},
		{"after", "integer", "a seq"},
		{"limit", "integer", "the newest so many"},
	}
}

func healQuery(c *call) (engine.HealQuery, error) {
	v := c.values()
	q := engine.HealQuery{
		Sandbox: engine.SandboxID(v.Get("sandbox")),
		Run:     engine.RunID(v.Get("run")),
		Since:   v.moment("since"),
		After:   engine.Seq(v.number("after")),
		Limit:   v.small("limit"),
	}
	if v.Has("attempt") {
		n := v.small("attempt")
		q.Attempt = &n
	}
	return q, v.err
}

func auditParams() []param {
	return []param{
		{"subject", "string", "the id of what was changed"},
		{"since", "string", "a time"},
		{"after", "integer", "an entry's id"},
		{"limit", "integer", "the newest so many"},
	}
}

func auditQuery(c *call) (engine.AuditQuery, error) {
	v := c.values()
	q := engine.AuditQuery{Subject: v.Get("subject"), Since: v.moment("since"), After: v.number("after"), Limit: v.small("limit")}
	return q, v.err
}
