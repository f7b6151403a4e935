//go:build linux

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A view is what every box may read of this machine.
type view struct {
	base  []string    // directories of the system
	tools []string    // what the engine's PATH needs beyond them
	links [][2]string // symbolic links at the root: name, target
}

// shownDirs hold what programs need; /opt, /srv, /var, /run, /home and the
// like aren't shown but where PATH leads into them.
var shownDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"}

// see finds out what boxes are shown. Everything on the engine's PATH works
// inside: language toolchains often live under a home directory or /opt. Shown
// is the prefix of an installation, never a home, nor what has the engine's
// directory in it.
func (h *Host) see() {
	path := enginePath()
	h.readEnv(path)
	v := &h.view
	for _, dir := range shownDirs {
		fi, err := os.Lstat(dir)
		switch {
		case err != nil:
		case fi.Mode()&os.ModeSymlink != 0:
			if to, err := os.Readlink(dir); err == nil {
				v.links = append(v.links, [2]string{dir, to})
			}
		default:
			v.base = append(v.base, dir)
		}
	}
	private := h.privateDirs()
	for _, dir := range path {
		v.showDir(dir, private)
	}
	for _, dir := range path {
		v.showLinks(dir, private)
	}
	if to, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		v.show(to, private)
	}
	slices.SortFunc(v.tools, func(a, b string) int { return len(a) - len(b) })
}

// privateDirs must not come into view as a part of something else.
func (h *Host) privateDirs() []string {
	dirs := []string{"/", "/home", "/root", "/tmp", "/run", "/var", "/proc", "/sys", "/dev", h.cfg.Dir}
	for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		if dir := os.Getenv(name); filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dirs = append(dirs, real)
			}
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, home, filepath.Join(home, ".config"), filepath.Join(home, ".local", "share"), filepath.Join(home, ".ssh"))
	}
	return dirs
}

// showDir shows a directory of programs with what they need around it.
func (v *view) showDir(dir string, private []string) {
	v.show(prefixOf(dir, private), private)
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
		v.show(prefixOf(real, private), private)
	}
	v.show(dir, private)
}

// showLinks shows where links of a directory of programs lead: a python in
// /usr/local/bin may live anywhere.
func (v *view) showLinks(dir string, private []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		name := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(name); err != nil || !strings.Contains(to, "/") {
			continue // to a neighbour, which is looked at by itself
		}
		to, err := filepath.EvalSymlinks(name)
		if err != nil || v.shows(to) {
			continue
		}
		if prefix := prefixOf(filepath.Dir(to), private); prefix != filepath.Dir(to) {
			v.show(prefix, private)
		} else {
			v.show(to, private)
		}
	}
}

// prefixOf is the installation that a directory of programs belongs to, or the
// directory itself.
func prefixOf(dir string, private []string) string {
	if strings.HasPrefix(dir, "/nix/") {
		return "/nix/store" // programs there name others by path
	}
	prefix := filepath.Dir(dir)
	switch filepath.Base(dir) {
	case "bin", "sbin", "shims", "libexec":
	default:
		return dir
	}
	if filepath.Base(prefix) == ".local" || holdsAny(prefix, private) {
		return dir
	}
	for _, mark := range []string{"lib", "lib64", "libexec", "versions", "installs"} {
		if fi, err := os.Stat(filepath.Join(prefix, mark)); err == nil && fi.IsDir() {
			return prefix
		}
	}
	return dir
}

// show adds a path unless it is in view already or has something private in it.
func (v *view) show(path string, private []string) {
	if v.shows(path) || holdsAny(path, private) {
		return
	}
	v.tools = append(v.tools, path)
}

func (v *view) shows(path string) bool {
	for _, link := range v.links {
		if within(path, link[0]) {
			return true // its target is under one of the bases
		}
	}
	return slices.ContainsFunc(v.base, func(dir string) bool { return within(path, dir) }) ||
		slices.ContainsFunc(v.tools, func(dir string) bool { return within(path, dir) })
}

func holdsAny(dir string, private []string) bool {
	return slices.ContainsFunc(private, func(p string) bool { return within(p, dir) })
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
