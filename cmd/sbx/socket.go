package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"

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
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() || fi.Mode().Perm()&0o077 != 0 {
		return nil, engine.Errorf(engine.Internal, "%s is open to others: the engine's socket can't be there", dir).
			WithHint("chmod 700 %s", dir)
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
