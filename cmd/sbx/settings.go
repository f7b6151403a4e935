package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/redact"
)

// config is every setting with its value, after flags > env > file > defaults.
type config struct {
	home string // the data directory

	modelKey, modelToken, modelURL, modelName string
	// how long the model may be silent, may take for an answer, and is waited
	// for in all
	modelIdle, modelTurn, modelRetry time.Duration
	modelBreaker                     int

	healUnconfined bool
	maxModelRuns   int
	budgets        budgets

	maxSandboxes int
	pool         poolConfig
	isolation    string
	require      string
	allowRoot    bool
	incidentSize int
	scale        float64
	portFrom     int
	portTo       int
	sync         string
	listen       string
	hosts        []string
	theme        string

	archiveDir, archiveURL       string
	archiveAccess, archiveSecret string
	archiveRebuildable           bool
	maxUpload                    int64
	mouse                        string
	// of the processes that run what outlives the engine
	shimSandboxes int
	shimIdle      time.Duration

	gatewayOn                     bool
	gatewayListen                 string
	openaiURL, openaiKey          string
	gatewayTokens, gatewayDollars int

	notifyWebhook, notifySecret, notifyCommand string
	notifyOn                                   []engine.NoticeKind

	// from says where each setting's value came from.
	from map[string]string
}

// setting is one setting: its key in the file, its other names in the
// environment, and how a text becomes its value.
type setting struct {
	key     string
	env     []string // beside SBX_<KEY>
	initial string
	help    string
	secret  bool
	set     func(c *config, v string) error
}

