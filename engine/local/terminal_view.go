package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"sbx/engine"
	"sbx/engine/screen"
)

// A viewer is one that is attached: a reader of the log at its own place.
type viewer struct {
	e      *Engine
	hub    *hub
	id     engine.ProcessID
	how    engine.Attachment
	ctx    context.Context // of the viewer's whole life: io.Reader has no other place for it
	stop   context.CancelCauseFunc
	unstop func() bool
	once   sync.Once
	input  pipe // its stdin side alone

	reading sync.Mutex // held while reading
	log     io.ReadCloser
	next    engine.LogPosition // in the log
	picture []byte             // what of it is left to be given
	checked engine.LogPosition // where it was last seen not to be behind

	mu      sync.Mutex
	at      engine.LogPosition
	drawing bool // the screen is given next
}

// maxBehind is how far a live viewer may fall behind before it is given the
// screen instead; checkEvery is how often that is looked at.
const (
	maxBehind  = 2 << 20
	checkEvery = 256 << 10
)

// Read gives the screen, if that was asked for, and then what is printed.
func (v *viewer) Read(b []byte) (int, error) {
	v.reading.Lock()
	defer v.reading.Unlock()
	for {
		if err := context.Cause(v.ctx); err != nil {
			return 0, err
		}
		if len(v.picture) > 0 {
			n := copy(b, v.picture)
			if v.picture = v.picture[n:]; len(v.picture) == 0 {
				v.moved(v.next, false)
			}
			return n, nil
		}
		if v.wantsScreen() {
			if err := v.draw(); err != nil {
				return 0, err
			}
			continue
		}
		n, again, err := v.read(b)
		if !again {
			return n, err
		}
	}
}

// read reads the log; again says that the screen is to be given instead.
func (v *viewer) read(b []byte) (n int, again bool, err error) {
	if v.log == nil {
		_, end, err := v.e.logs.Bounds(v.id, engine.Stdout)
		if err != nil {
			return 0, false, err
		}
		v.next = min(v.Position(), end)
		v.checked = v.next - checkEvery // it may begin far behind
		if v.log, err = v.e.logs.Bytes(v.ctx, v.id, engine.Stdout, v.next); err != nil {
			return 0, false, err
		}
	}
	if v.how.Live && v.next-v.checked >= checkEvery {
		v.checked = v.next
		if _, end, err := v.e.logs.Bounds(v.id, engine.Stdout); err == nil && end-v.next > maxBehind {
			v.moved(v.next, true)
			return 0, true, nil
		}
	}
	n, err = v.log.Read(b)
	switch {
	case v.how.Live && engine.AsCode(err) == engine.Compacted:
		v.moved(v.next, true)
		return 0, true, nil
	case err != nil && err != io.EOF && v.ctx.Err() != nil:
		err = context.Cause(v.ctx)
	}
	v.next += engine.LogPosition(n)
	v.moved(v.next, false)
	return n, false, err
}

func (v *viewer) wantsScreen() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.drawing
}

func (v *viewer) moved(at engine.LogPosition, drawing bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at, v.drawing = at, drawing
}

// Position is that of what Read gives next.
func (v *viewer) Position() engine.LogPosition {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drawing || v.at < 0 {
		return engine.FromScreen
	}
	return v.at
}

// draw makes the picture of the screen as it is now, and goes on behind it.
func (v *viewer) draw() error {
	picture, at, err := v.hub.picture(v.ctx)
	if err != nil {
		if cause := context.Cause(v.ctx); cause != nil {
			err = cause
		}
		return err
	}
	if v.log != nil {
		_ = v.log.Close() // only read
	}
	v.log, err = v.e.logs.Bytes(v.ctx, v.id, engine.Stdout, at)
	if err != nil {
		return err
	}
	v.picture, v.next, v.checked = picture, at, at
	v.mu.Lock()
	v.drawing = false
	v.at = engine.FromScreen // until the picture was given
	v.mu.Unlock()
	if len(picture) == 0 {
		v.moved(at, false)
	}
	return nil
}

// Write types, as soon as the program runs.
func (v *viewer) Write(b []byte) (int, error) {
	if v.how.Watch {
		return 0, engine.Errorf(engine.Forbidden, "this viewer only watches")
	}
	p := &v.input
	p.mu.Lock()
	p.e, p.id, p.ctx = v.e, v.id, v.ctx
	p.mu.Unlock()
	return p.Write(b)
}

// Resize says how large the viewer's window is.
func (v *viewer) Resize(size engine.TermSize) error {
	if err := size.Check(); err != nil {
		return err
	}
	if !v.how.Watch {
		v.hub.resize(v, size)
	}
	return nil
}

// Close detaches.
func (v *viewer) Close() error {
	v.once.Do(func() {
		v.unstop()
		v.stop(io.ErrClosedPipe)
		v.hub.leave(v)
		v.reading.Lock()
		defer v.reading.Unlock()
		if v.log != nil {
			_ = v.log.Close() // only read
		}
	})
	return nil
}

// picture is what shows the screen as it is now, and where the log goes on.
func (h *hub) picture(ctx context.Context) ([]byte, engine.LogPosition, error) {
	h.drawing.Lock()
	defer h.drawing.Unlock()
	for try := 0; ; try++ {
		b, at, err := h.drawn(ctx)
		if engine.AsCode(err) == engine.Compacted && try < 5 {
			continue // it fell off while it was being read: begin further on
		}
		return b, at, err
	}
}

func (h *hub) drawn(ctx context.Context) ([]byte, engine.LogPosition, error) {
	first, end, err := h.e.logs.Bounds(h.id, engine.Stdout)
	if err != nil {
		return nil, 0, err
	}
	h.track.Skip(int64(first))
	from := h.track.Position()
	if err := h.span(ctx, from, int64(end), func(b []byte) { h.track.Write(b) }); err != nil {
		return nil, 0, err
	}
	if end == 0 {
		return nil, 0, nil
	}
	mark := h.track.Begin()
	p, err := h.e.ProcessByID(ctx, h.id)
	if err != nil {
		return nil, 0, err
	}
	sizes, err := h.e.sizings(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	var shown []byte
	if err := h.span(ctx, mark.Position, int64(end), func(b []byte) { shown = append(shown, b...) }); err != nil {
		return nil, 0, err
	}
	return screen.Picture(mark.Modes, h.track.Modes(), pieces(shown, mark.Position, sizes)), end, nil
}

// span hands over what was printed from one position to another.
func (h *hub) span(ctx context.Context, from, to int64, use func([]byte)) error {
	if from >= to {
		return nil
	}
	r, err := h.e.logs.Bytes(ctx, h.id, engine.Stdout, engine.LogPosition(from))
	if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, 64<<10)
	for from < to {
		n, err := r.Read(buf[:min(int64(len(buf)), to-from)])
		use(buf[:n])
		from += int64(n)
		if errors.Is(err, io.EOF) && from < to {
			return fmt.Errorf("the log of %s ended before its end", h.id)
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	return nil
}

// pieces cuts what was printed from a position on where the size changed.
func pieces(b []byte, from int64, sizes []sizing) []screen.Piece {
	var list []screen.Piece
	size := sizes[0].Size
	for _, s := range sizes[1:] {
		at := int64(s.At) - from
		if at > 0 && at <= int64(len(b)) {
			list = append(list, screen.Piece{Size: size, Output: b[:at]})
			b, from = b[at:], int64(s.At)
		}
		size = s.Size
	}
	return append(list, screen.Piece{Size: size, Output: b})
}
