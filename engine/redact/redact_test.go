package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"sbx/engine/redact"
)

// long makes a key of a shape without one standing in this file.
func long(prefix string, n int) string { return prefix + strings.Repeat("a1B2c3D4", n/8+1)[:n] }

func TestKnownKeysAreHiddenWhereverTheyStand(t *testing.T) {
	var r *redact.Redactor // nil hides shapes
	pem := "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEow+/=\nabcd\n-----END " + "RSA PRIVATE KEY-----"
	jwt := long("eyJ", 20) + "." + long("eyJ", 30) + "." + long("", 20)
	for _, key := range []string{
		long("sk-ant-", 30), long("sk-", 30), long("sk-proj-", 40), long("sk_live_", 24), long("ghp_", 36), long("github_pat_", 50),
		long("glpat-", 20), long("xoxb-", 30), "AKIA" + strings.Repeat("A1", 8), long("AIza", 35), long("npm_", 36), long("hf_", 34),
		long("SG.", 50), long("vk_", 32), jwt, pem, strings.ReplaceAll(pem, "\n", `\n`),
	} {
		for _, around := range []string{"%s", "key=%s", `{"key":"%s"}`, "x %s y", "(%s)", "'%s',"} {
			text := fmt.Sprintf(around, key)
			want := fmt.Sprintf(around, redact.Mark)
			if got := r.String(text); got != want {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	}
	for text, want := range map[string]string{
		"postgres://app:hunter2@db/x":                     "postgres://app:" + redact.Mark + "@db/x",
		"Authorization: Bearer " + long("", 24):           "Authorization: Bearer " + redact.Mark,
		"half a key: -----BEGIN " + "PRIVATE KEY-----\nM": "half a key: " + redact.Mark,
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	r := redact.New("s3cr3t-value", "abc", "     ")
	for _, text := range []string{
		"", "abc", "risk-assessment-of-the-whole-thing-2024", "npm_config_registry", "task-0123456789-0123456789-a",
		"http://localhost:3000/a:b@c", "postgres://app:${PASSWORD}@db/x", "bearer of bad news and of long sentences",
		"https://user@host/", "eyJust a word.", "sk-learn-some-package-name-here", "-----BEGIN CERTIFICATE-----\nMIIE\n",
		"const token: string = process.env.TOKEN", "sbx_token_of_the_engine_is_long_but_words_only",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestSecretsAreHiddenInTheFormsTheyTake(t *testing.T) {
	const secret = `p@ss "wörd"/+1`
	r := redact.New(secret)
	quoted, _ := json.Marshal(map[string]string{"a": secret})
	texts := []string{secret, string(quoted), url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret))}
	for lead := range 7 {
		for tail := range 4 {
			plain := strings.Repeat("x", lead) + secret + strings.Repeat("y", tail)
			texts = append(texts, base64.StdEncoding.EncodeToString([]byte(plain)), base64.RawURLEncoding.EncodeToString([]byte(plain)))
		}
	}
	for _, text := range texts {
		if got := r.String("<" + text + ">"); !strings.Contains(got, redact.Mark) || strings.Contains(got, "wörd") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestTheLongestSecretWins(t *testing.T) {
	r := redact.New("secret-one", "secret-one-and-more")
	if got := r.String("a secret-one-and-more b secret-one c"); got != "a [redacted] b [redacted] c" {
		t.Error(got)
	}
}

func TestMoreSecretsMayBecomeKnownMeanwhile(t *testing.T) {
	engine := redact.New("engine-secret")
	sandbox := engine.With("sandbox-secret")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			engine.Hide(fmt.Sprintf("late-secret-%d", i))
			sandbox.String("some text")
		})
	}
	all.Wait()
	if got := sandbox.String("engine-secret sandbox-secret late-secret-3"); got != "[redacted] [redacted] [redacted]" {
		t.Error(got)
	}
	if got := engine.String("sandbox-secret"); got != "sandbox-secret" {
		t.Errorf("another sandbox's secret is hidden here: %q", got)
	}
}

func TestSecretsOfADotenvFile(t *testing.T) {
	got := redact.Env(`# SECRET=not-this-one
export API_KEY="quoted-key" # mine
DB_PASSWORD=hunter2
PIN_TOKEN=123
NODE_ENV=development
PORT=3000
HOST=127.0.0.1:8080
URL=https://example.test/path
DATABASE_URL=postgres://app:hunter22@db:5432/app
PUBLIC_KEY_ID=abcdefgh
RANDOM=a8f3k2m9x0q7
TITLE=Hello you 2 there
CERT_KEY="-----BEGIN KEY-----
abc
-----END KEY-----"
FROM_OTHER=${API_KEY}xxxxxxxx
broken line
`)
	want := []string{
		"quoted-key", "quoted-key", "hunter2", "hunter2", "postgres://app:hunter22@db:5432/app", "hunter22", "a8f3k2m9x0q7",
		"-----BEGIN KEY-----\nabc\n-----END KEY-----", "-----BEGIN KEY-----\nabc\n-----END KEY-----",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	env := redact.Environ([]string{"PATH=/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY=abcdefgh", "SSH_AUTH_SOCK=/run/x", "HOME=/root", "EDITOR_TOKEN=x"})
	if diff := cmp.Diff([]string{"abcdefgh"}, env); diff != "" {
		t.Error(diff)
	}
}

func TestADiffIsAskedForWhatItAdds(t *testing.T) {
	r := redact.New("env-value-1")
	diff := "--- a/x\n+++ b/x\n-old " + long("ghp_", 36) + "\n+url = env-value-1\n+again env-value-1\n+" + long("ghp_", 36) + "\n context\n"
	if diff := cmp.Diff([]string{"a secret that sbx knows", "a GitHub token"}, r.Added(diff)); diff != "" {
		t.Error(diff)
	}
	if kinds := r.Added("-env-value-1\n+os.Getenv(\"X\")\n"); len(kinds) != 0 {
		t.Errorf("found %v", kinds)
	}
}

func TestAStreamHidesWhatArrivesInPieces(t *testing.T) {
	pem := "-----BEGIN " + "PRIVATE KEY-----\nMIIEow\nabcd\n-----END " + "PRIVATE KEY-----\n"
	text := "one known-secret two\n" + pem + strings.Repeat("long ", 50_000) + "known-secret\nlast known-secret"
	want := "one [redacted] two\n[redacted]\n" + strings.Repeat("long ", 50_000) + "[redacted]\nlast [redacted]"
	for _, size := range []int{1, 3, 7, 1000, 1 << 20} {
		var out bytes.Buffer
		w := redact.New("known-secret").Writer(&out)
		for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
			if _, err := w.Write(b[:min(size, len(b))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil || out.String() != want {
			t.Errorf("in pieces of %d: %d bytes, want %d, %v", size, out.Len(), len(want), err)
		}
	}
	w := redact.New().Writer(iotest.TruncateWriter(failing{}, 1))
	if _, err := w.Write([]byte("x\n")); err == nil {
		t.Error("an error below is lost")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, fmt.Errorf("full") }

func FuzzNoSecretIsLeft(f *testing.F) {
	r := redact.New("known-secret")
	f.Add("a known-secret b", "-----BEGIN ")
	f.Fuzz(func(t *testing.T, before, after string) {
		got := r.String(before + "known-secret" + after)
		if strings.Contains(got, "known-secret") {
			t.Errorf("left in %q", got)
		}
		if again := r.String(got); strings.Count(again, redact.Mark) < strings.Count(got, redact.Mark) {
			t.Errorf("%q becomes %q", got, again)
		}
	})
}

func BenchmarkLog(b *testing.B) {
	r := redact.New()
	for i := range 1000 {
		r.Hide(fmt.Sprintf("%x-secret-of-a-sandbox", i*2654435761))
	}
	text := strings.Repeat("2026-11-22T01:02:03Z INFO served GET /api/things?id=42 in 3.1ms status=200 from 10.0.0.1\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.String(text)
	}
}
