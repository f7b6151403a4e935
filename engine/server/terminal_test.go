package server

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

// TestAViewerByRoleOnlyWatchesATerminal: it sees what an operator types, and
// is told that its own keys go nowhere.
func TestAViewerByRoleOnlyWatchesATerminal(t *testing.T) {
	l := newLive(t, nil)
	p, err := engine.OpenShell(t.Context(), l.fake, engine.OpenTerminal{
		Sandbox: l.sb, Command: engine.Command{Shell: `echo rea""dy; read x; stty size; echo "got $x"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	attach := func(token, query string) *websocket.Conn {
		t.Helper()
		ws := l.open(t, "/v1/processes/"+string(p.ID)+"/terminal?"+query, token)
		if err := ws.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return ws
	}
	sees := func(ws *websocket.Conn, what string) {
		t.Helper()
		for seen := ""; !strings.Contains(seen, what); {
			_, b, err := ws.ReadMessage()
			if err != nil {
				t.Fatalf("waiting for %q: %v after %q", what, err, seen)
			}
			seen += string(b)
		}
	}
	viewer := attach("viewer-token", "from=0&cols=10&rows=5")
	sees(viewer, "ready")
	if err := viewer.WriteMessage(websocket.BinaryMessage, []byte("not me\r")); err != nil {
		t.Fatal(err)
	}
	sees(viewer, `"forbidden"`)
	operator := attach("operator-token", "from=0&cols=40&rows=12")
	sees(operator, "ready")
	if err := operator.WriteMessage(websocket.TextMessage, []byte(`{"resize":{"cols":50,"rows":13}}`)); err != nil {
		t.Fatal(err)
	}
	if err := operator.WriteMessage(websocket.BinaryMessage, []byte("me\r")); err != nil {
		t.Fatal(err)
	}
	sees(viewer, "13 50\r\ngot me")
}
