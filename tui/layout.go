package tui

// The smallest screen, and the widths and heights at which it gains parts.
const (
	leastWidth   = 60
	leastHeight  = 15
	wideWidth    = 140
	middleWidth  = 100
	narrowWidth  = 80
	splitHeight  = 30
	inspectWidth = 51
	stripHeight  = 9
)

// rect is a part of the screen.
type rect struct{ x, y, w, h int }

// layout is where everything is. What isn't shown is empty.
type layout struct {
	small                        bool
	bar, head, main, side, strip rect
	status, hints                rect
}

// screen is what the body shows.
type screen int

const (
	onFleet screen = iota
	onSandbox
	onIncidents
)

// arrange lays the screen out. side is the inspector of the fleet and asked for
// by the person; on a wide screen it shows unless it was closed. zoom leaves the
// table alone.
func arrange(w, h int, s screen, side, zoom bool) layout {
	if w < leastWidth || h < leastHeight {
		return layout{small: true}
	}
	l := layout{bar: rect{0, 0, w, 1}, head: rect{0, 1, w, 1}}
	bottom := h - 1
	if h >= splitHeight {
		l.status, l.hints = rect{0, h - 2, w, 1}, rect{0, h - 1, w, 1}
		bottom = h - 2
	} else {
		l.status = rect{0, h - 1, w, 1}
	}
	l.main = rect{0, 2, w, bottom - 2}
	if s != onFleet {
		return l
	}
	if side && w >= wideWidth {
		l.side = rect{w - inspectWidth, 2, inspectWidth, bottom - 2}
		l.main.w = w - inspectWidth - 1 // and a line between them
	}
	if h >= splitHeight && w >= middleWidth && !zoom {
		l.strip = rect{0, bottom - stripHeight, l.main.w, stripHeight}
		l.main.h -= stripHeight
	}
	if side && w < wideWidth && w >= middleWidth {
		below := l.main.h * 2 / 5
		l.main.h -= below
		l.side = rect{0, l.main.y + l.main.h, l.main.w, below}
	}
	return l
}
