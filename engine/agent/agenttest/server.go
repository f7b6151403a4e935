package agenttest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// maxRequest is how much of a request is read.
const maxRequest = 64 << 20

// Server answers requests to …/v1/messages from a [Script]. It is an
// http.Handler, safe for concurrent use.
type Server struct {
	key string

	mu       sync.Mutex
	turns    []Turn
	requests []Request
}

// Request is one that arrived.
type Request struct {
	Path   string
	Header http.Header
	Body   []byte
	// Text is every string of the body, one per line: what When and Last of a
	// [Turn] look into.
	Text string
	// Last is the same of the last message.
	Last string
}

// NewServer makes a server. It starts nothing: mount it where you like.
func NewServer(s Script) *Server {
	return &Server{key: s.Key, turns: slices.Clone(s.Turns)}
}

// Serve runs a server of s on loopback until the test ends.
func Serve(t interface{ Cleanup(func()) }, s Script) (url string, server *Server) {
	server = NewServer(s)
	h := httptest.NewServer(server)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL, server
}

// Requests are those that arrived so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Left is how many turns were not given yet; those that repeat don't count.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range s.turns {
		if !t.Repeat {
			n++
		}
	}
	return n
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/v1/messages") {
		fail(w, http.StatusNotFound, "not_found_error", "there is nothing at "+req.Method+" "+req.URL.Path)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "request_too_large", "the request is too large")
		return
	}
	r := Request{Path: req.URL.Path, Header: req.Header.Clone(), Body: body}
	r.Text, r.Last = texts(body)
	s.record(r)
	switch {
	case s.key != "" && req.Header.Get("X-Api-Key") != s.key && req.Header.Get("Authorization") != "Bearer "+s.key:
		fail(w, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
	case r.Text == "":
		fail(w, http.StatusBadRequest, "invalid_request_error", "the request is not a JSON object with messages")
	default:
		turn, ok := s.take(r)
		if !ok {
			fail(w, http.StatusBadRequest, "invalid_request_error", "the script has no turn for this request")
			return
		}
		answer(w, req, turn)
	}
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// take gives a request its turn.
func (s *Server) take(r Request) (Turn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.turns {
		if !strings.Contains(r.Text, t.When) || !strings.Contains(r.Last, t.Last) {
			continue
		}
		if !t.Repeat {
			s.turns = slices.Delete(s.turns, i, i+1)
		}
		return t, true
	}
	return Turn{}, false
}

// texts are the strings of a request and of its last message.
func texts(body []byte) (all, last string) {
	var request struct {
		System   any   `json:"system"`
		Messages []any `json:"messages"`
	}
	if json.Unmarshal(body, &request) != nil || len(request.Messages) == 0 {
		return "", ""
	}
	last = gather(request.Messages[len(request.Messages)-1])
	return gather(request.System) + gather(request.Messages), last
}

func gather(v any) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
			b.WriteByte('\n')
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return b.String()
}

// fail answers with an error of the API.
func fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(apiError(kind, message)) // a client that left needs no answer
}

func apiError(kind, message string) []byte {
	b, _ := json.Marshal(map[string]any{ // strings always marshal
		"type": "error", "error": map[string]string{"type": kind, "message": message}, "request_id": "req_script",
	})
	return b
}
