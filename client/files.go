package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"sbx/engine"
)

const mediaBytes = "application/octet-stream"

// Archives are those of a sandbox, or all.
func (c *Client) Archives(ctx context.Context, id engine.SandboxID) ([]engine.Archive, error) {
	return answer[[]engine.Archive](ctx, c, "/v1/archives", given("sandbox", string(id)))
}

// Find yields files and lines. A cut isn't seen.
func (c *Client) Find(ctx context.Context, q engine.FindQuery) iter.Seq2[engine.Found, error] {
	left := q.Limit
	return history(ctx, c, of(q.Sandbox)+"/find", func() url.Values { return findValues(q, left) }, func(f engine.Found) bool {
		if f.FindPosition == q.After {
			return false
		}
		q.After = f.FindPosition
		left = max(0, left-1)
		return true
	})
}

func findValues(q engine.FindQuery, left int) url.Values {
	v := given("dir", q.Dir, "name", q.Name, "text", q.Text, "after", q.After.Name)
	if q.Regexp {
		v.Set("regexp", "true")
	}
	if q.Fold {
		v.Set("fold", "true")
	}
	if q.After.Line != 0 {
		v.Set("afterLine", strconv.Itoa(q.After.Line))
	}
	return paged(v, 0, left)
}

// OpenFile streams a file. After a cut a regular file is read on from where it
// was, if it still has the same version.
func (c *Client) OpenFile(ctx context.Context, id engine.SandboxID, name string, offset int64) (engine.File, io.ReadCloser, error) {
	ctx, cancel := c.bind(ctx)
	r := &content{c: c, ctx: ctx, cancel: cancel, id: id, name: name, at: offset}
	f, err := r.open()
	if err != nil {
		cancel()
		return engine.File{}, nil, err
	}
	r.file = f
	return f, r, nil
}

// content is a file that is being read.
type content struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	id     engine.SandboxID
	name   string
	file   engine.File
	at     int64
	body   io.ReadCloser
	tries  int
}

func (r *content) open() (f engine.File, err error) {
	q := url.Values{"name": {r.name}}
	if r.at != 0 {
		q.Set("offset", strconv.FormatInt(r.at, 10))
	}
	resp, err := r.c.request(r.ctx, http.MethodGet, of(r.id)+"/content", q, http.Header{}, nil)
	if err != nil {
		return f, err
	}
	about, err := base64.StdEncoding.DecodeString(resp.Header.Get("Sbx-File"))
	if err == nil {
		err = json.Unmarshal(about, &f)
	}
	if err != nil {
		resp.Body.Close()
		return f, engine.Errorf(engine.Unavailable, "what answers at %s is no engine: %w", r.c.where, err).WithHint("check the address")
	}
	r.body = resp.Body
	return f, nil
}

// Read reads on, over cuts.
func (r *content) Read(b []byte) (int, error) {
	for {
		n, err := r.body.Read(b)
		r.at += int64(n)
		switch {
		case n > 0:
			r.tries = 0
			return n, nil
		case err == nil || err == io.EOF:
			return n, err
		case r.ctx.Err() != nil:
			return 0, context.Cause(r.ctx)
		case !r.file.Mode.IsRegular() || r.tries >= len(r.c.backoff):
			return 0, r.c.lost(err)
		}
		if err := r.again(); err != nil {
			return 0, err
		}
	}
}

// again opens the file where it was cut.
func (r *content) again() error {
	_ = r.body.Close() // it broke
	r.body = http.NoBody
	for ; r.tries < len(r.c.backoff); r.tries++ {
		if r.c.pause(r.ctx, r.c.delay(r.tries)) != nil {
			return context.Cause(r.ctx)
		}
		f, err := r.open()
		switch {
		case isCut(err):
			continue
		case err != nil:
			return err
		case f.Version != r.file.Version:
			return engine.Errorf(engine.Conflict, "%s changed while it was read", r.name).WithHint("read it again")
		}
		r.tries++
		return nil
	}
	return r.c.lost(errors.New("cut too often"))
}

// Close ends the reading.
func (r *content) Close() error {
	r.cancel()
	return r.body.Close()
}

// Upload sends what r has in one request. It is not tried again: r is gone
// then.
func (c *Client) Upload(ctx context.Context, id engine.SandboxID, r io.Reader) (engine.UploadID, error) {
	ctx, cancel := c.bind(ctx)
	defer cancel()
	source := &source{r: r}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address("http", of(id)+"/uploads", nil), source)
	if err != nil {
		return "", engine.Errorf(engine.Invalid, "make the request: %w", err)
	}
	req.Header.Set("Content-Type", mediaBytes)
	c.sign(req.Header)
	resp, err := c.http.Do(req)
	if source.err != nil {
		if err == nil {
			resp.Body.Close()
		}
		return "", source.err
	}
	if err != nil {
		return "", c.transport(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return "", c.refusal(resp)
	}
	var done struct {
		Upload engine.UploadID `json:"upload"`
	}
	err = c.decode(ctx, resp, &done)
	return done.Upload, err
}

// source remembers how the reading of an upload failed: that is the caller's
// error, not the way's.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
