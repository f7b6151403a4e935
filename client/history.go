package client

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"sbx/engine"
)

// Heals yields the healer's records. A cut isn't seen.
func (c *Client) Heals(ctx context.Context, q engine.HealQuery) iter.Seq2[engine.HealRecord, error] {
	return history(ctx, c, "/v1/heals", func() url.Values { return healValues(q) }, func(rec engine.HealRecord) bool {
		if rec.Seq <= q.After {
			return false
		}
		q.After, q.Limit = rec.Seq, 0 // what is left are all after it
		return true
	})
}

// Audit yields the audit log's entries. A cut isn't seen.
func (c *Client) Audit(ctx context.Context, q engine.AuditQuery) iter.Seq2[engine.AuditEntry, error] {
	return history(ctx, c, "/v1/audit", func() url.Values { return auditValues(q) }, func(e engine.AuditEntry) bool {
		if e.ID <= q.After {
			return false
		}
		q.After, q.Limit = e.ID, 0
		return true
	})
}

// history is a stream of lines of JSON that ends. seen is told of each value
// and says whether it is new; the query is made again after a cut.
func history[T any](ctx context.Context, c *Client, path string, query func() url.Values, seen func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		ctx, cancel := c.bind(ctx)
		defer cancel()
		err := c.resume(ctx, len(c.backoff), endsQuery, func(ctx context.Context) (progress bool, err error) {
			return lines(ctx, c, path, query(), func(v T) bool {
				return !seen(v) || yield(v, nil)
			})
		})
		if err != nil && err != errStopped {
			yield(zero, err)
		}
	}
}

// lines is one connection of a history.
func lines[T any](ctx context.Context, c *Client, path string, q url.Values, take func(T) bool) (progress bool, err error) {
	resp, err := c.request(ctx, http.MethodGet, path, q, http.Header{}, nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var raw json.RawMessage
		switch err := dec.Decode(&raw); {
		case err == io.EOF:
			return progress, nil
		case ctx.Err() != nil:
			return progress, context.Cause(ctx)
		case err != nil:
			return progress, c.lost(err)
		}
		if err := c.inBand(raw); err != nil {
			return progress, err
		}
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return progress, c.lost(err)
		}
		progress = true
		if !take(v) {
			return progress, errStopped
		}
	}
}

// inBand is the error that a line is, if it is one.
func (c *Client) inBand(raw json.RawMessage) error {
	if !bytes.HasPrefix(raw, []byte(`{"error":`)) {
		return nil
	}
	var f struct {
		Error *engine.Error `json:"error"`
	}
	if err := json.Unmarshal(raw, &f); err != nil || f.Error == nil {
		return c.lost(err)
	}
	return c.hinted(f.Error)
}

func healValues(q engine.HealQuery) url.Values {
	v := given("sandbox", string(q.Sandbox), "run", string(q.Run), "since", moment(q.Since))
	if q.Attempt != nil {
		v.Set("attempt", strconv.Itoa(*q.Attempt))
	}
	return paged(v, int64(q.After), q.Limit)
}

func auditValues(q engine.AuditQuery) url.Values {
	return paged(given("subject", q.Subject, "since", moment(q.Since)), q.After, q.Limit)
}

func paged(v url.Values, after int64, limit int) url.Values {
	if after != 0 {
		v.Set("after", strconv.FormatInt(after, 10))
	}
	if limit != 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	return v
}
