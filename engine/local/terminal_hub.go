package local

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"

	"sbx/engine"
	"sbx/engine/screen"
	"sbx/store"
)

// hubs are the terminals that somebody is attached to.
type hubs struct {
	wg sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[engine.ProcessID]*hub
}

// A hub is where the viewers of a terminal meet: what they say of its size is
// counted here, and told to the program and the row by its goroutine. What the
// terminal prints doesn't come by: each viewer reads the log for itself.
type hub struct {
	e       *Engine
	id      engine.ProcessID
	sandbox engine.SandboxID
	ctx     context.Context // ends with the engine
	end     context.CancelFunc
	kick    chan struct{} // one token: something about the viewers has changed

	mu      sync.Mutex
	viewers map[*viewer]engine.TermSize
	joining int // viewers that are on their way in; guarded by hubs.mu

	drawing sync.Mutex // held while the track is being used
	track   screen.Track
}

// join finds the hub of a terminal, or makes it. The caller puts a viewer.
func (t *hubs) join(e *Engine, p engine.Process) (*hub, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, engine.Errorf(engine.Unavailable, "the engine is stopping")
	}
	h := t.open[p.ID]
	if h == nil {
		h = &hub{e: e, id: p.ID, sandbox: p.Sandbox, kick: make(chan struct{}, 1), viewers: map[*viewer]engine.TermSize{}}
		h.ctx, h.end = context.WithCancel(context.Background())
		if t.open == nil {
			t.open = map[engine.ProcessID]*hub{}
		}
		t.open[p.ID] = h
		t.wg.Go(func() { h.run(t) })
	}
	h.joining++
	return h, nil
}

// close detaches everybody.
func (t *hubs) close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	for _, h := range t.open {
		h.end()
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hub) put(v *viewer, size engine.TermSize) {
	h.mu.Lock()
	h.viewers[v] = size
	h.mu.Unlock()
	t := &h.e.terminals
	t.mu.Lock()
	h.joining--
	t.mu.Unlock()
	h.stir()
}

// resize is a viewer's word of its window; one that has left says nothing.
func (h *hub) resize(v *viewer, size engine.TermSize) {
	h.mu.Lock()
	if _, in := h.viewers[v]; in {
		h.viewers[v] = size
	}
	h.mu.Unlock()
	h.stir()
}

func (h *hub) leave(v *viewer) {
	h.mu.Lock()
	delete(h.viewers, v)
	h.mu.Unlock()
	h.stir()
}

func (h *hub) stir() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// told is what the viewers say: how many they are, and the smallest window.
func (h *hub) told() (n int, size engine.TermSize) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.viewers {
		size = size.Least(s)
	}
	return len(h.viewers), size
}

// usedEvery is how often a terminal with a viewer counts as used.
const usedEvery = time.Minute

// run tells what the viewers say, until the last has left.
func (h *hub) run(t *hubs) {
	defer h.end()
	tick := time.NewTicker(usedEvery)
	defer tick.Stop()
	for {
		select {
		case <-h.kick:
		case <-tick.C:
		case <-h.ctx.Done():
			h.mu.Lock()
			clear(h.viewers)
			h.mu.Unlock()
		}
		n, size := h.told()
		if n > 0 && !size.Zero() {
			h.apply(size)
		}
		// Also when the engine leaves: the row must not say that somebody is there.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), noteWithin)
		if err := h.note(ctx, n); err != nil && engine.AsCode(err) != engine.NotFound {
			h.e.cfg.Log.Warn("terminal: writing its row", "process", h.id, "err", err)
		}
		cancel()
		if n == 0 && h.retire(t) {
			return
		}
	}
}

const noteWithin = 5 * time.Second

// retire takes the hub out, unless somebody came meanwhile.
func (h *hub) retire(t *hubs) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := h.told()
	if h.ctx.Err() == nil && (n > 0 || h.joining > 0) {
		return false
	}
	delete(t.open, h.id)
	return true
}

// apply gives the terminal its size, as soon as its program runs.
func (h *hub) apply(size engine.TermSize) {
	p, err := h.e.started(h.ctx, h.id)
	if err != nil || p.State.Over() || p.Terminal == nil || p.Terminal.Size == size {
		return // nothing to be told, or nobody
	}
	ctx, cancel := context.WithTimeout(h.ctx, noteWithin)
	defer cancel()
	if err := h.e.procs.Resize(ctx, h.id, size); err != nil {
		if engine.AsCode(err) != engine.Conflict {
			h.e.cfg.Log.Warn("terminal: resizing it", "process", h.id, "err", err)
		}
		return
	}
	if err := h.e.sized(p, size); err != nil {
		h.e.cfg.Log.Warn("terminal: recording its size", "process", h.id, "err", err)
	}
	err = h.e.store.Update(ctx, func(tx *store.Tx) error {
		return changeTerminal(tx, h.id, func(t *engine.TerminalState) { t.Size = size })
	})
	if err != nil && engine.AsCode(err) != engine.NotFound {
		h.e.cfg.Log.Warn("terminal: writing its row", "process", h.id, "err", err)
	}
}

