package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"sbx/engine"
)

// detachWithin is how long a background engine may take to answer.
const detachWithin = 20 * time.Second

// startDetached starts `sbx serve` in the background for a command that wants
// to change something, and attaches to it.
func (c *cli) startDetached(ctx context.Context) (engine.Engine, error) {
	if err := c.spawnServe(ctx, serveFlags{listen: "none"}); err != nil {
		return nil, err
	}
	e, err := c.dialSocket(ctx)
	if err == nil {
		c.say("started an engine in the background (sbx status shows it)")
	}
	return e, err
}

func (c *cli) serveDetached(ctx context.Context, f serveFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if e, err := c.dialSocket(ctx); err == nil {
		return c.ownedBy(ctx, e)
	}
	if err := c.spawnServe(ctx, f); err != nil {
		return err
	}
	c.say("the engine is running in the background; its log is %s", engineLog(c.cfg.home))
	return nil
}

// ownedBy says which engine has the data directory already.
func (c *cli) ownedBy(ctx context.Context, e engine.Engine) error {
	defer e.Close()
	snap, err := e.Snapshot(ctx)
	if err != nil {
		return err
	}
	return engine.Errorf(engine.Conflict, "process %d owns %s: an engine is running there already", snap.About.PID, c.cfg.home).
		WithHint("see it with: sbx status")
}

// spawnServe starts a process of its own session that outlives this one, and
// waits until it answers or has ended.
func (c *cli) spawnServe(ctx context.Context, f serveFlags) error {
	if err := makeHome(c.cfg.home); err != nil {
		return err
	}
	log, err := os.OpenFile(engineLog(c.cfg.home), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the engine's log: %w", err)
	}
	defer log.Close()
	began, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd, err := c.serveCommand(f)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the engine, or with this process
	return c.untilAnswering(ctx, ended, began)
}

func (c *cli) serveCommand(f serveFlags) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--home", c.cfg.home, "--listen", f.listen}
	if f.listen == "" {
		args[len(args)-1] = "none"
	}
	if c.configFile != "" {
		args = append(args, "--config", c.configFile)
	}
	for _, s := range c.set {
		args = append(args, "--set", s)
	}
	if f.cert != "" {
		args = append(args, "--tls-cert", f.cert, "--tls-key", f.key)
	}
	if f.insecure {
		args = append(args, "--insecure")
	}
	cmd := exec.Command(exe, args...)
	for k, v := range c.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}

func (c *cli) untilAnswering(ctx context.Context, ended <-chan error, logFrom int64) error {
	ctx, cancel := context.WithTimeout(ctx, detachWithin)
	defer cancel()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		e, err := c.dialSocket(ctx)
		if err == nil {
			return e.Close()
		}
		if !errors.Is(err, engine.Unavailable) {
			return err
		}
		select {
		case <-ended:
			return engine.Errorf(engine.Unavailable, "the engine ended at once: %s", c.lastWords(logFrom)).
				WithHint("see %s", engineLog(c.cfg.home))
		case <-ctx.Done():
			return engine.Errorf(engine.Unavailable, "the engine does not answer after %s", detachWithin).
				WithHint("see %s", engineLog(c.cfg.home))
		case <-time.After(wait):
		}
	}
}

// lastWords is the last line that the engine wrote to its log.
func (c *cli) lastWords(from int64) string {
	f, err := os.Open(engineLog(c.cfg.home))
	if err != nil {
		return "it left no word"
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, from, 64<<10))
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return "it left no word"
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "sbx: ")
}
