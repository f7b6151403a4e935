package store

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"sbx/engine"
)

// A job is one caller's Update.
type job struct {
	ctx context.Context
	fn  func(*Tx) error
	// told is sent once: true makes the job's owner the leader, false says that
	// the job is over.
	told     chan bool
	err      error
	panicked any
}

// A queue is the writers that wait.
type queue struct {
	mu      sync.Mutex
	jobs    []*job
	leading bool
	closed  bool
	idle    chan struct{} // closed when the last leader is done; set by close
}

// Update calls fn with the newest moment of the store and commits what it
// wrote, rows and events, or nothing if it fails. When Update returns nil, the
// changes are durable and readers can see them.
//
// Updates run one after another, and those that wait for each other are
// committed together, so fn may run on another caller's goroutine. It must not
// block, nor call Update.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	if s.readOnly {
		return engine.Errorf(engine.Unavailable, "the store is open for reading only")
	}
	if err := ctx.Err(); err != nil {
		return s.mapped(ctx, err)
	}
	j := &job{ctx: ctx, fn: fn, told: make(chan bool, 1)}
	lead, err := s.queue.add(j)
	if err != nil {
		return err
	}
	if !lead {
		lead = s.queue.wait(j)
	}
	if lead {
		s.lead()
	}
	if j.panicked != nil {
		panic(j.panicked)
	}
	return s.mapped(ctx, j.err)
}

// add queues a job and says whether its owner has to lead.
func (q *queue) add(j *job) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, errClosed
	}
	q.jobs = append(q.jobs, j)
	lead, q.leading = !q.leading, true
	return lead, nil
}

// wait returns when the job is over, or when its owner has to lead. A job that
// was not begun leaves the queue when its context ends; one that was, is waited
// for: whether it was committed must not be guessed.
func (q *queue) wait(j *job) (lead bool) {
	select {
	case lead = <-j.told:
		return lead
	case <-j.ctx.Done():
	}
	q.mu.Lock()
	for i, o := range q.jobs {
		if o == j && len(j.told) == 0 {
			q.jobs = append(q.jobs[:i:i], q.jobs[i+1:]...)
			j.err = j.ctx.Err()
			q.mu.Unlock()
			return false
		}
	}
	q.mu.Unlock()
	return <-j.told
}

// take empties the queue.
func (q *queue) take() []*job {
	q.mu.Lock()
	defer q.mu.Unlock()
	jobs := q.jobs
	q.jobs = nil
	return jobs
}

// pass ends a leader's time: the first who waits is the next.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) > 0 {
		q.jobs[0].told <- true
		return
	}
	q.leading = false
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// close refuses further jobs and waits for those that are in.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	var idle chan struct{}
	if q.leading {
		idle = make(chan struct{})
		q.idle = idle
	}
	q.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// errCut is the end of a leader that was not its own: a job's function called
// runtime.Goexit, as a test's FailNow does.
var errCut = errors.New("a change ended the goroutine that ran it")

// lead runs what is queued, its own job among it, and commits it.
func (s *Store) lead() {
	g := &group{conn: s.writer, rows: s.rows, index: s.index, seq: s.tail.end()}
	err := errCut
	defer func() {
		if err != nil {
			g.abandon()
		}
		for _, j := range g.jobs {
			j.err = cmp.Or(j.err, err)
			j.told <- false
		}
		s.queue.pass()
	}()
	if err = g.lead(&s.queue); err == nil {
		s.tail.publish(g.events)
	}
}
