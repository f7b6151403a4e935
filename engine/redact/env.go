package redact

import (
	"net/url"
	"strings"
)

// Env are the secret values of a dotenv file: those whose name says so, if they
// are at least 6 bytes long, and any other of at least 8 bytes that is no plain
// word, number, address or path.
func Env(text string) []string {
	var secrets []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		l := strings.TrimPrefix(strings.TrimSpace(lines[i]), "export ")
		name, value, ok := strings.Cut(l, "=")
		if !ok || strings.HasPrefix(l, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		if q := quoteOf(value); q != 0 {
			for strings.IndexByte(value[1:], q) < 0 && i+1 < len(lines) && len(value) < maxKey {
				i++ // a quoted value may go on: private keys do
				value += "\n" + lines[i]
			}
			value, _, _ = strings.Cut(value[1:], string(q))
		} else if at := strings.Index(value, " #"); at >= 0 {
			value = strings.TrimSpace(value[:at])
		}
		secrets = append(secrets, secretsOf(strings.TrimSpace(name), value)...)
	}
	return secrets
}

// Environ are the secret values of an environment ("NAME=value"), as [Env]
// tells them by name; others are nobody's secret.
func Environ(environ []string) []string {
	var secrets []string
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && SoundsSecret(name) && len(value) >= 8 && !strings.HasPrefix(value, "/") {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

func quoteOf(value string) byte {
	if value != "" && strings.IndexByte("\"'`", value[0]) >= 0 {
		return value[0]
	}
	return 0
}

// secretsOf are what of a value must be hidden.
func secretsOf(name, value string) []string {
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		if password, ok := u.User.Password(); ok && password != "" {
			return []string{value, password}
		}
		if !SoundsSecret(name) || u.RawQuery == "" && len(u.Path) < 16 {
			return nil // an address
		}
	}
	switch {
	case len(value) < minSecret, strings.Contains(value, "${"):
		return nil
	case SoundsSecret(name):
		return []string{value, strings.ReplaceAll(value, `\n`, "\n")}
	case len(value) >= 8 && !plain(value):
		return []string{value}
	}
	return nil
}

// secretWords are parts of names that speak of a secret.
var secretWords = []string{
	"KEY", "SECRET", "TOKEN", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE", "DSN", "SALT", "SIGNATURE", "COOKIE", "WEBHOOK",
}

// SoundsSecret reports whether a variable's name speaks of a secret.
func SoundsSecret(name string) bool {
	name = strings.ToUpper(name)
	if strings.Contains(name, "PUBLIC") || strings.HasSuffix(name, "_SOCK") || strings.HasSuffix(name, "_PATH") || strings.HasSuffix(name, "_FILE") {
		return false
	}
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// plain reports whether a value reads as a word, a number, an address or a
// path: letters and digits that don't alternate.
func plain(value string) bool {
	if !strings.ContainsAny(value, "0123456789") || strings.ContainsAny(value, " \t\n") || strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") {
		return true // a sentence, a path
	}
	turns := 0
	for i := 1; i < len(value); i++ {
		if kind(value[i]) != kind(value[i-1]) {
			turns++
		}
	}
	return turns <= 4 || strings.Count(value, ".")+strings.Count(value, "-")+strings.Count(value, ":")+strings.Count(value, ",")+strings.Count(value, "/") >= turns/2
}

func kind(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return 1
	case b >= 'a' && b <= 'z':
		return 2
	case b >= 'A' && b <= 'Z':
		return 3
	}
	return 4
}
