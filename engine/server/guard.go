package server

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"sbx/engine"
)

// localHosts are the names that a request to this machine has.
var localHosts = []string{"localhost", "127.0.0.1", "::1"}

// guard judges the headers of every request, upgrades included, before
// anything else is done for it. What it keeps out is what a web page can make
// a browser send: a name that was bound to this address (Host), a request from
// another site (Origin), a form (content type).
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set(requestIDHeader, engine.NewID("rq-"))
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if err := s.judgeHeaders(r); err != nil {
			c := &call{w: w, r: r, id: h.Get(requestIDHeader)}
			c.fail(err)
			s.logCall(c, err, 0)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) judgeHeaders(r *http.Request) error {
	switch p := r.URL.EscapedPath(); {
	case !s.hostAllowed(r.Host):
		return engine.Errorf(engine.Forbidden, "requests to the host %q aren't answered", r.Host).
			WithHint("use localhost, or name the host in the engine's configuration")
	case !originAllowed(r):
		return engine.Errorf(engine.Forbidden, "requests from another origin aren't answered")
	case r.ContentLength != 0 && !isJSON(r.Header.Get("Content-Type")) && !(isUpload(p) && r.Header.Get("Content-Type") == mediaBytes):
		return engine.Errorf(engine.Forbidden, "a body must be JSON").
			WithHint("send the header Content-Type: application/json")
	case r.URL.IsAbs() || p != "/" && p != path.Clean(p):
		// The mux would answer with a redirect, before the door.
		return engine.Errorf(engine.Invalid, "the path isn't a clean one")
	}
	return nil
}

// hostAllowed reports whether a Host header is in the list: the local names
// with any port, and the configured ones, with any port if they name none.
func (s *Server) hostAllowed(host string) bool {
	host = strings.ToLower(host)
	name, port := splitHost(host)
	if port != "" && strings.Trim(port, "0123456789") != "" {
		return false
	}
	if slices.Contains(localHosts, name) {
		return true
	}
	return slices.ContainsFunc(s.Hosts, func(h string) bool {
		h = strings.ToLower(h)
		if hn, hp := splitHost(h); hp == "" {
			return name != "" && hn == name
		}
		return h == host
	})
}

// splitHost is a name without brackets, and a port or "".
func splitHost(host string) (name, port string) {
	if n, p, err := net.SplitHostPort(host); err == nil {
		return n, p
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1], ""
	}
	return host, ""
}

// originAllowed reports whether the request comes from no web page, or from
// one of this very server (whose host the list already allowed).
func originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 {
		return false
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	same := url.URL{Scheme: scheme, Host: r.Host}
	return strings.EqualFold(u.String(), same.String())
}

// isUpload reports whether a path takes bytes: no form can send that type of
// content either.
func isUpload(path string) bool {
	return strings.HasPrefix(path, "/v1/sandboxes/") && strings.HasSuffix(path, "/uploads")
}

func isJSON(contentType string) bool {
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
