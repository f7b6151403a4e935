package healer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sbx/engine"
	"sbx/engine/driver"
)

// maxWait is the longest that the wait tool waits.
const maxWait = 60 * time.Second

// installer matches commands that may change installed dependencies, which no
// checkpoint holds.
var installer = lazily(`\b(npm|pnpm|yarn|bun|npx|pip3?|uv|poetry|pipenv|go (get|mod|install)|cargo|bundle|composer)\b|node_modules|\.venv|site-packages`)

func (k *kit) run() tool {
	type input struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	most := int(k.h.p.RunTimeoutMax / time.Second)
	return tool{
		name: "run",
		about: fmt.Sprintf("Run a shell command in the workspace. It has no network, can't write protected paths or .git, "+
			"and everything that it starts is killed when it ends. timeout is in seconds (%d if left out, at most %d).",
			int(k.h.p.RunTimeout/time.Second), most),
		schema: `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1}},` +
			`"required":["command"],"additionalProperties":false}`,
		acts:    true,
		tracked: true,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			if strings.TrimSpace(in.Command) == "" || strings.ContainsRune(in.Command, 0) {
				return "", engine.Errorf(engine.Invalid, "input: a command is needed")
			}
			timeout := k.h.p.RunTimeout
			if in.Timeout > 0 {
				timeout = time.Duration(min(in.Timeout, most)) * time.Second
			}
			if installer().MatchString(in.Command) {
				k.h.installed = true
			}
			cmd := k.h.command(in.Command, driver.ProfileAgent)
			out, exit, err := k.h.exec(ctx, cmd, timeout, maxOutput)
			if err != nil {
				return out, err
			}
			if exit.TimedOut {
				return out, fmt.Errorf("it was killed after %s", timeout)
			}
			if exit.Code != 0 {
				return out, fmt.Errorf("%s", exit)
			}
			return orElse(out, "(no output, exit 0)"), nil
		},
	}
}

// none is the input of a tool that takes nothing.
const none = `{"type":"object","properties":{},"additionalProperties":false}`

func (k *kit) install() tool {
	return tool{
		name:    "install",
		about:   "Reinstall the dependencies with the command that the sandbox's spec names. It has the network.",
		schema:  none,
		acts:    true,
		tracked: true,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			if _, err := decode[struct{}](raw); err != nil {
				return "", err
			}
			out, err := k.h.install(ctx, k.h.sb.Spec.App.Install)
			return orElse(out, "(no output, exit 0)"), err
		},
	}
}

func (k *kit) probe() tool {
	type input struct {
		Path string `json:"path"`
	}
	return tool{
		name:   "probe",
		about:  "GET a path of the app, its health path if left out, and return status and the beginning of the body.",
		schema: `{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			p := orElse(orElse(in.Path, k.h.sb.Spec.App.Health), "/")
			if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, " \r\n\t") || len(p) > 2000 {
				return "", engine.Errorf(engine.Invalid, "input: path must begin with / and have no spaces")
			}
			return k.h.fetch(ctx, p)
		},
	}
}

// fetch GETs a path of the app through the box.
func (h *heal) fetch(ctx context.Context, p string) (string, error) {
	if _, err := h.processes(ctx); err != nil { // the port may have moved
		return "", err
	}
	port := h.port
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return h.box.Dial(ctx, port)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port)+p, nil)
	if err != nil {
		return "", engine.Errorf(engine.Invalid, "probe %s: %w", p, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput/4))
	text := fmt.Sprintf("%s %s\n%s", resp.Proto, resp.Status, body)
	if err != nil {
		text += "\n(the body was cut: " + err.Error() + ")"
	}
	return text, nil
}

func (k *kit) restart() tool {
	return tool{
		name:   "restart",
		about:  fmt.Sprintf("Restart the app and wait up to %s until it is healthy. If it is not, the end of its log comes back.", k.h.p.RestartWait),
		schema: none,
		acts:   true,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			if _, err := decode[struct{}](raw); err != nil {
				return "", err
			}
			return k.h.restartAndWait(ctx)
		},
	}
}

func (h *heal) restartAndWait(ctx context.Context) (string, error) {
	if err := h.start(ctx); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return h.logSince(ctx), fmt.Errorf("the app could not be started: %w", err)
	}
	before, err := h.processes(ctx)
	if err != nil {
		return "", err
	}
	why, err := h.awaitHealthy(ctx, before, h.p.RestartWait)
	if err != nil {
		return "", err
	}
	if why != "" {
		return h.logSince(ctx), fmt.Errorf("restarted, but %s", why)
	}
	return "the app was restarted and is healthy", nil
}

// logSince is the end of what the app wrote since its last start.
func (h *heal) logSince(ctx context.Context) string {
	list, err := h.processes(ctx)
	if err != nil || h.LogTail == nil {
		return ""
	}
	for _, p := range list {
		if p.Name != engine.AppName {
			continue
		}
		log, err := h.LogTail(ctx, p.ID, engine.LogPosition(p.LogStart), maxOutput/4)
		if err != nil {
			return "(the log can't be read: " + err.Error() + ")"
		}
		return "log since the start:\n" + orElse(log, "(nothing)")
	}
	return ""
}

func (k *kit) wait() tool {
	type input struct {
		Seconds int `json:"seconds"`
	}
	return tool{
		name:   "wait",
		about:  "Wait some seconds, at most 60: for a build, for the app to settle.",
		schema: `{"type":"object","properties":{"seconds":{"type":"integer","minimum":1,"maximum":60}},"required":["seconds"],"additionalProperties":false}`,
		call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			in, err := decode[input](raw)
			if err != nil {
				return "", err
			}
			if in.Seconds < 1 {
				return "", engine.Errorf(engine.Invalid, "input: seconds must be 1 to 60")
			}
			d := min(time.Duration(in.Seconds)*time.Second, maxWait)
			return fmt.Sprintf("waited %s", d), pause(ctx, d)
		},
	}
}
