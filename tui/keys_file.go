package tui

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
)

// KeysFile is what keys.toml says: a preset, and keys by the names of what they
// do. Whoever opens the dashboard decodes it; package tui knows no TOML.
type KeysFile struct {
	Preset string              `toml:"preset"`
	Keys   map[string][]string `toml:"keys"`
}

// presets are sets of keys that people bring from other programs.
var presets = map[string]map[string][]string{
	"k9s": {"tab.overview": {"d", "1"}, "tab.logs": {"l", "3"}, "move.right": {"right"}, "files.delete": {"delete"}},
}

// CheckKeys is what is wrong with a keys file, a line each; nothing if all of
// it can be had.
func CheckKeys(f KeysFile) []string {
	_, bad := remap(f)
	return bad
}

// KeyLine is one key as sbx tui --keys prints it.
type KeyLine struct {
	Name  string   `json:"name"`
	Keys  []string `json:"keys"`
	Words string   `json:"words"`
}

// KeyLines are all keys as a keys file leaves them.
func KeyLines(f KeysFile) []KeyLine {
	k, _ := remap(f)
	var list []KeyLine
	for _, n := range k.named() {
		list = append(list, KeyLine{n.name, n.key.Keys(), n.key.Help().Desc})
	}
	return list
}

// remap is the keys with what a file says of them, and what of it can't be had:
// that part is left as it is built in.
func remap(f KeysFile) (keyMap, []string) {
	k := newKeys()
	var bad []string
	preset, known := presets[f.Preset]
	if f.Preset != "" && !known {
		bad = append(bad, fmt.Sprintf("no preset %q: there is %s", f.Preset, strings.Join(slices.Sorted(maps.Keys(presets)), ", ")))
	}
	for _, layer := range []map[string][]string{preset, f.Keys} {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			before := k
			if why := k.rebind(name, layer[name]); why != "" {
				bad = append(bad, why)
				continue
			}
			if clash := k.clash(); clash != "" {
				k = before
				bad = append(bad, fmt.Sprintf("%s: %s", name, clash))
			}
		}
	}
	return k, bad
}

// keysOf are the keys with what of the file can be had.
func keysOf(f KeysFile) keyMap {
	k, _ := remap(f)
	return k
}

// rebind gives what is called name other keys, or says why it can't.
func (k *keyMap) rebind(name string, keys []string) string {
	list := k.named()
	i := slices.IndexFunc(list, func(n namedKey) bool { return n.name == name })
	if i < 0 {
		return fmt.Sprintf("%q is nothing that has a key: sbx tui --keys lists what has", name)
	}
	if len(keys) == 0 {
		return name + ": name at least one key"
	}
	for j, spelled := range keys {
		canonical, why := keyName(spelled)
		if why != "" {
			return fmt.Sprintf("%s: %q %s", name, spelled, why)
		}
		keys[j] = canonical
	}
	words := list[i].key.Help().Desc
	*list[i].key = key.NewBinding(key.WithKeys(keys...), key.WithHelp(keys[0], words))
	return ""
}

// clash is a key that means two things in one place, or "".
func (k keyMap) clash() string {
	common := append(append(k.everywhere().keys, k.moving().keys...), k.acting().keys...)
	for _, pl := range k.places() {
		taken := map[string]string{}
		for _, b := range append(slices.Clone(common), pl.keys...) {
			for _, name := range b.Keys() {
				if other, ok := taken[name]; ok {
					return fmt.Sprintf("%s would mean %q and %q in %s", name, other, b.Help().Desc, strings.ToLower(pl.title))
				}
				taken[name] = b.Help().Desc
			}
		}
	}
	return ""
}

// baseKeys are the keys with names of their own.
var baseKeys = []string{
	"enter", "esc", "tab", "space", "backspace", "delete", "insert", "up", "down", "left", "right", "home", "end", "pgup", "pgdown",
}

// sameByte are keys that a terminal sends as another one.
var sameByte = map[string]string{"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+[": "esc", "ctrl+h": "backspace"}

// keyName is a key as the terminal's library spells it, or why there is no such
// key.
func keyName(spelled string) (name, why string) {
	name = spelled
	if utf8.RuneCountInString(spelled) > 1 {
		name = strings.ToLower(spelled)
	}
	if other, ok := sameByte[name]; ok {
		return "", "can't be sent by a terminal: it arrives as " + other
	}
	if name == "ctrl+c" {
		return "", "always stops or leaves"
	}
	rest, mods := name, 0
	for _, mod := range []string{"ctrl+", "alt+", "shift+"} {
		if after, ok := strings.CutPrefix(rest, mod); ok && after != "" {
			rest = after
			mods++
		}
	}
	switch {
	case utf8.RuneCountInString(rest) == 1 && rest != " " && rest > " ":
		if strings.Contains(name, "shift+") {
			return "", "is written as the letter itself"
		}
		return name, ""
	case slices.Contains(baseKeys, rest) || functionKey(rest):
		return name, ""
	}
	return "", "is no key: write x, X, ctrl+x, alt+x, f5, enter, space, pgup"
}

func functionKey(s string) bool {
	var n int
	_, err := fmt.Sscanf(s, "f%d", &n)
	return err == nil && n >= 1 && n <= 24 && s == fmt.Sprintf("f%d", n)
}

// ReadKeys reads a keys file with decode; one that isn't there says nothing.
func ReadKeys(name string, decode func([]byte, any) error) (KeysFile, error) {
	var f KeysFile
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("keys: %w", err)
	}
	if err := decode(b, &f); err != nil {
		return KeysFile{}, fmt.Errorf("keys: %s: %w", name, err)
	}
	return f, nil
}
