package healer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"sbx/engine/driver"
	"sbx/engine/healer/playbook"
)

// toolsFor are the programs whose version matters, by the file that calls for them.
var toolsFor = map[string]string{
	"package.json": "node", "requirements.txt": "python3", "pyproject.toml": "python3", "Pipfile": "python3", "setup.cfg": "python3", "go.mod": "go",
}

// toolsWithin bounds asking for versions.
const toolsWithin = 10 * time.Second

// gatherTools asks once per run for the versions of what runs the app.
func (h *heal) gatherTools(ctx context.Context, ev *playbook.Evidence) {
	if h.tools == nil {
		h.tools = h.versions(ctx, ev.Manifests)
	}
	ev.Tools = h.tools
}

func (h *heal) versions(ctx context.Context, manifests map[string]string) map[string]string {
	ask := map[string]bool{}
	for name := range manifests {
		if tool := toolsFor[name]; tool != "" {
			ask[tool] = true
		}
	}
	found := map[string]string{}
	if len(ask) == 0 {
		return found
	}
	var lines []string
	for _, tool := range slices.Sorted(maps.Keys(ask)) {
		arg := "--version"
		if tool == "go" {
			arg = "version"
		}
		lines = append(lines, "echo "+tool+": $("+tool+" "+arg+" 2>&1 | head -n 1)")
	}
	out, _, err := h.exec(ctx, h.command(strings.Join(lines, "; "), driver.ProfileAgent), toolsWithin, 4<<10)
	h.missed(ctx, "tool versions", err)
	for l := range strings.Lines(out) {
		if name, version, ok := strings.Cut(l, ": "); ok && ask[name] {
			found[name] = line(h.redact(version), 100)
		}
	}
	return found
}
