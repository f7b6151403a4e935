package healer

import (
	"context"
	"fmt"
	"path"
	"strings"

	"sbx/engine"
	"sbx/engine/redact"
)

// learnSecrets reads what the sandbox's own environment keeps secret: the
// values of its .env files, of its spec's env, and none of another sandbox's.
// It is done again for each attempt, since a run may write such a file.
func (h *heal) learnSecrets(ctx context.Context) {
	if h.hide == nil {
		h.hide = &redact.Redactor{}
	}
	for name, value := range h.sb.Spec.App.Env {
		h.hide.Hide(redact.Env(name + "=" + value)...)
	}
	if h.box == nil {
		return
	}
	entries, err := h.box.Files().ReadDir(ctx, ".")
	h.missed(ctx, "secrets", err)
	for _, fi := range entries {
		name := path.Base(fi.Name)
		if !fi.Mode.IsRegular() || !isEnvFile(name) {
			continue
		}
		f, err := h.box.Files().ReadFile(ctx, name, 0, maxManifest)
		h.missed(ctx, name, err)
		h.hide.Hide(redact.Env(string(f.Data))...)
	}
}

// isEnvFile reports whether a file holds an environment; an example's values
// are nobody's.
func isEnvFile(name string) bool {
	if name != ".env" && !strings.HasPrefix(name, ".env.") && !strings.HasSuffix(name, ".env") {
		return false
	}
	for _, sample := range []string{"example", "sample", "template", "dist"} {
		if strings.Contains(name, sample) {
			return false
		}
	}
	return true
}

// redact hides the engine's secrets and the sandbox's own.
func (h *heal) redact(s string) string { return h.hide.String(h.loop.redact(s)) }

// markKept refuses text for a file that has more redacted places than the file
// itself: the model was shown the mark in place of a secret, and would destroy
// the secret by writing it back.
func markKept(p, old, content string) error {
	if strings.Count(content, redact.Mark) <= strings.Count(old, redact.Mark) {
		return nil
	}
	return engine.Errorf(engine.Invalid, "%s stands for a secret that you may not see in %s; "+
		"use edit on the text around it, so that the secret stays", redact.Mark, p)
}

// leaks keeps out of a commit what would put a secret into the history. It
// returns the paths that may be committed, and which may not and why.
func (h *heal) leaks(ctx context.Context, paths []string) (fine, out []string) {
	if len(paths) == 0 {
		return nil, nil
	}
	h.learnSecrets(ctx)
	added := map[string]string{}
	if d, err := h.box.Checkpoints().Diff(ctx, h.track.base, h.track.last); err == nil && !d.Cut {
		added = addedBy(d.Patch)
	}
	for _, p := range paths {
		text, ok := added[p]
		if !ok { // a large one, or one whose name git quotes
			f, err := h.box.Files().ReadFile(ctx, p, 0, 0)
			if err != nil && engine.AsCode(err) != engine.NotFound {
				out = append(out, fmt.Sprintf("%s could not be looked through for secrets: %v", p, err))
				continue
			}
			text = string(f.Data)
		}
		kinds := h.hide.Kinds(text)
		if len(kinds) == 0 && h.loop.redact(text) != text {
			kinds = []string{"a secret of the engine"}
		}
		if len(kinds) > 0 {
			out = append(out, fmt.Sprintf("%s now holds %s, which must not get into the history", p, list(kinds)))
			continue
		}
		fine = append(fine, p)
	}
	return fine, out
}

// addedBy is what a patch adds to each file.
func addedBy(patch string) map[string]string {
	added := map[string]string{}
	file, inBody := "", false
	for l := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(l, "diff --git "):
			file, inBody = "", false
		case !inBody && strings.HasPrefix(l, "+++ b/"):
			file = strings.TrimRight(l[len("+++ b/"):], "\t\n")
			added[file] += ""
		case strings.HasPrefix(l, "@@ "):
			inBody = true
		case inBody && file != "" && strings.HasPrefix(l, "+"):
			added[file] += l[1:]
		}
	}
	return added
}
