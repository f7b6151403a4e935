package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"regexp"
	"strings"
	"sync"

	"sbx/engine"
	"sbx/store"
)

// secretPrefix marks a virtual key as what it is, for people and for scanners.
const secretPrefix = "sbx-vk-"

// newSecret is a virtual key, 260 bits of it at random, and what is kept of it.
func newSecret() (secret string, hash []byte) {
	secret = secretPrefix + rand.Text() + rand.Text()
	return secret, hashOf(secret)
}

// aSecret matches virtual keys wherever they are written.
var aSecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(secretPrefix + `[A-Z2-7]{20,}`) })

// hidingKeys is redact, and hides virtual keys too.
func hidingKeys(redact func(string) string) func(string) string {
	return func(s string) string {
		if s = redact(s); strings.Contains(s, secretPrefix) {
			s = aSecret().ReplaceAllString(s, secretPrefix+"***")
		}
		return s
	}
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func issueKey(by engine.Actor, b engine.IssueKey) (effect, error) {
	if err := engine.CheckOwner(b.Name); err != nil || b.For < 0 {
		return nil, engine.Errorf(engine.Invalid, "the key's name can't be shown, or its time is negative").
			WithHint("sbx key issue SANDBOX --name ci --for 24h")
	}
	secret, hash := newSecret()
	return func(tx *store.Tx, r *engine.Receipt) error {
		k := engine.Key{
			ID: engine.KeyID(engine.NewID(engine.KeyPrefix)), Sandbox: b.Sandbox, Name: b.Name, By: by, Created: tx.Now,
		}
		if b.For > 0 {
			k.Expires = tx.Now.Add(b.For.D())
		}
		r.Sandbox, r.Key, r.Secret = b.Sandbox, k.ID, secret
		return tx.PutKey(k, hash)
	}, nil
}

func revokeKey(b engine.RevokeKey) effect {
	return func(tx *store.Tx, r *engine.Receipt) error {
		k, err := tx.Key(b.Key)
		if err != nil {
			return err
		}
		r.Key, r.Sandbox = k.ID, k.Sandbox
		if !k.Revoked.IsZero() {
			r.Note = "it was revoked before"
			return nil
		}
		k.Revoked = tx.Now
		return tx.PutKey(k, nil)
	}
}

// Messages are those of the chat about a sandbox.
func (e *Engine) Messages(ctx context.Context, q engine.MessageQuery) ([]engine.Message, error) {
	return messages(ctx, e.store, q)
}

// mostMessages is how many messages are read at once.
const mostMessages = 500

func messages(ctx context.Context, st *store.Store, q engine.MessageQuery) (list []engine.Message, err error) {
	if q.Limit <= 0 || q.Limit > mostMessages {
		q.Limit = mostMessages
	}
	err = st.View(ctx, func(tx *store.Tx) error {
		if _, err := tx.Sandbox(q.Sandbox); err != nil {
			return err
		}
		list, err = tx.Messages(q)
		return err
	})
	return list, err
}

// Keys are the virtual keys of a sandbox, or of the fleet.
func (e *Engine) Keys(ctx context.Context, id engine.SandboxID) ([]engine.Key, error) {
	return keys(ctx, e.store, id)
}

func keys(ctx context.Context, st *store.Store, id engine.SandboxID) (list []engine.Key, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		if id != "" {
			if _, err := tx.Sandbox(id); err != nil {
				return err
			}
		}
		list, err = tx.Keys(id)
		return err
	})
	return list, err
}

// Notices are the newest notices.
func (e *Engine) Notices(ctx context.Context) ([]engine.Notice, error) {
	return notices(ctx, e.store)
}

func notices(ctx context.Context, st *store.Store) (list []engine.Notice, err error) {
	err = st.View(ctx, func(tx *store.Tx) error {
		list, err = tx.Notices()
		return err
	})
	return list, err
}

// Messages are those of a chat, as they were last written.
func (l *Looker) Messages(ctx context.Context, q engine.MessageQuery) ([]engine.Message, error) {
	if l.store == nil {
		return nil, engine.Errorf(engine.NotFound, "no sandbox %s", q.Sandbox)
	}
	return messages(ctx, l.store, q)
}

// Keys are virtual keys and their use.
func (l *Looker) Keys(ctx context.Context, id engine.SandboxID) ([]engine.Key, error) {
	if l.store == nil {
		return nil, nil
	}
	return keys(ctx, l.store, id)
}

// Notices are the newest notices.
func (l *Looker) Notices(ctx context.Context) ([]engine.Notice, error) {
	if l.store == nil {
		return nil, nil
	}
	return notices(ctx, l.store)
}
