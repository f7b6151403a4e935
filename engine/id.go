package engine

import (
	"crypto/rand"
	"encoding/base32"
	"strings"
)

// Ids are a prefix and ten random base32 characters. They are never reused,
// and people see the shortest unique prefix of at least [ShortID] characters.
type (
	SandboxID    string // sb-…
	ProcessID    string // ps-…
	RunID        string // ru-…
	CheckpointID string // cp-…
	SessionID    string // se-…
	IncidentID   string // in-…
	MessageID    string // ms-…
	KeyID        string // vk-…
	NoticeID     string // no-…
	// ActionID is the caller's own: what makes a retry after a cut safe.
	ActionID string
)

// ShortID is how many characters of an id's random part are shown at least.
const ShortID = 4

// The prefixes of ids.
const (
	SandboxPrefix    = "sb-"
	ProcessPrefix    = "ps-"
	RunPrefix        = "ru-"
	CheckpointPrefix = "cp-"
	SessionPrefix    = "se-"
	IncidentPrefix   = "in-"
	MessagePrefix    = "ms-"
	KeyPrefix        = "vk-"
	NoticePrefix     = "no-"
	ActionPrefix     = "ac-"
	UploadPrefix     = "up-"
)

// idAlphabet is lower-case base32 without padding: safe in paths, URLs and
// host names, and readable aloud.
var idAlphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns prefix and ten random characters (50 bits).
func NewID(prefix string) string {
	var b [7]byte
	rand.Read(b[:]) // never fails, says crypto/rand
	return prefix + idAlphabet.EncodeToString(b[:])[:10]
}

// Short is an id as people see it when there is no clash: its prefix and
// [ShortID] characters.
func Short[T ~string](id T) string {
	prefix, rest, ok := strings.Cut(string(id), "-")
	if !ok || len(rest) <= ShortID {
		return string(id)
	}
	return prefix + "-" + rest[:ShortID]
}

// Shorten returns for each id its shortest prefix that is unique among ids and
// has at least [ShortID] characters after the dash.
func Shorten[T ~string](ids []T) map[T]string {
	short := make(map[T]string, len(ids))
	for n := ShortID; len(short) < len(ids); n++ {
		count := make(map[string]int, len(ids))
		for _, id := range ids {
			count[cutID(string(id), n)]++
		}
		for _, id := range ids {
			cut := cutID(string(id), n)
			if _, done := short[id]; !done && (count[cut] == 1 || cut == string(id)) {
				short[id] = cut
			}
		}
	}
	return short
}

func cutID(id string, n int) string {
	dash := strings.IndexByte(id, '-')
	return id[:min(len(id), dash+1+n)]
}