// envName is the variable that every setting has: SBX_HEAL_UNCONFINED.
func (s setting) envName() string {
	return "SBX_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// settings is every setting there is; `sbx config` prints it.
var settings = append([]setting{
	{key: "model.key", env: []string{"ANTHROPIC_API_KEY"}, secret: true, help: "API key for the model that heals", set: setString(func(c *config) *string { return &c.modelKey })},
	{key: "model.auth_token", env: []string{"ANTHROPIC_AUTH_TOKEN"}, secret: true, help: "bearer token instead of a key, for gateways", set: setString(func(c *config) *string { return &c.modelToken })},
	{key: "model.base_url", env: []string{"ANTHROPIC_BASE_URL"}, help: "where the Messages API is", set: setString(func(c *config) *string { return &c.modelURL })},
	{key: "model.name", env: []string{"SBX_MODEL"}, initial: "claude-sonnet-5-5", help: "the model that heals", set: setString(func(c *config) *string { return &c.modelName })},
	{key: "model.idle_timeout", initial: "60s", help: "an answer in which nothing comes for so long is given up and asked for again", set: setDuration(100*time.Millisecond, time.Hour, func(c *config) *time.Duration { return &c.modelIdle })},
	{key: "model.turn_timeout", initial: "10m", help: "the most that one answer may take", set: setDuration(100*time.Millisecond, 24*time.Hour, func(c *config) *time.Duration { return &c.modelTurn })},
	{key: "model.retry", initial: "10m", help: "how long an attempt waits in all for a model that is away", set: setDuration(0, 24*time.Hour, func(c *config) *time.Duration { return &c.modelRetry })},
	{key: "model.breaker", initial: "5", help: "failures in a row, of whatever sandbox, until a model that is away is asked by one at a time; 0: never", set: setInt(0, 1_000_000, func(c *config) *int { return &c.modelBreaker })},
	{key: "heal.unconfined", initial: "false", help: "let the agent work where nothing confines it", set: setBool(func(c *config) *bool { return &c.healUnconfined })},
	{key: "heal.max_model_runs", initial: "4", help: "runs that may use the model at once", set: setInt(1, 64, func(c *config) *int { return &c.maxModelRuns })},
	{key: "heal.incident_size", initial: "3", help: "as many sandboxes that crash alike are one incident: one is healed first", set: setInt(2, 1_000_000, func(c *config) *int { return &c.incidentSize })},
	{key: "pool.max_sandboxes", env: []string{"SBX_MAX_SANDBOXES"}, initial: "1000", help: "capacity, live and cold", set: setInt(1, 1_000_000, func(c *config) *int { return &c.maxSandboxes })},
	{key: "pool.idle_timeout", env: []string{"SBX_IDLE_TIMEOUT_MS"}, initial: "30m", help: "an unused sandbox is put to sleep after so long", set: setMillis(100*time.Millisecond, 365*24*time.Hour, func(c *config) *time.Duration { return &c.pool.idleTimeout })},
	{key: "pool.idle_sweep", initial: "1m", help: "how often idle sandboxes are looked for", set: setMillis(50*time.Millisecond, 24*time.Hour, func(c *config) *time.Duration { return &c.pool.idleSweep })},
	{key: "pool.cold_ttl", env: []string{"SBX_COLD_CLEANUP_TTL_MS"}, initial: "2h", help: "a cold sandbox that isn't kept is deleted after so long", set: setMillis(100*time.Millisecond, 10*365*24*time.Hour, func(c *config) *time.Duration { return &c.pool.coldTTL })},
	{key: "pool.cold_sweep", initial: "5m", help: "how often cold sandboxes are looked for", set: setMillis(50*time.Millisecond, 24*time.Hour, func(c *config) *time.Duration { return &c.pool.coldSweep })},
	{key: "pool.keep_last_copy", initial: "false", help: "refuse to delete a workspace that no remote archive holds", set: setBool(func(c *config) *bool { return &c.pool.keepLastCopy })},
	{key: "pool.warm", help: "sandboxes kept ready, by template: demo=2,node=1", set: setWarm},
	{key: "isolation.mode", env: []string{"SBX_ISOLATION"}, initial: "auto", help: "auto, bubblewrap, landlock or none", set: setOneOf([]string{"auto", "bubblewrap", "landlock", "none"}, func(c *config) *string { return &c.isolation })},
	{key: "isolation.require", env: []string{"SBX_ISOLATION_REQUIRE"}, initial: "none", help: "refuse to run with a weaker one: bubblewrap, landlock or none", set: setOneOf([]string{"bubblewrap", "landlock", "none"}, func(c *config) *string { return &c.require })},
	{key: "isolation.allow_root", initial: "false", help: "run sandboxes as root where their workspace is root's", set: setBool(func(c *config) *bool { return &c.allowRoot })},
	{key: "timings.scale", initial: "1", help: "multiplies every interval of the detectors and the healer", set: setScale},
	{key: "shim.sandboxes", initial: "64", help: "how many sandboxes share one shim: what ends with it if it is killed", set: setInt(1, 1024, func(c *config) *int { return &c.shimSandboxes })},
	{key: "shim.idle", initial: "1m", help: "a shim that runs nothing and hears of no engine ends after this", set: setDuration(100*time.Millisecond, 24*time.Hour, func(c *config) *time.Duration { return &c.shimIdle })},
	{key: "ports.from", initial: "20000", help: "first port that is handed to apps", set: setInt(1, 65535, func(c *config) *int { return &c.portFrom })},
	{key: "ports.to", initial: "29999", help: "last port that is handed to apps", set: setInt(1, 65535, func(c *config) *int { return &c.portTo })},
	{key: "store.sync", initial: "full", help: "full survives a power cut, normal any crash of the engine", set: setOneOf([]string{"full", "normal"}, func(c *config) *string { return &c.sync })},
	{key: "serve.listen", initial: "127.0.0.1:7443", help: "address of sbx serve; empty: the unix socket only", set: setString(func(c *config) *string { return &c.listen })},
	{key: "serve.hosts", help: "further host names that clients may use, with commas", set: setHosts},
	{key: "tui.mouse", initial: "on", help: "the dashboard's mouse: on, wheel (scrolls only) or off (the terminal's own)", set: setOneOf([]string{"on", "wheel", "off"}, func(c *config) *string { return &c.mouse })},
	{key: "gateway.on", initial: "false", help: "give sandboxes a way to the model's provider: a virtual key, and a gateway on loopback that spends the real one", set: setBool(func(c *config) *bool { return &c.gatewayOn })},
	{key: "gateway.listen", initial: "127.0.0.1:0", help: "the gateway's address; with port 0 it keeps the one that it had", set: setString(func(c *config) *string { return &c.gatewayListen })},
	{key: "gateway.openai_url", initial: "https://api.openai.com", help: "the OpenAI provider behind the gateway", set: setString(func(c *config) *string { return &c.openaiURL })},
	{key: "gateway.openai_key", secret: true, help: "its key; without one it is not served", set: setString(func(c *config) *string { return &c.openaiKey })},
	{key: "gateway.tokens_per_day", initial: "5000000", help: "tokens that each sandbox may use through the gateway on a day (UTC); 0: any", set: setInt(0, 1_000_000_000_000, func(c *config) *int { return &c.gatewayTokens })},
	{key: "gateway.dollars_per_day", initial: "10", help: "dollars, likewise", set: setInt(0, 1_000_000, func(c *config) *int { return &c.gatewayDollars })},
	{key: "notify.webhook", secret: true, help: "address that is told of broken, quarantine, budget and incident: a POST of JSON", set: setString(func(c *config) *string { return &c.notifyWebhook })},
	{key: "notify.secret", secret: true, help: "signs what the webhook gets", set: setString(func(c *config) *string { return &c.notifySecret })},
	{key: "notify.command", help: "shell command that is told likewise: JSON on its input, SBX_NOTICE_* in its environment", set: setString(func(c *config) *string { return &c.notifyCommand })},
	{key: "notify.on", help: "the kinds that are told, with commas; empty: all", set: setKinds},
	{key: "theme", initial: "auto", help: "theme of the dashboard", set: setString(func(c *config) *string { return &c.theme })},
}, slices.Concat(budgetSettings(), archiveSettings)...)

func settingOf(key string) (setting, bool) {
	for _, s := range settings {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

func setString(at func(*config) *string) func(*config, string) error {
	return func(c *config, v string) error {
		*at(c) = v
		return nil
	}
}

func setBool(at func(*config) *bool) func(*config, string) error {
	return func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*at(c) = b
		return nil
	}
}

func setInt(least, most int, at func(*config) *int) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a number from %d to %d", v, least, most)
		}
		*at(c) = n
		return nil
	}
}

