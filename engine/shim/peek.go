//go:build linux

package shim

import (
	"context"
)

// Peek asks the shim of a directory what it keeps, and changes nothing: one that
// doesn't answer soon is left as it is.
func Peek(ctx context.Context, dir string) ([]State, error) {
	conn, err := dial(dir)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	defer w.close()
	hello, err := greet(ctx, w, 1)
	if err != nil || hello.Boot != BootID() {
		return nil, err
	}
	if err := w.send(request{ID: 1, Do: "list"}); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	for {
		var r reply
		files, err := w.receive(&r, func() int { return r.FDs })
		closeAll(files)
		if err != nil || r.ID == 1 {
			return r.List, err
		}
	}
}
