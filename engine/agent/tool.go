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

// Fatal marks a tool's error as one that ends the run: what the tool stands on
// is gone (the sandbox, the store), and the model can't mend that. The run's
// error is err itself.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}

type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }
