//go:build linux

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sbx/engine"
)

// Save keeps the workspace as it is. A workspace that is as the last Save saw
// it costs one walk and no process.
//
// Not kept are, beside what can be rebuilt and git directories: FIFOs, sockets
// and devices; what the sandbox's own user can't read; the names that git has
// for itself (a link called .gitmodules); times, extended attributes, and of
// modes all but the executable bit and whether others may read.
func (c *checkpoints) Save(ctx context.Context, _ string) (string, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	notes := c.notes()
	for try := 1; ; try++ {
		found, err := c.b.scan(ctx)
		if err != nil {
			return "", err
		}
		if found.signature != "" && found.signature == notes.Signature {
			return notes.Tree, nil
		}
		tree, err := c.write(ctx, found, try == 3)
		if err == nil {
			return tree, c.remember(notes, tree, found)
		}
		// What the walk found may be gone or something else by now, and an
		// index may be broken: look again, the last time without the index.
		if try == 3 || !errors.As(err, new(*gitError)) || diskFull(err) {
			return "", gitFailed("save checkpoint", err)
		}
	}
}

// zeroMode is what "update-index --index-info" takes for "forget this path".
const zeroMode = "0 0000000000000000000000000000000000000000\t"

const saveTree = `
git update-index -z --add --remove --stdin
tree=$(git write-tree)
git update-ref refs/sbx/$tree $tree
echo $tree
`

// write brings the index to what was found and keeps the tree.
func (c *checkpoints) write(ctx context.Context, found *scan, anew bool) (string, error) {
	prepare := `rm -f "$GIT_DIR/index.lock"` + "\n" // nobody else is at it: we hold the lock
	if anew {
		prepare += `rm -f "$GIT_DIR/index"` + "\n"
	}
	out, err := c.git(ctx, prepare+"git ls-files -z", nil)
	if err != nil {
		return "", err
	}
	if gone := found.gone(out); len(gone) > 0 {
		if _, err := c.git(ctx, "git update-index -z --index-info", gone); err != nil {
			return "", err
		}
	}
	var names bytes.Buffer
	for _, name := range found.names {
		names.WriteString(name)
		names.WriteByte(0)
	}
	out, err = c.git(ctx, saveTree, names.Bytes(), "GIT_WORK_TREE=.")
	if err != nil {
		return "", err
	}
	tree := strings.TrimSpace(string(out))
	if !isOID(tree) {
		return "", engine.Errorf(engine.Internal, "save checkpoint: git named no tree")
	}
	return tree, nil
}

// gone are the index's paths (NUL-separated) that are not in the workspace any
// more, as input for update-index. They go first: a file may have become a
// directory.
func (s *scan) gone(index []byte) []byte {
	there := make(map[string]bool, len(s.names))
	for _, name := range s.names {
		there[name] = true
	}
	var gone bytes.Buffer
	for name := range strings.SplitSeq(strings.TrimSuffix(string(index), "\x00"), "\x00") {
		if name != "" && !there[name] && !covers(s.closed, name) {
			gone.WriteString(zeroMode + name + "\x00")
		}
	}
	return gone.Bytes()
}

// notes are what the engine remembers of checkpoints beside git: a cache of
// the last Save, and each tree's extra.
type notes struct {
	Signature string           `json:"signature,omitempty"`
	Tree      string           `json:"tree,omitempty"`
	Extra     map[string]extra `json:"extra,omitempty"`
}

// notes reads them. They are a convenience: unreadable ones are none.
func (c *checkpoints) notes() notes {
	var n notes
	data, err := os.ReadFile(c.b.shadow() + ".json")
	if err != nil || json.Unmarshal(data, &n) != nil {
		n = notes{}
	}
	if n.Extra == nil {
		n.Extra = make(map[string]extra)
	}
	return n
}

func (c *checkpoints) remember(n notes, tree string, found *scan) error {
	n.Tree, n.Signature = tree, found.signature
	n.Extra[tree] = found.extra
	return c.writeNotes(n)
}

// forget drops what is noted of trees that are not in keep.
func (c *checkpoints) forget(keep []string) error {
	n := c.notes()
	for tree := range n.Extra {
		if !slices.Contains(keep, tree) {
			delete(n.Extra, tree)
		}
	}
	if !slices.Contains(keep, n.Tree) {
		n.Tree, n.Signature = "", ""
	}
	return c.writeNotes(n)
}

func (c *checkpoints) writeNotes(n notes) error {
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	name := c.b.shadow() + ".json"
	err = os.WriteFile(name+".new", data, 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return fileError("note", "checkpoints", err)
	}
	return err
}
