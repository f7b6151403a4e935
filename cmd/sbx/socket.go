package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"sbx/engine"
)

// maxSocketPath is what fits into sockaddr_un on every system, less a little.
const maxSocketPath = 100

// socketPath is where the engine of a data directory listens. A directory
// whose path is too long for a socket gets one under the user's own directory
// for temporary files, named by a hash.
func socketPath(home string) string {
	path := filepath.Join(home, "engine.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(home))
	return filepath.Join(os.TempDir(), fmt.Sprintf("sbx-%d", os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
}

// listenSocket listens on the engine's own socket, which only its user may
// open. Whoever owns the data directory's lock may remove a stale one.
func listenSocket(home string) (net.Listener, error) {
	path := socketPath(home)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := checkSocketDir(home); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// removeSocket removes the socket, and a directory that was made for it when
// nobody else's is in it.
func removeSocket(home string) {
	path := socketPath(home)
	_ = os.Remove(path) // closing has removed it already, or the next engine does
	if dir := filepath.Dir(path); dir != home {
		_ = os.Remove(dir) // unless another engine's socket is there
	}
}

// checkSocketDir refuses a directory that somebody else could put a socket of
// his own into: who dials must be sure to reach the engine of this user. Others
// may pass through it, as sandboxes that nothing hides the data directory from
// do; the socket's own mode keeps them off it.
func checkSocketDir(home string) error {
	dir := filepath.Dir(socketPath(home))
	fi, err := os.Lstat(dir)
	if err != nil {
		return engine.Errorf(engine.Internal, "the engine's socket: %w", err)
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && dir != home && st.Uid != uint32(os.Getuid()) {
		return engine.Errorf(engine.Forbidden, "%s is not yours: the engine's socket can't be there", dir).
			WithHint("set SBX_HOME to a path of at most %d characters", maxSocketPath-len("/engine.sock"))
	}
	if dir == home { // which may be a link
		if fi, err = os.Stat(dir); err != nil {
			return engine.Errorf(engine.Internal, "the engine's socket: %w", err)
		}
	}
	if !fi.IsDir() || fi.Mode().Perm()&0o022 != 0 {
		return engine.Errorf(engine.Forbidden, "others may write to %s: the engine's socket can't be there", dir).
			WithHint("chmod 700 %s", dir)
	}
	return nil
}
