package demoapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stopGrace is how long requests under way have when the app is asked to stop.
const stopGrace = 3 * time.Second

// Static serves the files of dir on port until ctx ends. Files whose name
// begins with a dot stay hidden, and no link leads out of dir.
func Static(ctx context.Context, dir string, port int, stdout, stderr io.Writer) int {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed(stderr, fmt.Errorf("cannot serve %s: %w", dir, reason(err)))
	}
	defer root.Close()
	files := http.FileServerFS(visible{root.FS()})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", healthy)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store") // an edit is seen at the next load
		files.ServeHTTP(w, r)
	})
	return failed(stderr, serve(ctx, port, mux, stdout))
}

// visible are files but those whose name begins with a dot, and no listings.
type visible struct{ files fs.FS }

func (v visible) Open(name string) (fs.File, error) {
	for _, part := range strings.Split(name, "/") {
		if strings.HasPrefix(part, ".") && part != "." {
			return nil, fs.ErrNotExist
		}
	}
	f, err := v.files.Open(name)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, err
	case err != nil:
		return nil, fs.ErrNotExist // a link that leads out is nothing to know about
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		if _, err := fs.Stat(v.files, path.Join(name, "index.html")); err != nil {
			f.Close()
			return nil, fs.ErrNotExist
		}
	}
	return f, nil
}

func healthy(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// serve answers requests until ctx ends. It logs them, but those for health,
// which would hide the others.
func serve(ctx context.Context, port int, h http.Handler, stdout io.Writer) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: logged(h, stdout), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	fmt.Fprintf(stdout, "listening on http://%s\n", l.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if server.Shutdown(stopping) != nil {
		server.Close() // whoever is still served has had the grace
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	fmt.Fprintln(stdout, "stopped")
	return nil
}

func logged(h http.Handler, stdout io.Writer) http.Handler {
	var mu sync.Mutex // one line at a time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			h.ServeHTTP(w, r)
			return
		}
		answer := &status{ResponseWriter: w, code: http.StatusOK}
		start := time.Now()
		h.ServeHTTP(answer, r)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(stdout, "%s %q %d %s\n", r.Method, r.URL.Path, answer.code, time.Since(start).Round(time.Microsecond))
	})
}

// status remembers what was answered.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
