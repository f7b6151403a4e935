package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// literals are texts to be found, however many, in one pass.
type literals struct {
	// pairs has a bit for each two bytes that a text begins with: almost every
	// place of a log is ruled out by it.
	pairs [1 << 16 / 64]uint64
	by    map[[4]byte][]string // by their first bytes, longest first
}

func newLiterals(all map[string]bool) *literals {
	l := &literals{by: map[[4]byte][]string{}}
	for s := range all {
		pair := uint16(s[0])<<8 | uint16(s[1])
		l.pairs[pair/64] |= 1 << (pair % 64)
		head := [4]byte{s[0], s[1], s[2], s[3]}
		l.by[head] = append(l.by[head], s)
	}
	for _, list := range l.by {
		slices.SortFunc(list, func(a, b string) int { return len(b) - len(a) })
	}
	return l
}

// at is the length of the longest text that s has at i, or 0.
func (l *literals) at(s string, i int) int {
	if len(s)-i < 4 {
		return 0
	}
	pair := uint16(s[i])<<8 | uint16(s[i+1])
	if l.pairs[pair/64]&(1<<(pair%64)) == 0 {
		return 0
	}
	for _, text := range l.by[[4]byte{s[i], s[i+1], s[i+2], s[i+3]}] {
		if strings.HasPrefix(s[i:], text) {
			return len(text)
		}
	}
	return 0
}

// forms are the ways in which a secret may stand in a text: as it is, escaped
// for JSON or a URL, in hex, in base64 wherever it begins, and line by line.
func forms(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret {
		return nil
	}
	list := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	if quoted, err := json.Marshal(secret); err == nil {
		list = append(list, string(quoted[1:len(quoted)-1]))
	}
	if len(secret) >= 8 {
		hexed := hex.EncodeToString([]byte(secret))
		list = append(list, hexed, strings.ToUpper(hexed))
		list = append(list, base64Forms(secret)...)
	}
	if strings.Contains(secret, "\n") {
		for l := range strings.Lines(secret) {
			if l = strings.TrimSpace(l); len(l) >= 16 && !strings.HasPrefix(l, "-----") {
				list = append(list, l)
			}
		}
	}
	return list
}

// base64Forms are the part of a secret's base64 that is the same whatever
// stands before and after it, for each of the three places it may begin at.
func base64Forms(secret string) []string {
	var list []string
	for lead := range 3 {
		first := (lead*8 + 5) / 6            // the first character of the secret's own bits
		last := (lead + len(secret)) * 8 / 6 // and the end of them
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString([]byte(strings.Repeat("\x00", lead) + secret))
			if last-first >= 8 {
				list = append(list, text[first:min(last, len(text))])
			}
		}
	}
	return list
}
