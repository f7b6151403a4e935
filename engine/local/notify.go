package local

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"sbx/engine"
	"sbx/engine/notify"
	"sbx/store"
)

// NotifyConfig is who is told of trouble.
type NotifyConfig struct {
	Sender notify.Sender
	// On are the kinds that are told; empty: all.
	On []engine.NoticeKind
	// Scale multiplies the pauses between tries; 0 is 1.
	Scale float64
}

// How long a notice is tried, and how old a transition may be to be news.
const (
	noticeTries = 12
	firstPause  = time.Second
	mostPause   = 10 * time.Minute
	newsFor     = 24 * time.Hour
	maxNotice   = 500
)

// notifier makes a notice of each transition, once: the row is written in the
// transaction that moves the journal's cursor, under an id that is made of the
// transition. Sending is another loop, over the rows.
type notifier struct {
	e    *Engine
	wake chan struct{} // holds one
}

// startNotify starts telling, if somebody is to be told.
func (e *Engine) startNotify() {
	if !e.cfg.Notify.Sender.Set() {
		return
	}
	n := &notifier{e: e, wake: make(chan struct{}, 1)}
	e.notifier = n
	e.start("notices", 3*time.Second, component{"notices", n.consume}, component{"sending", n.send})
}

func (n *notifier) poke() {
	select {
	case n.wake <- struct{}{}:
	default: // somebody did already
	}
}

func (n *notifier) consume(ctx context.Context) error {
	for _, err := range n.e.store.Consume(ctx, "notify", n.note) {
		if err != nil {
			return err
		}
		n.poke()
	}
	return ctx.Err()
}

// note writes the notice of an event that is news.
func (n *notifier) note(tx *store.Tx, ev engine.Event) error {
	if tx.Now.Sub(ev.Time) > newsFor {
		return nil
	}
	switch b := ev.Body.(type) {
	case engine.SandboxChanged:
		if b.Sandbox.Health == engine.Broken {
			return n.broken(tx, ev, b.Sandbox)
		}
	case engine.IncidentChanged:
		if in := b.Incident; len(in.Members) > 1 {
			text := fmt.Sprintf("incident in %d sandboxes: %s", len(in.Members), in.Title)
			return n.put(tx, engine.Notice{ID: noticeID("incident", string(in.ID)), Kind: engine.NoticeIncident, Text: text, Seq: ev.Seq, At: in.Opened})
		}
	}
	return nil
}

// broken is the notice of a sandbox that was given up. A run that was given up
// ended in the same commit; without one it was quarantined.
func (n *notifier) broken(tx *store.Tx, ev engine.Event, sb engine.Sandbox) error {
	news := engine.Notice{
		ID:   noticeID(string(sb.ID), sb.HealthChanged.Format(time.RFC3339Nano)),
		Kind: engine.NoticeQuarantine, Sandbox: sb.ID, Name: sb.Name, Run: sb.Run, Seq: ev.Seq, At: sb.HealthChanged,
		Text: fmt.Sprintf("%s is broken: %s", sb.Name, sb.Reason), Next: "sbx heal " + sb.Name,
	}
	if sb.Run != "" {
		run, err := tx.Run(sb.Run)
		if err != nil && engine.AsCode(err) != engine.NotFound {
			return err
		}
		if err == nil && run.Ended.Equal(sb.HealthChanged) {
			news.Kind, news.Next = engine.NoticeBroken, run.Next
			if run.Outcome == engine.OverBudget {
				news.Kind = engine.NoticeBudget
			}
		}
	}
	return n.put(tx, news)
}

// put writes a notice, if its kind is told and it was not written before.
func (n *notifier) put(tx *store.Tx, news engine.Notice) error {
	if on := n.e.cfg.Notify.On; len(on) > 0 && !slices.Contains(on, news.Kind) {
		return nil
	}
	if known, err := tx.HasNotice(news.ID); err != nil || known {
		return err
	}
	news.State, news.Due = engine.NoticeQueued, tx.Now
	news.Text, news.Next, news.Name = n.plain(news.Text), n.plain(news.Next), n.plain(news.Name)
	return tx.PutNotice(news)
}

// plain is text on one line without secrets and without anything that a
// terminal, a chat or a mail could act on.
func (n *notifier) plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(n.e.cfg.Redact(s), "\uFFFD"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxNotice {
		s = strings.ToValidUTF8(s[:maxNotice], "") + "…"
	}
	return s
}

// noticeID is the same for the same transition, whoever asks and how often.
func noticeID(parts ...string) engine.NoticeID {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return engine.NoticeID(engine.NoticePrefix + strings.ToLower(text[:10]))
}

// send sends what is due until ctx ends. A try that an engine's end cut is made
// again under the same id.
func (n *notifier) send(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.wake:
		case <-timer.C:
		}
		var open []engine.Notice
		err := n.e.store.View(ctx, func(tx *store.Tx) (err error) {
			open, err = tx.OpenNotices()
			return err
		})
		next := time.Hour
		for _, news := range open {
			if err != nil || ctx.Err() != nil {
				break
			}
			if wait := time.Until(news.Due); wait > 0 {
				next = min(next, wait)
				continue
			}
			if news, err = n.try(ctx, news); news.State == engine.NoticeQueued {
				next = min(next, max(0, time.Until(news.Due)))
			}
		}
		if err != nil {
			return err
		}
		timer.Reset(next)
	}
}

// try sends a notice once and writes down how that went.
func (n *notifier) try(ctx context.Context, news engine.Notice) (engine.Notice, error) {
	cfg := n.e.cfg.Notify
	sent := cfg.Sender.Send(ctx, news)
	if ctx.Err() != nil {
		return news, ctx.Err()
	}
	news.Tries++
	now := time.Now().UTC().Truncate(time.Millisecond)
	switch {
	case sent == nil:
		news.State, news.Sent, news.Trouble, news.Due = engine.NoticeSent, now, "", time.Time{}
	case news.Tries >= noticeTries || news.Kind == engine.NoticeTest:
		news.State, news.Trouble, news.Due = engine.NoticeGivenUp, n.plain(sent.Error()), time.Time{}
		n.e.cfg.Log.Error("a notice was given up", "notice", news.ID, "kind", news.Kind, "tries", news.Tries, "err", news.Trouble)
	default:
		news.Trouble, news.Due = n.plain(sent.Error()), now.Add(pauseAfter(news.Tries, cfg.Scale))
	}
	return news, n.e.store.Update(ctx, func(tx *store.Tx) error { return tx.PutNotice(news) })
}

// pauseAfter is how long to wait after so many tries: twice as long each time,
// at random between half of that and all of it.
func pauseAfter(tries int, scale float64) time.Duration {
	most := min(mostPause, firstPause<<min(tries-1, 20))
	if scale > 0 {
		most = max(time.Millisecond, time.Duration(float64(most)*scale))
	}
	return most/2 + rand.N(most/2+1)
}

// testNotify queues a notice that tells of nothing.
func (e *Engine) testNotify(by engine.Actor) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		if e.notifier == nil {
			return engine.Errorf(engine.Unavailable, "nobody is set to be notified").
				WithHint("set notify.webhook or notify.command in config.toml, and restart the engine")
		}
		r.Notice = engine.NoticeID(engine.NewID(engine.NoticePrefix))
		return tx.PutNotice(engine.Notice{
			ID: r.Notice, Kind: engine.NoticeTest, Text: e.notifier.plain("a test, asked for by " + by.String()), At: tx.Now,
			State: engine.NoticeQueued, Due: tx.Now,
		})
	}
}
