package agent

import (
	"context"
	"encoding/json"
)

// A Tool is something a model may call.
type Tool interface {
	Name() string
	Description() string
	// Schema is the JSON schema of its input: an object.
	Schema() json.RawMessage
	// Call does it. The text goes back to the model; an error goes back as a
	// failed result, never up, unless ctx has ended or it is [Fatal].
	Call(ctx context.Context, input json.RawMessage) (string, error)
}
