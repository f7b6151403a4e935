package redact

import "strings"

// shape is a kind of key that tells itself: a prefix, and what follows it.
type shape struct {
	prefix string
	kind   string
	// rest are the bytes that may follow, at least min of them.
	rest *[256]bool
	min  int
	// mixed: letters and digits must both be among them, since words may begin
	// with the prefix, too.
	mixed bool
	// end finds the end of what is no plain run of bytes: from and to within s,
	// to 0 if it isn't one.
	end func(s string, i int) (from, to int)
}

var (
	alnum   = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
	dashed  = with(alnum, "_-")
	dotted  = with(alnum, "_-.")
	bearer  = with(alnum, "_-.~+/=")
	capital = set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
)

// shapes are sorted by nothing: which apply is found by their first byte.
var shapes = []shape{
	{prefix: "sk-ant-", kind: "an Anthropic key", rest: dashed, min: 12},
	{prefix: "sk-", kind: "a model provider's key", rest: dashed, min: 20, mixed: true},
	{prefix: "sk_live_", kind: "a Stripe key", rest: alnum, min: 16},
	{prefix: "sk_test_", kind: "a Stripe key", rest: alnum, min: 16},
	{prefix: "rk_live_", kind: "a Stripe key", rest: alnum, min: 16},
	{prefix: "whsec_", kind: "a webhook's secret", rest: bearer, min: 16},
	{prefix: "ghp_", kind: "a GitHub token", rest: alnum, min: 30},
	{prefix: "gho_", kind: "a GitHub token", rest: alnum, min: 30},
	{prefix: "ghu_", kind: "a GitHub token", rest: alnum, min: 30},
	{prefix: "ghs_", kind: "a GitHub token", rest: alnum, min: 30},
	{prefix: "ghr_", kind: "a GitHub token", rest: alnum, min: 30},
	{prefix: "github_pat_", kind: "a GitHub token", rest: dashed, min: 30},
	{prefix: "glpat-", kind: "a GitLab token", rest: dashed, min: 16},
	{prefix: "xoxa-", kind: "a Slack token", rest: dashed, min: 10},
	{prefix: "xoxb-", kind: "a Slack token", rest: dashed, min: 10},
	{prefix: "xoxp-", kind: "a Slack token", rest: dashed, min: 10},
	{prefix: "xoxr-", kind: "a Slack token", rest: dashed, min: 10},
	{prefix: "xoxs-", kind: "a Slack token", rest: dashed, min: 10},
	{prefix: "xapp-", kind: "a Slack token", rest: dashed, min: 10},
	{prefix: "AKIA", kind: "an AWS key", rest: capital, min: 16},
	{prefix: "ASIA", kind: "an AWS key", rest: capital, min: 16},
	{prefix: "AIza", kind: "a Google key", rest: dashed, min: 35},
	{prefix: "ya29.", kind: "a Google token", rest: dashed, min: 20},
	{prefix: "GOCSPX-", kind: "a Google secret", rest: dashed, min: 20},
	{prefix: "npm_", kind: "an npm token", rest: alnum, min: 36},
	{prefix: "pypi-", kind: "a PyPI token", rest: dashed, min: 50},
	{prefix: "hf_", kind: "a Hugging Face token", rest: alnum, min: 30},
	{prefix: "SG.", kind: "a SendGrid key", rest: dotted, min: 40},
	{prefix: "dop_v1_", kind: "a DigitalOcean token", rest: alnum, min: 40},
	{prefix: "shpat_", kind: "a Shopify token", rest: alnum, min: 30},
	{prefix: "tskey-", kind: "a Tailscale key", rest: dashed, min: 16},
	{prefix: "dckr_pat_", kind: "a Docker token", rest: dashed, min: 20},
	{prefix: "AGE-SECRET-KEY-1", kind: "an age key", rest: capital, min: 50},
	{prefix: "vk_", kind: "a virtual key of sbx", rest: dashed, min: 16},
	{prefix: "vk-", kind: "a virtual key of sbx", rest: dashed, min: 16, mixed: true},
	{prefix: "sbx_", kind: "a token of sbx", rest: dashed, min: 24, mixed: true},
	{prefix: "eyJ", kind: "a signed token", end: signedToken},
	{prefix: "-----BEGIN ", kind: "a private key", end: privateKey},
	{prefix: "://", kind: "a password in a URL", end: urlPassword},
	{prefix: "Bearer ", kind: "a bearer token", end: bearerToken},
	{prefix: "bearer ", kind: "a bearer token", end: bearerToken},
}

