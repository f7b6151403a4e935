package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"sbx/engine"
)

// fileHeader carries what is known of the file whose content an answer is: an
// engine.File as JSON in base64, for a name may be anything.
const fileHeader = "Sbx-File"

const mediaBytes = "application/octet-stream"

// Uploaded names what was brought.
type Uploaded struct {
	Upload engine.UploadID `json:"upload"`
}

// fileRoutes are the reads of files that aren't one answer of JSON.
func fileRoutes() []route {
	return []route{
		get("/v1/sandboxes/{id}/content", "a file of any size as it is; of a directory a tar; the header "+fileHeader+" describes it", nil, (*Server).content,
			param{"name", "string", "in the workspace"}, param{"offset", "integer", "where to begin"}).as(mediaBytes),
		get("/v1/sandboxes/{id}/find", "files by name and lines by text, in the order of their paths", engine.Found{}, (*Server).find, findParams()...).as(mediaLines),
		get("/v1/archives", "the archives of a sandbox or of all", []engine.Archive{}, (*Server).archives,
			param{"sandbox", "string", "an id; absent: all"}),
		{
			method: http.MethodPost, path: "/v1/sandboxes/{id}/uploads", least: engine.Operator, out: Uploaded{},
			words: "bring a file, or a tar, as the body (" + mediaBytes + "), to be put at its place by file.place", handle: (*Server).upload,
		},
	}
}

func findParams() []param {
	return []param{
		{"dir", "string", "where to look; absent: everywhere"},
		{"name", "string", "a pattern like *.go, or a part of the path"},
		{"text", "string", "in lines; absent: files are found"},
		{"regexp", "boolean", "the text is a regular expression"},
		{"fold", "boolean", "case doesn't count"},
		{"after", "string", "the path of what was found last"},
		{"afterLine", "integer", "its line"},
		{"limit", "integer", "at most so many"},
	}
}

func (s *Server) find(c *call) error {
	v := c.values()
	q := engine.FindQuery{
		Sandbox: c.sandbox(), Dir: v.Get("dir"), Name: v.Get("name"), Text: v.Get("text"),
		Regexp: v.yes("regexp"), Fold: v.yes("fold"), Limit: v.small("limit"),
		After: engine.FindPosition{Name: v.Get("after"), Line: v.small("afterLine")},
	}
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	return writeLines(s, c, toJSON(s.Engine.Find(ctx, q)))
}

func (s *Server) archives(c *call) error {
	list, err := s.Engine.Archives(c.r.Context(), engine.SandboxID(c.r.URL.Query().Get("sandbox")))
	if err != nil {
		return err
	}
	return c.reply(orEmpty(list))
}

// content answers with the bytes of a file. What breaks on the way breaks the
// connection: the client sees that it hasn't all of it.
func (s *Server) content(c *call) error {
	v := c.values()
	offset := v.number("offset")
	if v.err != nil {
		return v.err
	}
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	f, r, err := s.Engine.OpenFile(ctx, c.sandbox(), v.Get("name"), offset)
	if err != nil {
		return err
	}
	defer r.Close()
	c.takeTime()
	about, err := json.Marshal(f)
	if err != nil {
		return engine.Errorf(engine.Internal, "encode the file: %w", err)
	}
	h := c.w.Header()
	h.Set("Content-Type", mediaBytes)
	h.Set(fileHeader, base64.StdEncoding.EncodeToString(about))
	if f.Mode.IsRegular() {
		h.Set("Content-Length", strconv.FormatInt(max(0, f.Size-offset), 10))
	}
	c.w.WriteHeader(http.StatusOK)
	w := &paced{c: c, patience: s.pace.orDefault().write}
	if _, err := io.CopyBuffer(w, struct{ io.Reader }{r}, make([]byte, 256<<10)); err != nil {
		panic(http.ErrAbortHandler) // the one way to say that this is not all
	}
	return nil
}

// paced writes to a connection, each write with a deadline of its own.
type paced struct {
	c        *call
	patience time.Duration
}

func (p *paced) Write(b []byte) (int, error) {
	// Some writers of tests have no deadlines; then the test is the deadline.
	_ = http.NewResponseController(p.c.w).SetWriteDeadline(time.Now().Add(p.patience))
	return p.c.w.Write(b)
}

// upload takes a body of any size, as long as it comes.
func (s *Server) upload(c *call) error {
	ctx, leave, err := s.stream(c)
	if err != nil {
		return err
	}
	defer leave()
	body := &patient{c: c, patience: s.pace.orDefault().write}
	id, err := s.Engine.Upload(ctx, c.sandbox(), body)
	c.takeTime()
	if body.err != nil { // whatever the engine made of it, it began here
		return engine.Errorf(engine.Invalid, "read the upload: %w", body.err)
	}
	if err != nil {
		return err
	}
	return c.reply(Uploaded{id})
}

// patient reads a body, each read with a deadline of its own.
type patient struct {
	c        *call
	patience time.Duration
	err      error
}

func (p *patient) Read(b []byte) (int, error) {
	// Some writers of tests have no deadlines; then the test is the deadline.
	_ = http.NewResponseController(p.c.w).SetReadDeadline(time.Now().Add(p.patience))
	n, err := p.c.r.Body.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		p.err = err
	}
	return n, err
}
