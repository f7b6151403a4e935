//go:build linux

package host

import (
	"io/fs"
	"os"
	"path"

	"sbx/engine"
	"sbx/engine/driver"
)

// maxTemplate bounds what a template may unpack.
const maxTemplate = 1 << 30

// unpack makes the directory dir from a template.
func unpack(dir string, template func(driver.FileWriter) error) error {
	if template == nil {
		return engine.Errorf(engine.Internal, "make the workspace: the template is missing")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return makeError(err)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return makeError(err)
	}
	defer r.Close()
	return makeError(template(&unpacker{root: r}))
}

// unpacker writes the files of a template beneath a root.
type unpacker struct {
	root    *os.Root
	written int64
}

// WriteFile makes a regular file that was not there.
func (u *unpacker) WriteFile(name string, mode uint32, data []byte) error {
	name, err := cleanName(name)
	if err != nil {
		return err
	}
	if u.written += int64(len(data)); u.written > maxTemplate {
		return engine.Errorf(engine.Exhausted, "the template has more than %s", engine.Size(maxTemplate))
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fileError("unpack", name, err)
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fileError("unpack", name, err)
	}
	_, err = file.Write(data)
	if err == nil {
		// Readable for its owner whatever the template says, and never setuid.
		err = file.Chmod(fs.FileMode(mode)&0o755 | 0o600)
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return fileError("unpack", name, err)
}