// shapeStarts are the bytes that a shape begins with.
var shapeStarts, shapesBy = func() (starts [256]bool, by [256][]shape) {
	for _, sh := range shapes {
		starts[sh.prefix[0]] = true
		by[sh.prefix[0]] = append(by[sh.prefix[0]], sh)
	}
	return starts, by
}()

// shapeAt finds a shape that begins at i; to is 0 if there is none.
func shapeAt(s string, i int) (from, to int, kind string) {
	inWord := i > 0 && (alnum[s[i-1]] || s[i-1] == '_')
	for _, sh := range shapesBy[s[i]] {
		if inWord && alnum[s[i]] || !strings.HasPrefix(s[i:], sh.prefix) {
			continue
		}
		if sh.end != nil {
			if from, to = sh.end(s, i); to > 0 {
				return from, to, sh.kind
			}
			continue
		}
		rest := i + len(sh.prefix)
		end := run(s, rest, sh.rest)
		if end-rest >= sh.min && (!sh.mixed || isMixed(s[rest:end])) {
			return i, end, sh.kind
		}
	}
	return 0, 0, ""
}

// run is the end of the bytes of a set that begin at i.
func run(s string, i int, in *[256]bool) int {
	for i < len(s) && in[s[i]] {
		i++
	}
	return i
}

func isMixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

// signedToken is a JWT: three parts, of which the second is JSON, too.
func signedToken(s string, i int) (from, to int) {
	head := run(s, i, dashed)
	if head-i < 10 || !strings.HasPrefix(s[head:], ".eyJ") {
		return 0, 0
	}
	body := run(s, head+1, dashed)
	if body < len(s) && s[body] == '.' {
		body = run(s, body+1, dashed)
	}
	return i, body
}

// maxKey bounds a private key.
const maxKey = 16 << 10

// privateKey is a PEM block, also one whose line ends are written as \n, up to
// its end or as far as it goes.
func privateKey(s string, i int) (from, to int) {
	const begin, tail = "-----BEGIN ", "-----"
	label := strings.Index(s[i+len(begin):], tail)
	if label < 0 || label > 40 || !strings.HasSuffix(s[i+len(begin):i+len(begin)+label], "PRIVATE KEY") {
		return 0, 0
	}
	at := i + len(begin) + label + len(tail)
	block := s[at:min(len(s), at+maxKey)]
	if end := strings.Index(block, "-----END "); end >= 0 {
		if last := strings.Index(block[end+len("-----END "):], tail); last >= 0 && last <= 40 {
			return i, at + end + len("-----END ") + last + len(tail)
		}
	}
	return i, at + run(block, 0, pemBody)
}

var pemBody = with(alnum, "+/=\r\n\\ :,-")

// urlPassword is what stands between the colon and the last @ of a URL's authority.
func urlPassword(s string, i int) (from, to int) {
	at := i + len("://")
	authority := s[at:min(len(s), at+512)]
	if end := strings.IndexAny(authority, "/?# \t\r\n\"'<>`\\"); end >= 0 {
		authority = authority[:end]
	}
	user := strings.IndexByte(authority, ':')
	host := strings.LastIndexByte(authority, '@')
	if user < 0 || host < user+2 || strings.HasPrefix(authority[user+1:], "$") {
		return 0, 0 // ${PASSWORD} is a name, no secret
	}
	return at + user + 1, at + host
}

// bearerToken is what follows the scheme in a header.
func bearerToken(s string, i int) (from, to int) {
	rest := i + len("bearer ")
	end := run(s, rest, bearer)
	if end-rest < 16 || !isMixed(s[rest:end]) {
		return 0, 0
	}
	return rest, end
}

func set(bytes string) *[256]bool { return with(&[256]bool{}, bytes) }

func with(base *[256]bool, bytes string) *[256]bool {
	all := *base
	for i := range len(bytes) {
		all[bytes[i]] = true
	}
	return &all
}
