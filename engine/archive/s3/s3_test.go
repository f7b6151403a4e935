package s3

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx/engine"
)

// storage is a server that speaks as much of the protocol as a bucket needs,
// and fails as it is told.
type storage struct {
	mu      sync.Mutex
	objects map[string][]byte
	fail    func(w http.ResponseWriter, r *http.Request) bool // answered it
}

func (s *storage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail != nil && fail(w, r) {
		return
	}
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	switch {
	case r.Method == http.MethodPut:
		b, err := body(r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.set(key, b)
		w.Header().Set("ETag", `"x"`)
	case r.Method == http.MethodDelete:
		s.set(key, nil)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Get("list-type") == "2":
		s.list(w, r.URL.Query().Get("prefix"))
	default:
		s.get(w, r, key)
	}
}

// body is a request's, taken out of the chunks that it may be signed in.
func body(r *http.Request) ([]byte, error) {
	if !strings.Contains(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
		return io.ReadAll(r.Body)
	}
	var all []byte
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil || n == 0 {
			return all, err
		}
		chunk := make([]byte, n+2)
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, err
		}
		all = append(all, chunk[:n]...)
	}
}

func (s *storage) set(key string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b == nil {
		delete(s.objects, key)
	} else {
		s.objects[key] = b
	}
}

func (s *storage) failing(fail func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

func (s *storage) get(w http.ResponseWriter, r *http.Request, key string) {
	s.mu.Lock()
	b, ok := s.objects[key]
	s.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
		return
	}
	w.Header().Set("ETag", `"x"`)
	http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(b))
}

func (s *storage) list(w http.ResponseWriter, prefix string) {
	type object struct {
		Key          string
		LastModified string
		Size         int
	}
	var answer struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Name     string
		Contents []object
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer.Name = "bucket"
	for key, b := range s.objects {
		if strings.HasPrefix(key, prefix) {
			answer.Contents = append(answer.Contents, object{key, "2026-01-01T00:00:00.000Z", len(b)})
		}
	}
	_ = xml.NewEncoder(w).Encode(answer) // the client notices
}

func open(t *testing.T, stall time.Duration) (*Bucket, *storage) {
	t.Helper()
	s := &storage{objects: map[string][]byte{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	b, err := Open(Config{
		URL: "s3://bucket/some/prefix?region=us-east-1&endpoint=" + srv.URL, AccessKey: "key", SecretKey: "hunter2-secret", Stall: stall,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, s
}

func TestObjectsGoAndCome(t *testing.T) {
	b, s := open(t, time.Minute)
	dir := t.TempDir()
	want := bytes.Repeat([]byte("0123456789"), 100_000)
	if err := os.WriteFile(filepath.Join(dir, "in"), want, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"sb-a/one", "sb-a/two", "sb-b/one"} {
		if err := b.Put(t.Context(), key, filepath.Join(dir, "in")); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.objects["some/prefix/sb-a/one"]; !bytes.Equal(got, want) {
		t.Fatalf("%d bytes arrived, want %d", len(got), len(want))
	}
	keys, err := b.List(t.Context(), "sb-a/")
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, []string{"sb-a/one", "sb-a/two"}) {
		t.Errorf("the list is %v, %v", keys, err)
	}
	if err := b.Fetch(t.Context(), "sb-a/one", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if err := b.Delete(t.Context(), "sb-a/one"); err != nil {
		t.Error(err)
	}
	if err := b.Fetch(t.Context(), "sb-a/one", filepath.Join(dir, "none")); engine.AsCode(err) != engine.NotFound {
		t.Errorf("what was deleted: %v", err)
	}
}

func TestStorageThatFailsIsUnavailableAndLeavesNothing(t *testing.T) {
	for what, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"down": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		"refusing": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Error><Code>SignatureDoesNotMatch</Code></Error>`)
			return true
		},
		"cut in the middle": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet {
				return false
			}
			w.Header().Set("ETag", `"x"`)
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "only so much")
			panic(http.ErrAbortHandler)
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b, s := open(t, 2*time.Second)
			s.set("some/prefix/sb-a/one", bytes.Repeat([]byte("x"), 1000))
			s.failing(fail)
			out := filepath.Join(t.TempDir(), "out")
			err := b.Fetch(t.Context(), "sb-a/one", out)
			if engine.AsCode(err) != engine.Unavailable || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want unavailable without the secret", err)
			}
			if _, err := os.Stat(out); !os.IsNotExist(err) {
				t.Errorf("a part of it is there: %v", err)
			}
		})
	}
}

func TestAnAddressThatCantBeRightIsRefused(t *testing.T) {
	for _, url := range []string{
		"", "bucket", "http://host/bucket", "s3://", "s3://key:secret@bucket", "s3://bucket?x=y", "s3://bucket?endpoint=ftp://x",
		"s3://bucket?endpoint=https://host/path", "s3://bucket?endpoint=:",
	} {
		if _, err := Open(Config{URL: url}); engine.AsCode(err) != engine.Invalid || engine.Hint(err) == "" {
			t.Errorf("%q: %v, want it refused with a hint", url, err)
		}
	}
}
