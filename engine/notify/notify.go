// Package notify sends notices to the operators' own systems: a webhook, whose
// body is signed, or a command.
//
// The one rule: it sends once and says whether that worked. What is sent, and
// how often it is tried, is its caller's.
package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx/engine"
)

// The headers of a webhook. A receiver computes the signature over the
// timestamp, a dot and the body, and takes an id once.
const (
	IDHeader        = "Sbx-Notice-Id"
	TimeHeader      = "Sbx-Timestamp"
	SignatureHeader = "Sbx-Signature" // "v1=" and the HMAC-SHA256 in hex
)

// Bounds of one try.
const (
	webhookWithin = 15 * time.Second
	commandWithin = 30 * time.Second
	maxOutput     = 2 << 10
)

// Sender sends to whatever is set. Its zero value sends nowhere.
type Sender struct {
	Webhook string
	Secret  string // signs the webhook; "": it isn't signed
	Command string // run by the shell, with the notice as JSON on its input
	Engine  string // whose notices these are: the host's name
	// Transport is the webhook's; nil: one that honours HTTPS_PROXY.
	Transport http.RoundTripper
}

// Set reports whether there is anybody to send to.
func (s *Sender) Set() bool { return s.Webhook != "" || s.Command != "" }

// body is a notice as it is sent.
type body struct {
	ID      engine.NoticeID   `json:"id"`
	Kind    engine.NoticeKind `json:"kind"`
	Engine  string            `json:"engine,omitempty"`
	Sandbox engine.SandboxID  `json:"sandbox,omitempty"`
	Name    string            `json:"name,omitempty"`
	Run     engine.RunID      `json:"run,omitempty"`
	Text    string            `json:"text"`
	Next    string            `json:"next,omitempty"`
	At      time.Time         `json:"at"`
}

// Send sends a notice once, to all that is set.
func (s *Sender) Send(ctx context.Context, n engine.Notice) error {
	b, err := json.Marshal(body{n.ID, n.Kind, s.Engine, n.Sandbox, n.Name, n.Run, n.Text, n.Next, n.At})
	if err != nil {
		return err
	}
	if s.Webhook != "" {
		if err := s.post(ctx, n.ID, b); err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
	}
	if s.Command != "" {
		if err := s.run(ctx, n, b); err != nil {
			return fmt.Errorf("command: %w", err)
		}
	}
	return nil
}

// Sign is the signature of a body sent at a time, in seconds since 1970.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

func (s *Sender) post(ctx context.Context, id engine.NoticeID, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, webhookWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Webhook, bytes.NewReader(b))
	if err != nil {
		return engine.Errorf(engine.Invalid, "notify.webhook is no address")
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sbx")
	req.Header.Set(IDHeader, string(id))
	req.Header.Set(TimeHeader, at)
	if s.Secret != "" {
		req.Header.Set(SignatureHeader, Sign(s.Secret, at, b))
	}
	client := http.Client{Transport: s.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()                         // it was only read
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxOutput)) // so that the connection is used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return engine.Errorf(engine.Unavailable, "it answered %s", resp.Status)
	}
	return nil
}

// run runs the command in a session of its own, with nothing of the engine's
// environment but where to find programs.
func (s *Sender) run(ctx context.Context, n engine.Notice, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, commandWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.Command)
	cmd.Env = []string{
		"PATH=" + cmp.Or(os.Getenv("PATH"), "/usr/bin:/bin"), "HOME=" + os.Getenv("HOME"), "LANG=" + os.Getenv("LANG"),
		"SBX_NOTICE_ID=" + string(n.ID), "SBX_NOTICE_KIND=" + string(n.Kind), "SBX_NOTICE_SANDBOX=" + n.Name, "SBX_NOTICE_TEXT=" + n.Text,
	}
	cmd.Stdin = bytes.NewReader(b)
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if words := strings.Join(strings.Fields(string(out)), " "); words != "" {
			return fmt.Errorf("%w: %s", err, words)
		}
		return err
	}
	return nil
}

// tail keeps the beginning of what a command says.
type tail []byte

func (t *tail) Write(b []byte) (int, error) {
	*t = append(*t, b[:min(len(b), maxOutput-len(*t))]...)
	return len(b), nil
}
