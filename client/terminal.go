package client

import (
	"context"
	"iter"

	"sbx/engine"
)

// AttachTerminal attaches a viewer.
func (c *Client) AttachTerminal(context.Context, engine.ProcessID, engine.Attachment) (engine.Terminal, error) {
	return nil, engine.Errorf(engine.Unavailable, "terminals are not there yet")
}

// Recording yields what a terminal printed.
func (c *Client) Recording(context.Context, engine.ProcessID) iter.Seq2[engine.Recorded, error] {
	return func(yield func(engine.Recorded, error) bool) {
		yield(engine.Recorded{}, engine.Errorf(engine.Unavailable, "terminals are not there yet"))
	}
}
