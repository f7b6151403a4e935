package engine

import (
	"slices"
	"strings"
	"time"
)

// Snapshot is everything at one position of the journal. The law that tests
// hold it to: snapshot(n) with the events n+1…m applied is snapshot(m).
//
// A Snapshot has one owner: Apply changes it in place.
type Snapshot struct {
	Position  Position              `json:"position"`
	About     About                 `json:"about"`
	Sandboxes map[SandboxID]Sandbox `json:"sandboxes"`
	// Processes are the supervised ones and the spawned ones that run.
	Processes map[ProcessID]Process `json:"processes"`
	// Runs are the latest of each sandbox, with their attempts.
	Runs     map[SandboxID]HealRun   `json:"runs"`
	Attempts map[SandboxID][]Attempt `json:"attempts"`
	// Steps are those of the open runs; those of ended ones are in [History].
	Steps map[SandboxID][]Step `json:"steps"`
	// Signals are the latest of each sandbox.
	Signals map[SandboxID]Signal `json:"signals"`
	// Incidents are the open ones; those that ended are in [Triage].
	Incidents map[IncidentID]Incident `json:"incidents"`
	// Sessions are those that have not ended.
	Sessions map[SessionID]Session `json:"sessions"`
}

// About is what an engine says of itself. It is the same for as long as the
// engine runs.
type About struct {
	Version   string    `json:"version"`
	Protocol  int       `json:"protocol"`
	Host      string    `json:"host,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	Isolation Isolation `json:"isolation"`
	// Model is the model that heals; "" if none is configured.
	Model string `json:"model,omitempty"`
	// NoModel is why the healer has no model, in words, when Model is "".
	NoModel string `json:"noModel,omitempty"`
}

// Protocol is the version of the wire that this package speaks.
const Protocol = 1

// Isolation is how sandboxes are confined on an engine's host.
type Isolation struct {
	// Name is the strongest means present: "bubblewrap", "landlock", "none".
	Name string `json:"name"`
	// Confines: what the agent runs is kept from protected paths, from .git and
	// from everything outside the workspace.
	Confines bool `json:"confines"`
	// Facts say what holds and what doesn't; Stronger what would help.
	Facts    []string `json:"facts,omitempty"`
	Stronger []string `json:"stronger,omitempty"`
	// Limits says what holds sandboxes to the limits of their specs.
	Limits Enforcement `json:"limits,omitzero"`
}

// Enforcement is what enforces which limit, in words ("cgroup v2", "rlimit");
// "" is nothing: the limit is only reported.
type Enforcement struct {
	Memory    string `json:"memory,omitempty"`
	CPU       string `json:"cpu,omitempty"`
	Processes string `json:"processes,omitempty"`
	Disk      string `json:"disk,omitempty"`
}

// NewSnapshot returns an empty snapshot at p.
func NewSnapshot(p Position) *Snapshot {
	return &Snapshot{
		Position:  p,
		Sandboxes: map[SandboxID]Sandbox{},
		Processes: map[ProcessID]Process{},
		Runs:      map[SandboxID]HealRun{},
		Attempts:  map[SandboxID][]Attempt{},
		Steps:     map[SandboxID][]Step{},
		Signals:   map[SandboxID]Signal{},
		Incidents: map[IncidentID]Incident{},
		Sessions:  map[SessionID]Session{},
	}
}

// Apply makes the snapshot that of ev's position. Events must come in order;
// one that is already in the snapshot changes nothing.
func (s *Snapshot) Apply(ev Event) {
	if ev.Seq <= s.Position.Seq {
		return
	}
	s.Position.Seq = ev.Seq
	switch b := ev.Body.(type) {
	case SandboxChanged:
		s.Sandboxes[b.Sandbox.ID] = b.Sandbox
	case SandboxRemoved:
		s.remove(b.ID)
	case ProcessChanged:
		s.applyProcess(b.Process)
	case SignalRaised:
		s.applySignal(b.Signal)
	case SignalJudged:
		s.applySignal(b.Signal)
	case HealStarted:
		s.applyRun(b.Run)
	case HealChanged:
		s.applyRun(b.Run)
	case HealFinished:
		s.applyRun(b.Run)
	case HealAttempted:
		s.applyAttempt(b.Attempt)
	case HealStepped:
		s.applyStep(b.Step)
	case IncidentChanged:
		s.applyIncident(b.Incident)
	case SessionChanged:
		s.applySession(b.Session)
	}
}

// Holds reports whether a snapshot has p: a spawned process leaves it when it
// is over.
func (p Process) Holds() bool { return p.Kind == Supervised || !p.State.Over() }

func (s *Snapshot) applyProcess(p Process) {
	if p.Holds() {
		s.Processes[p.ID] = p
	} else {
		delete(s.Processes, p.ID)
	}
}

func (s *Snapshot) applySignal(sig Signal) {
	if sig.ID >= s.Signals[sig.Sandbox].ID {
		s.Signals[sig.Sandbox] = sig
	}
}

func (s *Snapshot) applyRun(r HealRun) {
	if last, ok := s.Runs[r.Sandbox]; !ok || last.ID != r.ID {
		delete(s.Attempts, r.Sandbox)
		delete(s.Steps, r.Sandbox)
	}
	s.Runs[r.Sandbox] = r
	if !r.Open() {
		delete(s.Steps, r.Sandbox)
	}
}

func (s *Snapshot) applyIncident(i Incident) {
	if i.Open() {
		s.Incidents[i.ID] = i
	} else {
		delete(s.Incidents, i.ID)
	}
}

func (s *Snapshot) applyAttempt(a Attempt) {
	if s.Runs[a.Sandbox].ID != a.Run {
		return
	}
	list := s.Attempts[a.Sandbox]
	if i := slices.IndexFunc(list, func(o Attempt) bool { return o.Number == a.Number }); i >= 0 {
		list[i] = a
		return
	}
	s.Attempts[a.Sandbox] = append(list, a)
}

func (s *Snapshot) applyStep(st Step) {
	if r := s.Runs[st.Sandbox]; r.ID != st.Run || !r.Open() {
		return
	}
	list := s.Steps[st.Sandbox]
	for i := len(list) - 1; i >= 0; i-- { // the one that changes is nearly always the last
		if list[i].Attempt == st.Attempt && list[i].Number == st.Number {
			list[i] = st
			return
		}
	}
	s.Steps[st.Sandbox] = append(list, st)
}

func (s *Snapshot) applySession(ss Session) {
	if ss.Open() {
		s.Sessions[ss.ID] = ss
	} else {
		delete(s.Sessions, ss.ID)
	}
}

func (s *Snapshot) remove(id SandboxID) {
	delete(s.Sandboxes, id)
	delete(s.Runs, id)
	delete(s.Attempts, id)
	delete(s.Steps, id)
	delete(s.Signals, id)
	for pid, p := range s.Processes {
		if p.Sandbox == id {
			delete(s.Processes, pid)
		}
	}
}

// Clone returns a snapshot that shares nothing which Apply changes.
func (s *Snapshot) Clone() *Snapshot {
	c := NewSnapshot(s.Position)
	c.About = s.About
	for id, v := range s.Sandboxes {
		c.Sandboxes[id] = v
	}
	for id, v := range s.Processes {
		c.Processes[id] = v
	}
	for id, v := range s.Runs {
		c.Runs[id] = v
	}
	for id, v := range s.Attempts {
		c.Attempts[id] = slices.Clone(v)
	}
	for id, v := range s.Steps {
		c.Steps[id] = slices.Clone(v)
	}
	for id, v := range s.Signals {
		c.Signals[id] = v
	}
	for id, v := range s.Incidents {
		v.Members = slices.Clone(v.Members)
		c.Incidents[id] = v
	}
	for id, v := range s.Sessions {
		c.Sessions[id] = v
	}
	return c
}

// App is the app process of a sandbox; its zero value if it has none yet.
func (s *Snapshot) App(id SandboxID) Process {
	for _, p := range s.Processes {
		if p.Sandbox == id && p.Kind == Supervised && p.Name == AppName {
			return p
		}
	}
	return Process{}
}

// Of are the processes of a sandbox: the app, then by name and id.
func (s *Snapshot) Of(id SandboxID) []Process {
	var list []Process
	for _, p := range s.Processes {
		if p.Sandbox == id {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Process) int {
		if (a.Name == AppName) != (b.Name == AppName) {
			if a.Name == AppName {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name+" "+string(a.ID), b.Name+" "+string(b.ID))
	})
	return list
}

// Find is the sandbox that a person means by ref: an id, a name, or a unique
// prefix of an id.
func (s *Snapshot) Find(ref string) (Sandbox, error) {
	if sb, ok := s.Sandboxes[SandboxID(ref)]; ok {
		return sb, nil
	}
	var hits []Sandbox
	name := PlainName(ref)
	for id, sb := range s.Sandboxes {
		if sb.Name == name {
			return sb, nil
		}
		if len(ref) > len(SandboxPrefix) && strings.HasPrefix(string(id), ref) {
			hits = append(hits, sb)
		}
	}
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return Sandbox{}, Errorf(NotFound, "no sandbox %q", ref).WithHint("see them with: sbx ls")
	}
	return Sandbox{}, Errorf(Invalid, "%q fits %d sandboxes", ref, len(hits)).WithHint("type more of the id, or use the name")
}
