package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sbx/engine"
	"sbx/engine/local"
	"sbx/engine/server"
	"sbx/store"
)

type serveFlags struct {
	listen, cert, key string
	detach, insecure  bool
}

func newServeCmd(c *cli) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run an engine that others attach to",
		Long: `Run an engine that others attach to: over its unix socket without a token, and
over HTTP with one. The first start leaves a token for its own user in the data
directory (file "token", readable by you alone).`,
		Example: "  sbx serve\n  sbx serve --detach\n  sbx serve --listen 127.0.0.1:7443",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("listen") {
				f.listen = c.cfg.listen
			}
			if f.detach {
				return c.serveDetached(cmd.Context(), f)
			}
			return c.serve(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "", `address for HTTP (default "127.0.0.1:7443"; "none": the unix socket only)`)
	fl.BoolVarP(&f.detach, "detach", "d", false, "run in the background")
	fl.StringVar(&f.cert, "tls-cert", "", "certificate file")
	fl.StringVar(&f.key, "tls-key", "", "key file")
	fl.BoolVar(&f.insecure, "insecure", false, "listen beyond loopback without TLS")
	return cmd
}

// serve runs until ctx ends.
func (c *cli) serve(ctx context.Context, f serveFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.err, nil))
	e, err := c.newEngine(ctx, log, leavesIts)
	var owned *store.OwnedError
	if errors.As(err, &owned) {
		return engine.Errorf(engine.Conflict, "process %d owns %s", owned.PID, owned.Dir).
			WithHint("it is attached to by every sbx of yours; stop it with: kill %d", owned.PID)
	}
	if err != nil {
		return err
	}
	defer e.Close()
	return c.listenAndServe(ctx, e, f, log)
}

// check refuses what would put tokens on a network in clear.
func (f serveFlags) check() error {
	if (f.cert == "") != (f.key == "") {
		return usagef("--tls-cert and --tls-key go together")
	}
	if f.listen == "" || f.listen == "none" || f.insecure || f.cert != "" {
		return nil
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return usagef("--listen %s: the form is host:port", f.listen)
	}
	if ip := net.ParseIP(host); host == "localhost" || (ip != nil && ip.IsLoopback()) {
		return nil
	}
	return engine.Errorf(engine.Forbidden, "%s is not a loopback address, and there is no TLS", f.listen).
		WithHint("add --tls-cert and --tls-key, or --insecure if the network is yours alone")
}

func (c *cli) listenAndServe(ctx context.Context, e *local.Engine, f serveFlags, log *slog.Logger) error {
	if err := ensureToken(ctx, e.Store(), c.cfg.home); err != nil {
		return err
	}
	srv := &server.Server{
		Engine: e, Authenticate: authenticator(e.Store()), Hosts: c.cfg.hosts, Version: version, Metrics: e.WriteMetrics, Log: log,
	}
	sock, err := listenSocket(c.cfg.home)
	if err != nil {
		return err
	}
	defer removeSocket(c.cfg.home)
	doors := []door{{sock, srv.SocketHandler(socketActor)}}
	if f.listen != "" && f.listen != "none" {
		l, err := f.listenTCP()
		if err != nil {
			return err
		}
		doors = append(doors, door{l, srv.Handler()})
		log.Info("listening", "address", l.Addr().String(), "tls", f.cert != "")
	}
	log.Info("ready", "data", c.cfg.home, "socket", socketPath(c.cfg.home), "pid", os.Getpid())
	return serveDoors(ctx, srv, doors)
}

// door is a listener and what answers there.
type door struct {
	l net.Listener
	h http.Handler
}

// serveDoors serves until ctx ends or a listener fails, then hangs up on
// everybody: frontends leave first.
func serveDoors(ctx context.Context, srv *server.Server, doors []door) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, d := range doors {
		g.Go(func() error { return srv.Serve(ctx, d.l, d.h) })
	}
	return g.Wait()
}

func (f serveFlags) listenTCP() (net.Listener, error) {
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, engine.Errorf(engine.Unavailable, "listen: %w", err).
			WithHint("another engine may have the port: use --listen 127.0.0.1:0 or --listen none")
	}
	if f.cert == "" {
		return l, nil
	}
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, errors.Join(engine.Errorf(engine.Invalid, "TLS: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}), nil
}

// socketActor is who speaks over the unix socket: only its own user can.
func socketActor(*http.Request) engine.Actor {
	return engine.Actor{Kind: engine.ActorOperator, Name: userName(), From: "socket"}
}

// authenticator looks tokens up by their hash.
func authenticator(s *store.Store) func(context.Context, string) (engine.Actor, engine.Role, error) {
	refused := engine.Errorf(engine.Unauthorized, "no such token").WithHint("set SBX_TOKEN to a token of this engine")
	return func(ctx context.Context, token string) (engine.Actor, engine.Role, error) {
		var t store.Token
		var ok bool
		sum := sha256.Sum256([]byte(token))
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			t, ok, err = tx.TokenByHash(sum[:])
			return err
		})
		switch now := time.Now(); {
		case err != nil:
			return engine.Actor{}, "", err
		case !ok, !t.Revoked.IsZero(), !t.Expires.IsZero() && now.After(t.Expires):
			return engine.Actor{}, "", refused
		}
		return engine.Actor{Kind: engine.ActorClient, Name: t.Name}, t.Role, nil
	}
}

// ensureToken makes the first token, for the user that runs the engine, and
// leaves it where only that user can read it. The store keeps its hash.
func ensureToken(ctx context.Context, s *store.Store, home string) error {
	var have []store.Token
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		have, err = tx.Tokens()
		return err
	})
	if err != nil || len(have) > 0 {
		return err
	}
	var raw [32]byte
	rand.Read(raw[:])
	token := "sbx_" + base64.RawURLEncoding.EncodeToString(raw[:])
	if err := os.WriteFile(tokenFile(home), []byte(token+"\n"), 0o600); err != nil {
		return fmt.Errorf("leave the first token: %w", err)
	}
	sum := sha256.Sum256([]byte(token))
	return s.Update(ctx, func(tx *store.Tx) error {
		return tx.PutToken(store.Token{Name: userName(), Role: engine.Admin, Hash: sum[:], Created: tx.Now})
	})
}
