package store

import (
	"database/sql"
	"time"

	"sbx/engine"
)

// Token is a key to the engine's door. Only its hash is kept. A zero time is
// never.
type Token struct {
	Name                            string
	Role                            engine.Role
	Hash                            []byte
	Created, Expires, Revoked, Used time.Time
}

// PutToken writes a token, new or changed.
func (tx *Tx) PutToken(t Token) error {
	_, err := tx.write(`INSERT INTO tokens (name, hash, role, created, expires, revoked, used) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, role = excluded.role, created = excluded.created,
		expires = excluded.expires, revoked = excluded.revoked, used = excluded.used`,
		t.Name, t.Hash, string(t.Role), ms(t.Created), ms(t.Expires), ms(t.Revoked), ms(t.Used))
	return err
}

// TokenByHash is the token with that hash, and whether there is one. The
// caller looks at Expires and Revoked.
func (tx *Tx) TokenByHash(hash []byte) (Token, bool, error) {
	list, err := tx.tokens("WHERE hash = ?", hash)
	if len(list) == 0 {
		return Token{}, false, err
	}
	return list[0], true, err
}

// Tokens are all of them by name, revoked ones included.
func (tx *Tx) Tokens() ([]Token, error) { return tx.tokens("ORDER BY name") }

func (tx *Tx) tokens(clause string, args ...any) ([]Token, error) {
	var list []Token
	err := tx.each("SELECT name, hash, role, created, expires, revoked, used FROM tokens "+clause, args, func(r *sql.Rows) error {
		var (
			t                               Token
			created, expires, revoked, used int64
		)
		if err := r.Scan(&t.Name, &t.Hash, &t.Role, &created, &expires, &revoked, &used); err != nil {
			return err
		}
		t.Created, t.Expires, t.Revoked, t.Used = fromMS(created), fromMS(expires), fromMS(revoked), fromMS(used)
		list = append(list, t)
		return nil
	})
	return list, err
}
