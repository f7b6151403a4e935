package engine

import "time"

// Spec is what a sandbox should be. It is read from sbx.toml once, stored by
// the engine, and changes only by [ApplySpec]: an edit inside the workspace
// can't loosen it. Package engine/spec parses and checks it.
type Spec struct {
	App       ProcessSpec   `json:"app" toml:"app"`
	Processes []ProcessSpec `json:"processes,omitempty" toml:"process"`
	Limits    Limits        `json:"limits" toml:"limits"`
	Heal      HealSpec      `json:"heal" toml:"heal"`
}

// AppName is the name of the process that Spec.App describes.
const AppName = "app"

// ProcessSpec is one supervised process. The numbers' defaults are SPEC §3's.
type ProcessSpec struct {
	Name         string            `json:"name,omitempty"`
	Command      string            `json:"command"`                // run by the shell
	Port         int               `json:"port,omitempty"`         // 0: the engine assigns one; exported as $PORT
	Health       string            `json:"health,omitempty"`       // GET path on the port; 2xx is healthy; "": nothing to probe
	StartTimeout Duration          `json:"startTimeout,omitempty"` // until the first healthy probe
	MaxRestarts  int               `json:"maxRestarts"`            // exits in a row that the supervisor answers itself
	MinUptime    Duration          `json:"minUptime,omitempty"`    // an exit sooner than this is a failed start
	RestartDelay Duration          `json:"restartDelay"`           // between an exit and the next start
	StopGrace    Duration          `json:"stopGrace,omitempty"`    // TERM, this long, then KILL, to the whole tree
	Install      string            `json:"install,omitempty"`      // a clean reinstall of dependencies
	Check        string            `json:"check,omitempty"`        // must pass before a fix is accepted
	Env          map[string]string `json:"env,omitempty"`
}

// Limits bound what a sandbox may use. Zero means no limit.
type Limits struct {
	Memory    Size    `json:"memory,omitempty"`
	CPU       float64 `json:"cpu,omitempty"` // cores
	Disk      Size    `json:"disk,omitempty"`
	Processes int     `json:"processes,omitempty"`
}

// HealSpec is what the healer may do with this sandbox.
type HealSpec struct {
	Attempts  int      `json:"attempts"`            // of the model; 0: playbooks only
	Protected []string `json:"protected,omitempty"` // workspace paths that the agent may read, never write
}

// Defaults of SPEC §3.
const (
	DefaultStartTimeout = 60 * time.Second
	DefaultMaxRestarts  = 1
	DefaultMinUptime    = 10 * time.Second
	DefaultRestartDelay = 2 * time.Second
	DefaultStopGrace    = 5 * time.Second
	DefaultAttempts     = 3
)

// Process is the spec of the process called name, and whether there is one.
func (s Spec) Process(name string) (ProcessSpec, bool) {
	for _, p := range s.All() {
		if p.Name == name {
			return p, true
		}
	}
	return ProcessSpec{}, false
}

// All is every supervised process, the app first.
func (s Spec) All() []ProcessSpec {
	app := s.App
	app.Name = AppName
	return append([]ProcessSpec{app}, s.Processes...)
}
