package tui

import (
	"fmt"
	"io"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"sbx/engine"
)

func benchDesk(b *testing.B, n int) *desk {
	d := newDesk(b, seeded(n, time.Now()), func(c *Config) { c.Still = true })
	d.desk()
	d.Update(tea.WindowSizeMsg{Width: 160, Height: 45})
	d.Update(frameMsg{snap: d.fake.snap.Clone(), gauges: &d.fake.sample})
	return d
}

// desk marks a desk as one outside of a bubble.
func (d *desk) desk() { d.still = true }

var benchSizes = []int{100, 1_000, 10_000}

// painter parses a frame and draws it as the renderer does.
type painter struct {
	screen *uv.TerminalRenderer
	buf    uv.ScreenBuffer
}

func newPainter() *painter {
	return &painter{uv.NewTerminalRenderer(io.Discard, []string{"TERM=xterm-256color", "COLORTERM=truecolor"}), uv.NewScreenBuffer(160, 45)}
}

func (p *painter) draw(content string) {
	uv.NewStyledString(content).Draw(p.buf, p.buf.Bounds())
	p.screen.Render(p.buf.RenderBuffer)
	_ = p.screen.Flush() // to nowhere
}

// BenchmarkFloor is what an unchanged frame costs, whoever made it.
func BenchmarkFloor(b *testing.B) {
	d, p := benchDesk(b, 1000), newPainter()
	content := d.View().Content
	for b.Loop() {
		p.draw(content)
	}
}

func BenchmarkFrameWithOneChangedRow(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, p := benchDesk(b, n), newPainter()
			sb := d.w.snap.Sandboxes[seedID(5)]
			seq := d.w.snap.Position.Seq
			b.ReportAllocs()
			for b.Loop() {
				seq++
				sb.Keep = !sb.Keep
				sb.Active = sb.Active.Add(-time.Minute)
				d.Update(frameMsg{events: []engine.Event{{Seq: seq, Time: d.w.now, Body: engine.SandboxChanged{Sandbox: sb}}}})
				p.draw(d.View().Content)
			}
		})
	}
}

func BenchmarkView(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := benchDesk(b, n)
			b.ReportAllocs()
			for b.Loop() {
				_ = d.View()
			}
		})
	}
}

func BenchmarkScroll(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, p := benchDesk(b, n), newPainter()
			down, home := keyOf("j"), keyOf("home")
			b.ReportAllocs()
			for b.Loop() {
				if d.Update(down); d.fleet.place == n-1 {
					d.Update(home)
				}
				p.draw(d.View().Content)
			}
		})
	}
}

func BenchmarkFullRepaint(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := benchDesk(b, n)
			p := newPainter()
			b.ReportAllocs()
			for b.Loop() {
				p.screen.Erase()
				p.draw(d.View().Content)
			}
		})
	}
}

func BenchmarkSnapshotAndOrder(b *testing.B) {
	d := benchDesk(b, 10_000)
	for b.Loop() {
		d.w.take(d.fake.snap)
	}
}