// note writes down how many viewers there are, and that the sandbox is used.
func (h *hub) note(ctx context.Context, viewers int) error {
	return h.e.store.Update(ctx, func(tx *store.Tx) error {
		err := changeTerminal(tx, h.id, func(t *engine.TerminalState) {
			t.Viewers, t.Used = viewers, tx.Now
			if title := h.title(); title != "" {
				t.Title = title
			}
		})
		if err != nil {
			return err
		}
		sb, err := tx.Sandbox(h.sandbox)
		if err != nil {
			return err
		}
		sb.Active = tx.Now
		return tx.PutSandbox(&sb)
	})
}

// title is what the program called its window when it was last drawn.
func (h *hub) title() string {
	if !h.drawing.TryLock() {
		return "" // it is being drawn now
	}
	defer h.drawing.Unlock()
	return h.track.Title()
}

// changeTerminal changes what a row says of its terminal.
func changeTerminal(tx *store.Tx, id engine.ProcessID, fn func(*engine.TerminalState)) error {
	p, err := tx.Process(id)
	if err != nil || p.Terminal == nil {
		return err
	}
	t := *p.Terminal
	fn(&t)
	p.Terminal = &t
	return tx.PutProcess(p)
}

// leftAlone corrects the rows of terminals whose viewers went with an engine.
func leftAlone(tx *store.Tx) error {
	live, err := tx.LiveProcesses()
	for _, p := range live {
		if p.Terminal != nil && p.Terminal.Viewers > 0 {
			if err := changeTerminal(tx, p.ID, func(t *engine.TerminalState) { t.Viewers = 0 }); err != nil {
				return err
			}
		}
	}
	return err
}

// started is a process as soon as it isn't starting any more.
func (e *Engine) started(ctx context.Context, id engine.ProcessID) (engine.Process, error) {
	for {
		pos, err := e.store.Position(ctx) // before the read, so that no change slips between
		if err != nil {
			return engine.Process{}, err
		}
		p, err := e.ProcessByID(ctx, id)
		if err != nil || p.State != engine.ProcessStarting {
			return p, err
		}
		if err := e.untilStarted(ctx, id, pos.Seq); err != nil {
			return p, err
		}
	}
}

// sizing is a line of a terminal's second stream, which its program has no use
// for: from the position At on, the terminal had this size.
type sizing struct {
	At   engine.LogPosition `json:"at"`
	Time time.Time          `json:"time"`
	Size engine.TermSize    `json:"size"`
}

// sized writes down a size that a terminal has from now on; p has the one
// before. The first change writes down both.
func (e *Engine) sized(p engine.Process, size engine.TermSize) error {
	_, end, err := e.logs.Bounds(p.ID, engine.Stdout)
	if err != nil {
		return err
	}
	list := []sizing{{At: end, Time: time.Now().UTC().Truncate(time.Millisecond), Size: size}}
	w, err := e.logs.Writer(p.ID, engine.Stderr, false)
	if err != nil {
		return err
	}
	if w.Position() == 0 {
		list = append([]sizing{{Time: p.Started, Size: p.Terminal.Size}}, list...)
	}
	enc := json.NewEncoder(w)
	for _, s := range list {
		if err == nil {
			err = enc.Encode(s)
		}
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

// sizings are the sizes that a terminal had, in order; the first from the
// beginning on. The process knows the last one.
func (e *Engine) sizings(ctx context.Context, p engine.Process) ([]sizing, error) {
	_, end, err := e.logs.Bounds(p.ID, engine.Stderr)
	if err != nil {
		return nil, err
	}
	var list []sizing
	if end > 0 {
		r, err := e.logs.Bytes(ctx, p.ID, engine.Stderr, 0)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		for dec := json.NewDecoder(io.LimitReader(r, int64(end))); ; {
			var s sizing
			if dec.Decode(&s) != nil { // the end, or a line that was cut by a full disk
				break
			}
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b sizing) int { return int(a.At - b.At) })
	if len(list) == 0 {
		size := engine.DefaultTermSize
		if p.Terminal != nil {
			size = p.Terminal.Size
		}
		list = append(list, sizing{Time: p.Started, Size: size})
	}
	return list, nil
}
