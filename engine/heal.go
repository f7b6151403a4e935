package engine

import "time"

// RunState is where a heal run is.
type RunState string

// The states of a run, in the order they happen.
const (
	RunQueued    RunState = "queued"    // waits for a place in the playbook lane
	RunPlaybooks RunState = "playbooks" // free and deterministic repairs
	RunWaiting   RunState = "waiting"   // waits for a place in the model lane, or for the provider
	RunModel     RunState = "model"     // an agent is at work
	RunEnded     RunState = "ended"
)

// Outcome is how a run or an attempt ended.
type Outcome string

// The outcomes.
const (
	Healed      Outcome = "healed"      // verified
	NotHealed   Outcome = "not healed"  // an attempt that did not work; a run that gave up
	Cancelled   Outcome = "cancelled"   // by an operator, or by a stop or removal
	Interrupted Outcome = "interrupted" // the engine stopped in it; judged again
	OverBudget  Outcome = "budget"      // a budget was spent
	Planned     Outcome = "planned"     // a plan was made; nothing was changed
)

// HealRun is one try to make a sandbox ready again, from the verdict to the
// outcome (SPEC §7.2).
type HealRun struct {
	ID       RunID      `json:"id"`
	Sandbox  SandboxID  `json:"sandbox"`
	Incident IncidentID `json:"incident,omitempty"`
	// Fingerprint is what tells whether others have the same fault; "" until
	// that was looked at, and no run begins before.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Held says by what the run is held, in words; "" if it isn't.
	Held string `json:"held,omitempty"`
	// Plan: the run only finds out what would help. Applies is the run whose
	// plan this one does.
	Plan       bool         `json:"plan,omitempty"`
	Applies    RunID        `json:"applies,omitempty"`
	Signal     SignalID     `json:"signal,omitempty"`
	Cause      string       `json:"cause"` // the signal in words
	By         Actor        `json:"by"`
	State      RunState     `json:"state"`
	Outcome    Outcome      `json:"outcome,omitempty"`
	Checkpoint CheckpointID `json:"checkpoint,omitempty"` // before the run
	// Attempt is the number of the attempt under way or made last; 0 are the
	// playbooks.
	Attempt     int `json:"attempt"`
	MaxAttempts int `json:"maxAttempts"`
	// Doing is the tool or playbook at work now, for a narrow column.
	Doing string `json:"doing,omitempty"`
	// Summary says what was seen and tried; Next what an operator can do.
	Summary string `json:"summary,omitempty"`
	Next    string `json:"next,omitempty"`
	// Would is what a plan would do, in order and in words; Diff what of that
	// are changes of files, as a unified diff.
	Would []string `json:"would,omitempty"`
	Diff  string   `json:"diff,omitempty"`
	// FixedBy names the playbook, "model" or "plan" of a healed run.
	FixedBy string `json:"fixedBy,omitempty"`
	// Commit is the commit that holds the fix; NotCommitted says why there is
	// none, or names the paths left out of it.
	Commit       string `json:"commit,omitempty"`
	NotCommitted string `json:"notCommitted,omitempty"`
	// Changed are the paths that the run changed and that stayed changed.
	Changed []string `json:"changed,omitempty"`
	// KeptByUser are paths that a rollback left alone, because somebody
	// changed them after the run had.
	KeptByUser []string `json:"keptByUser,omitempty"`
	// Baseline is the set of paths that had uncommitted changes before the run.
	Baseline []string  `json:"baseline,omitempty"`
	Spent    Spent     `json:"spent,omitzero"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
}

// Open reports whether the run has not ended.
func (r HealRun) Open() bool { return r.State != RunEnded }

// Spent is what a run or attempt has cost so far.
type Spent struct {
	Steps        int     `json:"steps,omitempty"`
	InputTokens  int64   `json:"inputTokens,omitempty"` // uncached
	CacheWrites  int64   `json:"cacheWrites,omitempty"`
	CacheReads   int64   `json:"cacheReads,omitempty"`
	OutputTokens int64   `json:"outputTokens,omitempty"`
	Dollars      float64 `json:"dollars,omitempty"`
}

// Add is the sum of both.
func (s Spent) Add(o Spent) Spent {
	return Spent{
		Steps:        s.Steps + o.Steps,
		InputTokens:  s.InputTokens + o.InputTokens,
		CacheWrites:  s.CacheWrites + o.CacheWrites,
		CacheReads:   s.CacheReads + o.CacheReads,
		OutputTokens: s.OutputTokens + o.OutputTokens,
		Dollars:      s.Dollars + o.Dollars,
	}
}

// Tokens is all tokens together.
func (s Spent) Tokens() int64 { return s.InputTokens + s.CacheWrites + s.CacheReads + s.OutputTokens }

// Attempt is one part of a run: number 0 the playbooks, 1 and up the agent.
type Attempt struct {
	Run     RunID     `json:"run"`
	Sandbox SandboxID `json:"sandbox"`
	Number  int       `json:"number"`
	// Outcome is "" while it goes on.
	Outcome Outcome `json:"outcome,omitempty"`
	// Why is what the attempt believed to be wrong; Summary what it did and
	// how that ended. Both are a model's or a playbook's words.
	Why     string    `json:"why,omitempty"`
	Summary string    `json:"summary,omitempty"`
	Model   string    `json:"model,omitempty"`
	Spent   Spent     `json:"spent,omitzero"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
}

// StepKind is what a step is.
type StepKind string

// The kinds of steps.
const (
	StepThought  StepKind = "thought"  // words of the model
	StepTool     StepKind = "tool"     // a tool call and its result
	StepPlaybook StepKind = "playbook" // what a playbook saw and did
	StepVerify   StepKind = "verify"   // the probes that decide
	StepNote     StepKind = "note"     // words of the healer: checkpoint, rollback, retry, wait
)

// StepState is how far a step is.
type StepState string

// The states of a step.
const (
	StepRunning StepState = "running"
	StepOK      StepState = "ok"
	StepFailed  StepState = "failed"
)

// Step is one thing that an attempt did.
type Step struct {
	Run     RunID     `json:"run"`
	Sandbox SandboxID `json:"sandbox"`
	Attempt int       `json:"attempt"`
	Number  int       `json:"number"` // from 1, within the attempt
	Kind    StepKind  `json:"kind"`
	State   StepState `json:"state"`
	// Name is the tool or playbook.
	Name string `json:"name,omitempty"`
	// Argument is the call in one line: a path, a command, a pattern.
	Argument string `json:"argument,omitempty"`
	// Text is what was thought, seen or answered; bounded and redacted.
	Text string `json:"text,omitempty"`
	// Diff is what the step changed in the workspace, as a unified diff.
	Diff string `json:"diff,omitempty"`
	// Evidence is what was known when the attempt began; of the one step that
	// tells it.
	Evidence *Evidence `json:"evidence,omitempty"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended,omitzero"`
}

// HealQuery selects from the healer's history.
type HealQuery struct {
	Sandbox SandboxID `json:"sandbox,omitempty"` // "": the fleet
	Run     RunID     `json:"run,omitempty"`
	Attempt *int      `json:"attempt,omitempty"` // only steps and results of this one
	Since   time.Time `json:"since,omitzero"`
	After   Seq       `json:"after,omitempty"`
	// Limit keeps the newest so many; 0: all.
	Limit int `json:"limit,omitempty"`
}

// HealRecord is one fact of the healer's history: an event of a healer's kind,
// kept after the journal's ring has moved on.
type HealRecord = Event
