package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/engine/pool"
)

// poolConfig is the settings of SPEC §4.
type poolConfig struct {
	idleTimeout, idleSweep, coldTTL, coldSweep time.Duration
	keepLastCopy                               bool
	warm                                       map[string]int
}

func poolPolicy(cfg *config) pool.Policy {
	p := pool.DefaultPolicy()
	p.MaxSandboxes = cfg.maxSandboxes
	p.IdleTimeout, p.IdleSweep = cfg.pool.idleTimeout, cfg.pool.idleSweep
	p.ColdTTL, p.ColdSweep = cfg.pool.coldTTL, cfg.pool.coldSweep
	p.KeepLastCopy, p.Warm = cfg.pool.keepLastCopy, cfg.pool.warm
	return p
}

// setMillis is setDuration that also takes a bare number of milliseconds, as
// the variables that end in _MS have it.
func setMillis(least, most time.Duration, at func(*config) *time.Duration) func(*config, string) error {
	set := setDuration(least, most, at)
	return func(c *config, v string) error {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			if n > most.Milliseconds() || n < least.Milliseconds() {
				return fmt.Errorf("%q milliseconds is not a time from %s to %s", v, least, most)
			}
			v = strconv.FormatInt(n, 10) + "ms"
		}
		return set(c, v)
	}
}

// maxWarm is how many of a template may be kept warm.
const maxWarm = 1000

func setWarm(c *config, v string) error {
	c.pool.warm = nil
	for _, item := range strings.Split(v, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		template, count, ok := strings.Cut(item, "=")
		n, err := strconv.Atoi(count)
		if !ok || template == "" || err != nil || n < 0 || n > maxWarm {
			return fmt.Errorf("%q is not of the form template=number, such as demo=2", item)
		}
		if c.pool.warm == nil {
			c.pool.warm = map[string]int{}
		}
		if n > 0 {
			c.pool.warm[template] = n
		}
	}
	return nil
}
