// Package s3 is object storage that speaks Amazon's protocol, as a place for
// archives. It is the one package that imports a client of it.
//
// The one rule: a call ends. One in which nothing moves for a while is given
// up, and the caller tries again when it likes.
package s3

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"sbx/engine"
)

// Config says where, and as whom.
type Config struct {
	// URL is s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION. Without
	// endpoint it is Amazon's.
	URL string
	// AccessKey and SecretKey; both "": nobody, as for a public bucket.
	AccessKey, SecretKey string
	// Stall is how long nothing may move; 0: a minute.
	Stall time.Duration
}

// Bucket is a place for objects under a prefix.
type Bucket struct {
	client         *minio.Client
	bucket, prefix string
	stall          time.Duration
}

// partSize is how much goes in one request; one that is cut is sent again.
const partSize = 16 << 20

// Open checks the configuration. It asks nobody anything: storage that is away
// now may be there when it is needed.
func Open(cfg Config) (*Bucket, error) {
	wrong := func(why string) error {
		return engine.Errorf(engine.Invalid, "archive.url: %s", why).
			WithHint("the form is s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION")
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil {
		return nil, wrong("it is no s3 address (credentials are settings of their own)")
	}
	q := u.Query()
	for name := range q {
		if name != "endpoint" && name != "region" {
			return nil, wrong("it has an unknown parameter")
		}
	}
	at, err := url.Parse("https://s3.amazonaws.com")
	if text := q.Get("endpoint"); text != "" {
		at, err = url.Parse(text)
	}
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.Path != "" && at.Path != "/" {
		return nil, wrong("its endpoint is no http address")
	}
	creds := credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, "")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if cfg.Stall <= 0 {
		cfg.Stall = time.Minute
	}
	transport.ResponseHeaderTimeout = cfg.Stall
	client, err := minio.New(at.Host, &minio.Options{
		Creds: creds, Secure: at.Scheme == "https", Region: q.Get("region"), BucketLookup: minio.BucketLookupAuto,
		Transport: shortGiveUp{transport}, MaxRetries: 3,
	})
	if err != nil {
		return nil, wrong(err.Error())
	}
	return &Bucket{client: client, bucket: u.Host, prefix: strings.Trim(u.Path, "/"), stall: cfg.Stall}, nil
}

func (b *Bucket) key(key string) string { return path.Join(b.prefix, key) }

// Put stores a file: whole, or not at all.
func (b *Bucket) Put(ctx context.Context, key, file string) error {
	w := b.watch(ctx)
	defer w.stop()
	b.sweep(w, key, file)
	_, err := b.client.FPutObject(w.ctx, b.bucket, b.key(key), file, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partSize, NumThreads: 2, Progress: w,
	})
	return w.fault("upload", err)
}

// Fetch writes an object to a new file. It is on disk when Fetch returns.
func (b *Bucket) Fetch(ctx context.Context, key, file string) error {
	w := b.watch(ctx)
	defer w.stop()
	obj, err := b.client.GetObject(w.ctx, b.bucket, b.key(key), minio.GetObjectOptions{})
	if err != nil {
		return w.fault("download", err)
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return w.fault("download", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	in := &watched{Reader: obj, w: w}
	n, err := io.Copy(f, in)
	switch {
	case in.err != nil:
		err = w.fault("download", in.err)
	case err == nil && n != st.Size:
		err = engine.Errorf(engine.Unavailable, "download: the connection was cut after %d of %d bytes", n, st.Size)
	case err == nil:
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(file) // the caller's next try begins with that
	}
	return err
}

// List are the keys that begin with prefix.
func (b *Bucket) List(ctx context.Context, prefix string) ([]string, error) {
	w := b.watch(ctx)
	defer w.stop()
	whole := b.key(prefix)
	if strings.HasSuffix(prefix, "/") {
		whole += "/"
	}
	var keys []string
	for obj := range b.client.ListObjectsIter(w.ctx, b.bucket, minio.ListObjectsOptions{Prefix: whole, Recursive: true}) {
		if obj.Err != nil {
			return nil, w.fault("list", obj.Err)
		}
		w.moved()
		keys = append(keys, strings.TrimPrefix(strings.TrimPrefix(obj.Key, b.prefix), "/"))
	}
	return keys, w.fault("list", w.ctx.Err())
}

// Delete deletes an object; one that is gone is fine.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	w := b.watch(ctx)
	defer w.stop()
	return w.fault("delete", b.client.RemoveObject(w.ctx, b.bucket, b.key(key), minio.RemoveObjectOptions{}))
}

// watch ends a call in which nothing moves.
func (b *Bucket) watch(ctx context.Context) *watch {
	w := &watch{outer: ctx, patience: b.stall}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.patience, func() { w.cancel(errStalled) })
	return w
}

var errStalled = errors.New("nothing moved for too long")

type watch struct {
	outer, ctx context.Context
	cancel     context.CancelCauseFunc
	timer      *time.Timer
	patience   time.Duration
}

func (w *watch) moved() { w.timer.Reset(w.patience) }

// Read is told what was sent.
func (w *watch) Read(b []byte) (int, error) {
	w.moved()
	return len(b), nil
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// fault gives an error of the client its code, in words without secrets.
func (w *watch) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	if w.outer.Err() != nil {
		return context.Cause(w.outer)
	}
	if errors.Is(context.Cause(w.ctx), errStalled) {
		err = errStalled
	}
	answer := minio.ToErrorResponse(err)
	switch {
	case answer.Code == minio.NoSuchKey || answer.StatusCode == http.StatusNotFound && answer.Code != minio.NoSuchBucket:
		return engine.Errorf(engine.NotFound, "%s: there is no such object", doing)
	case answer.Code == minio.NoSuchBucket:
		return engine.Errorf(engine.Unavailable, "%s: there is no such bucket", doing).WithHint("make it, or correct archive.url")
	case answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized:
		return engine.Errorf(engine.Unavailable, "%s: object storage refused the credentials (%s)", doing, answer.Code).
			WithHint("see archive.access_key and archive.secret_key in: sbx config")
	}
	return engine.Errorf(engine.Unavailable, "%s: object storage: %w", doing, err)
}

// watched is an answer that is being read.
type watched struct {
	io.Reader
	w   *watch
	err error
}

func (r *watched) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.w.moved()
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
