package engine

import (
	"errors"
	"fmt"
	"time"
)

// A Code says what kind of failure an error is. Codes cross the wire; the
// words of an error are for people and may change.
//
// A Code is itself an error, so that callers write
//
//	if errors.Is(err, engine.NotFound) { … }
//
// on either side of the wire.
type Code string

// The codes of SPEC §9.
const (
	Invalid      Code = "invalid"      // the request can't be right
	NotFound     Code = "not_found"    // no such thing
	Conflict     Code = "conflict"     // somebody or something else has it
	Exhausted    Code = "exhausted"    // no capacity or budget left
	Unauthorized Code = "unauthorized" // no valid token
	Forbidden    Code = "forbidden"    // the token or a rule doesn't allow it
	Unavailable  Code = "unavailable"  // out of reach or not working now
	Compacted    Code = "compacted"    // the position asked for is gone
	Internal     Code = "internal"     // a bug or a broken host
)

func (c Code) Error() string { return string(c) }

// Error is a failure with a code for machines, words for people, and a hint
// that says what to do next.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Hint ends what a person sees: what to do about it.
	Hint string `json:"hint,omitempty"`
	// RetryAfter is when trying again may help; zero if that isn't known.
	RetryAfter Duration `json:"retryAfter,omitempty"`
	// Err is what caused it, on this side of the wire only.
	Err error `json:"-"`
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the code and the cause, so that errors.Is finds both.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// Errorf makes an error with a code. A %w in format is kept as its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
	if cause := (*Error)(nil); errors.As(err, &cause) {
		e.Hint, e.RetryAfter = cause.Hint, cause.RetryAfter
	}
	return e
}

// WithHint sets what to do about the error and returns it.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// After sets when trying again may help and returns the error.
func (e *Error) After(d time.Duration) *Error {
	e.RetryAfter = Duration(d)
	return e
}

// AsError gives any error the shape that crosses the wire: its code if it has
// one, else [Internal]. The words and the hint stay.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		// Words wrapped around it say where it happened; keep them.
		return &Error{Code: e.Code, Message: err.Error(), Hint: e.Hint, RetryAfter: e.RetryAfter, Err: err}
	}
	code := Internal
	_ = errors.As(err, &code) // a bare Code carries itself
	return &Error{Code: code, Message: err.Error(), Err: err}
}

// Hint is what an error says to do next, or "".
func Hint(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}
