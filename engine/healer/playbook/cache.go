package playbook

import "context"

// cache removes caches that their own program can't read any more.
type cache struct{}

func (cache) Name() string { return "corrupt cache" }
func (cache) Edits() bool  { return false }

var badCache = lazily(`(?i)bad magic number in|marshal data too short|bad marshal data|PackFileCacheStrategy[^\n]*(?:fail|error|invalid|corrupt|unexpected)|` +
	`(?:corrupt|invalid|unreadable|malformed|damaged)[^\n]{0,60}\bcache\b|\bcache\b[^\n]{0,60}(?:is corrupt|corrupted|is invalid|is damaged|malformed)|` +
	`(?:unexpected end of json input|unexpected token|unexpected eof)[^\n]{0,120}(?:/\.cache/|\.next/cache|\.vite/|\.parcel-cache|\.turbo)|` +
	`(?:/\.cache/|\.next/cache|\.vite/|\.parcel-cache|\.turbo)[^\n]{0,120}(?:unexpected end of json input|unexpected token|unexpected eof)`)

func (cache) Applies(ev Evidence) (string, bool) {
	if len(ev.Caches) == 0 {
		return "", false
	}
	if found := badCache().FindString(ev.Log); found != "" {
		return "a cache is corrupt: " + found, true
	}
	return "", false
}

func (cache) Apply(ctx context.Context, ev Evidence, w Workbench) error {
	return removeCaches(ctx, ev, w)
}

// RootCaches are directories at the root of a workspace that hold what a
// program makes again.
var RootCaches = []string{
	".cache", ".next/cache", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".vite", ".angular/cache", ".eslintcache", "node_modules/.cache", "node_modules/.vite",
}

// AnyCaches are such directories wherever they lie.
var AnyCaches = map[string]bool{"__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true}
