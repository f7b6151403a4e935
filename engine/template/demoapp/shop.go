package demoapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// config is what config.json says.
type config struct {
	Name  string   `json:"name"`
	Parts []string `json:"parts"` // files of parts/, in the order of the page
}

// Main serves the shop of dir on port until ctx ends, and returns the exit
// code: 1 when its config can't be read, a part is missing, or the port is
// held, after saying so.
func Main(ctx context.Context, dir string, port int, stdout, stderr io.Writer) int {
	shop, err := open(dir)
	if err != nil {
		return failed(stderr, err)
	}
	defer shop.root.Close()
	// A page that is half there is no shop: better not to start.
	if _, err := shop.page(); err != nil {
		return failed(stderr, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", healthy)
	mux.HandleFunc("GET /{$}", shop.show)
	return failed(stderr, serve(ctx, port, mux, stdout))
}

// shop is a workspace with a config and parts. Nothing outside of it is read.
type shop struct{ root *os.Root }

func open(dir string) (*shop, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &shop{root}, nil
}

// show reads everything anew, so that an edit is seen at once.
func (s *shop) show(w http.ResponseWriter, _ *http.Request) {
	page, err := s.page()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(page) // a visitor who left needs no page
}

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{{.Name}}</title>
<h1>{{.Name}}</h1>
{{range .Parts}}<pre>{{.}}</pre>
{{end}}</html>
`))

func (s *shop) page() ([]byte, error) {
	c, err := s.config()
	if err != nil {
		return nil, err
	}
	texts := config{Name: c.Name}
	for _, name := range c.Parts {
		text, err := s.part(name)
		if err != nil {
			return nil, err
		}
		texts.Parts = append(texts.Parts, text)
	}
	var b bytes.Buffer
	err = pageTemplate.Execute(&b, texts)
	return b.Bytes(), err
}

const configFile = "config.json"

func (s *shop) config() (config, error) {
	var c config
	data, err := s.root.ReadFile(configFile)
	if err != nil {
		return c, fmt.Errorf("cannot read %s: %w", configFile, reason(err))
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("%s:%d: %w", configFile, lineOf(data, err), err)
	}
	return c, nil
}

// lineOf is the line of a JSON error, from 1.
func lineOf(data []byte, err error) int {
	var (
		syntax *json.SyntaxError
		kind   *json.UnmarshalTypeError
		offset int64
	)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	offset = min(max(0, offset), int64(len(data)))
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

func (s *shop) part(name string) (string, error) {
	file := partsDir + "/" + name
	data, err := s.root.ReadFile(filepath.FromSlash(file))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("cannot find part %s", file)
	case err != nil:
		return "", fmt.Errorf("cannot read part %s: %w", file, reason(err))
	}
	return strings.TrimSpace(string(data)), nil
}

// reason is an error of a file without the name that is said already.
func reason(err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
