package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"sbx/engine"
)

// OwnedError says that another process owns the directory. It is an
// [engine.Conflict].
type OwnedError struct {
	PID int // 0 if the owner had not written it yet
	Dir string
}

func (e *OwnedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another sbx", e.Dir)
	}
	return fmt.Sprintf("%s is in use by another sbx (pid %d)", e.Dir, e.PID)
}

// Unwrap gives the code.
func (e *OwnedError) Unwrap() error { return engine.Conflict }

// lockDir makes this process the directory's one owner until the file is
// closed. The lock is the kernel's, on the open file: it ends with its holder,
// however that dies, so there is no stale lock to clean up. The file stays, for
// removing it would let two processes lock two files of one name.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		return nil, &OwnedError{PID: ownerOf(f), Dir: dir}
	}
	if err == nil {
		err = writeOwner(f)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

func writeOwner(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// ownerOf reads who holds the lock, 0 if it does not say.
func ownerOf(f *os.File) int {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}
