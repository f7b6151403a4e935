package server

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"

	"sbx/engine"
)

// terminal attaches a viewer: what is printed are binary frames, what is typed
// too. {"position":…} says where in the log the next binary frame begins; -1:
// it is of a screen, which is nowhere in it. {"resize":{"cols":…,"rows":…}} from
// the client is its window. A role that may change nothing only watches.
func (s *Server) terminal(c *call) error {
	v := c.values()
	how := engine.Attachment{
		From: engine.FromScreen, Live: v.yes("live"), Watch: v.yes("watch") || !c.role.Allows(engine.Operator),
		Size: engine.TermSize{Cols: v.small("cols"), Rows: v.small("rows")},
	}
	if from := v.Get("from"); from != "" && from != "screen" {
		how.From = engine.LogPosition(v.number("from"))
	}
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	t, err := s.Engine.AttachTerminal(ctx, engine.ProcessID(c.r.PathValue("id")), how)
	if err != nil {
		return err
	}
	hangUp := sync.OnceFunc(func() { _ = t.Close() })
	defer hangUp()
	sk := &socket{patient: true}
	sk.receive = func(kind int, r io.Reader) error { return toTerminal(sk, t, kind, r) }
	return s.converse(ctx, c, sk, func(ctx context.Context) error {
		// As for a pipe: whichever ends first sets the other free.
		defer hangUp()
		defer context.AfterFunc(ctx, hangUp)()
		return fromTerminal(sk, t)
	})
}

// fromTerminal sends what is printed, and where it is in the log whenever that
// doesn't follow from what was sent before.
func fromTerminal(sk *socket, t engine.Terminal) error {
	buf := make([]byte, 32<<10)
	known := engine.FromScreen // by the client
	tell := func(at engine.LogPosition) error {
		if at == known {
			return nil
		}
		known = at
		return sk.text([]byte(`{"position":` + strconv.FormatInt(int64(at), 10) + `}`))
	}
	if err := tell(t.Position()); err != nil {
		return err
	}
	for {
		n, err := t.Read(buf)
		at := t.Position()
		if n > 0 {
			if known >= 0 && at != known+engine.LogPosition(n) {
				if err := tell(engine.FromScreen); err != nil {
					return err
				}
			}
			if err := sk.write(websocket.BinaryMessage, buf[:n]); err != nil {
				return err
			}
			if known >= 0 {
				known += engine.LogPosition(n)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tell(at); err != nil {
			return err
		}
	}
}

func toTerminal(sk *socket, t engine.Terminal, kind int, r io.Reader) error {
	var err error
	if kind == websocket.BinaryMessage {
		_, err = io.Copy(t, r)
	} else {
		var m struct {
			Resize *engine.TermSize `json:"resize"`
		}
		if jerr := json.NewDecoder(r).Decode(&m); jerr != nil || m.Resize == nil {
			return engine.Errorf(engine.Invalid, "text on a terminal is %s", strconv.Quote(`{"resize":{"cols":80,"rows":24}}`))
		}
		err = t.Resize(*m.Resize)
	}
	if err == nil {
		return nil
	}
	b, jerr := json.Marshal(map[string]*engine.Error{"inputError": engine.AsError(err)})
	if jerr != nil {
		return jerr
	}
	return sk.text(b)
}

// recording answers with what a terminal printed, a line for each moment.
func (s *Server) recording(c *call) error {
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	return writeLines(s, c, toJSON(s.Engine.Recording(ctx, engine.ProcessID(c.r.PathValue("id")))))
}
