package local

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"sbx/engine"
)

// throughTerminal is how much goes through the terminal of the test below: less
// under the race detector, which makes a byte cost ten times as much.
func throughTerminal() int {
	if raceEnabled {
		return 5e6
	}
	return 100e6
}

// TestAStalledViewerStallsNobody: one viewer reads nothing, another all that
// it can, and the program is done as if it were alone. Of what is more than a
// log keeps, both get the screen at the end.
func TestAStalledViewerStallsNobody(t *testing.T) {
	e := open(t, config(t, t.TempDir(), ""))
	sb := ready(t, e, engine.CreateSandbox{Name: "one", Origin: source(t), Keep: true})
	p, err := engine.OpenShell(t.Context(), e, engine.OpenTerminal{Sandbox: sb.ID, Command: engine.Command{
		Shell: fmt.Sprintf(`yes "a line of text that is neither long nor short, as most are" | head -c %d > big; echo rea""dy; read x; cat big; echo; echo the end`, throughTerminal()),
	}})
	if err != nil {
		t.Fatal(err)
	}
	attach := func(how engine.Attachment) engine.Terminal {
		t.Helper()
		v, err := e.AttachTerminal(t.Context(), p.ID, how)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Close() })
		return v
	}
	stalled := attach(engine.Attachment{Live: true})
	keen := attach(engine.Attachment{Live: true})
	buf := make([]byte, 64<<10)
	for seen := []byte(nil); !bytes.Contains(seen, []byte("ready")); {
		n, err := keen.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, buf[:n]...)
	}
	if _, err := keen.Write([]byte("\r")); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]engine.Terminal{"keen": keen, "stalled": stalled} {
		var last []byte
		for {
			n, err := v.Read(buf)
			last = append(last, buf[:n]...)
			last = last[max(0, len(last)-4096):]
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("the %s viewer: %v", name, err)
			}
		}
		if !bytes.Contains(last, []byte("the end")) {
			t.Errorf("the %s viewer's last words are %q", name, last)
		}
	}
	every := attach(engine.Attachment{})
	_, err = every.Read(buf)
	if fell := throughTerminal() > 64<<20; fell != (engine.AsCode(err) == engine.Compacted) {
		t.Errorf("who wants every byte is told %v, want that some fell off: %t", err, fell)
	}
}

func TestTheSizesOfATerminalCutWhatItPrinted(t *testing.T) {
	small, large := engine.TermSize{Cols: 20, Rows: 5}, engine.TermSize{Cols: 30, Rows: 6}
	sizes := []sizing{{Size: small}, {At: 104, Size: large}, {At: 104, Size: small}, {At: 108, Size: large}}
	var got []string
	for _, p := range pieces([]byte("0123456789"), 100, sizes) {
		got = append(got, fmt.Sprintf("%d:%s", p.Size.Cols, p.Output))
	}
	if want := []string{"20:0123", "20:4567", "30:89"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := pieces([]byte("89"), 108, sizes); len(got) != 1 || got[0].Size != large {
		t.Errorf("behind the last change it is %+v", got)
	}
}