func setDuration(least, most time.Duration, at func(*config) *time.Duration) func(*config, string) error {
	return func(c *config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < least || d > most {
			return fmt.Errorf("%q is not a time from %s to %s, such as 90s", v, least, most)
		}
		*at(c) = d
		return nil
	}
}

func setOneOf(words []string, at func(*config) *string) func(*config, string) error {
	return func(c *config, v string) error {
		for _, w := range words {
			if v == w {
				*at(c) = v
				return nil
			}
		}
		return fmt.Errorf("%q is none of %s", v, strings.Join(words, ", "))
	}
}

func setScale(c *config, v string) error {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f < 0.01 || f > 100 {
		return fmt.Errorf("%q is not a number from 0.01 to 100", v)
	}
	c.scale = f
	return nil
}

func setKinds(c *config, v string) error {
	c.notifyOn = nil
	for k := range strings.SplitSeq(v, ",") {
		switch k := engine.NoticeKind(strings.TrimSpace(k)); k {
		case "":
		case engine.NoticeBroken, engine.NoticeQuarantine, engine.NoticeBudget, engine.NoticeIncident:
			c.notifyOn = append(c.notifyOn, k)
		default:
			return fmt.Errorf("%q is none of broken, quarantine, budget, incident", k)
		}
	}
	return nil
}

func setHosts(c *config, v string) error {
	c.hosts = nil
	for _, h := range strings.Split(v, ",") {
		if h = strings.TrimSpace(h); h != "" {
			c.hosts = append(c.hosts, h)
		}
	}
	return nil
}

// noModel says why there is no model, or "".
func (c *config) noModel() string {
	if c.modelKey != "" || c.modelToken != "" {
		return ""
	}
	return "no model is configured: set ANTHROPIC_API_KEY, or model.key in config.toml"
}

// secrets are the values that no log, event or transcript may hold: the
// configured ones, and what of this process's environment sounds like one.
func (c *config) secrets() []string {
	return append(redact.Environ(os.Environ()), c.modelKey, c.modelToken, c.openaiKey, c.notifySecret, c.archiveAccess, c.archiveSecret)
}
