package s3

import (
	"context"
	"io"
	"net/http"
	"os"
	"path"
	"time"
)

// sweep deletes the parts that uploads beside key have left which were cut with
// the engine that made them: they are in no list, and are paid for. Nobody else
// uploads there.
func (b *Bucket) sweep(w *watch, key, file string) {
	if st, err := os.Stat(file); err != nil || st.Size() <= partSize {
		return // it goes in one; the next large one sweeps
	}
	for left := range b.client.ListIncompleteUploads(w.ctx, b.bucket, path.Dir(b.key(key))+"/", true) {
		if left.Err != nil {
			return // not allowed, or away: the upload will say so if it matters
		}
		_ = b.client.RemoveIncompleteUpload(w.ctx, b.bucket, left.Key) // as well as can be
		w.moved()
	}
}

// giveUpWithin bounds the request that deletes the parts of a failed upload. The
// client makes it three times, and all of that is within what an engine that
// leaves has for its uploads.
const giveUpWithin = 400 * time.Millisecond

// shortGiveUp bounds what the client sends after its context has ended: an
// engine that leaves would wait a minute for storage that is silent. What stays
// is swept by the next upload.
type shortGiveUp struct{ http.RoundTripper }

// RoundTrip sends a request.
func (s shortGiveUp) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodDelete || !r.URL.Query().Has("uploadId") {
		return s.RoundTripper.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), giveUpWithin)
	resp, err := s.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = bounded{resp.Body, cancel}
	return resp, nil
}

// bounded ends its request's bound when it is closed.
type bounded struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes it.
func (b bounded) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
