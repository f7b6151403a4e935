package server

import (
	"crypto/sha256"
	"sync"
	"time"
)

// The back-off of wrong tokens. A token has 256 bits, so guessing is hopeless
// anyway: this is about what guessing costs us.
const (
	freeTries   = 5                // of an address, before it has to wait
	firstWait   = time.Second      // then twice as long each time
	longestWait = time.Minute      //
	forgetAfter = 10 * time.Minute // without a wrong token
	maxTracked  = 4096             // addresses, and good tokens
)

type tokenHash = [sha256.Size]byte

// brake slows down addresses that send wrong tokens. Tokens that were good
// pass it: or anyone on an address could lock out all others there, which on a
// loopback address is everybody.
type brake struct {
	mu        sync.Mutex
	addresses map[string]*tries
	good      map[tokenHash]struct{}
}

type tries struct {
	wrong int
	until time.Time
	last  time.Time
}

// wait is how long from has to wait until its token is looked at; 0: not at all.
func (b *brake) wait(from string, token tokenHash) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.addresses[from]
	if t == nil {
		return 0
	}
	if _, known := b.good[token]; known {
		return 0
	}
	return max(0, time.Until(t.until))
}

// wrong counts a token that was none.
func (b *brake) wrong(from string, token tokenHash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	delete(b.good, token) // revoked
	t := b.addresses[from]
	if t == nil || now.Sub(t.last) > forgetAfter {
		b.makeRoom(now)
		t = &tries{}
		b.addresses[from] = t
	}
	t.wrong++
	t.last = now
	if over := t.wrong - freeTries; over >= 0 {
		t.until = now.Add(min(longestWait, firstWait<<min(over, 10)))
	}
}

// right remembers a token that is one.
func (b *brake) right(token tokenHash) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.good == nil || len(b.good) >= maxTracked {
		b.good = map[tokenHash]struct{}{}
	}
	b.good[token] = struct{}{}
}

// makeRoom keeps the map bounded: first by what is old, then by anyone, and by
// a quarter at once, so that a flood from many addresses costs little each.
func (b *brake) makeRoom(now time.Time) {
	if b.addresses == nil {
		b.addresses = map[string]*tries{}
	}
	if len(b.addresses) < maxTracked {
		return
	}
	for from, t := range b.addresses {
		if now.Sub(t.last) > forgetAfter {
			delete(b.addresses, from)
		}
	}
	for from := range b.addresses {
		if len(b.addresses) <= maxTracked*3/4 {
			return
		}
		delete(b.addresses, from)
	}
}
