package file

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/ephemeralgo/ephemeral/core/filelock"
)

// A disk has all operations of the engine on files. So a test can use a disk that loses power.
// Paths are full.
type disk interface {
	mkdir(dir string) error
	stat(dir string) error
	list(dir string) ([]fs.DirEntry, error)
	read(path string, most int64) ([]byte, error) // its first bytes
	create(path string) (writer, error)           // the file must not exist
	rename(from, to string) error                 // replaces an existing file
	remove(path string) error
	syncDir(dir string) error // makes create, rename and remove in dir durable
	lock(path string) (lock, error)
}

// A writer is a file that is being written. Sync makes the bytes durable.
type writer interface {
	io.WriteCloser
	Sync() error
}

// A lock is a [filelock.Lock].
type lock interface {
	Acquire(ctx context.Context) (release func(), err error)
	Close() error
}

// osDisk is the disk of the operating system.
type osDisk struct{}

func (osDisk) mkdir(dir string) error                 { return os.Mkdir(dir, 0o700) }
func (osDisk) stat(dir string) error                  { _, err := os.Stat(dir); return err }
func (osDisk) list(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }
func (osDisk) rename(from, to string) error           { return os.Rename(from, to) }
func (osDisk) remove(path string) error               { return os.Remove(path) }

func (osDisk) lock(path string) (lock, error) {
	l, err := filelock.Open(path)
	permit(path)
	return l, err
}

func (osDisk) create(path string) (writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	permit(path)
	return f, err
}

// permit gives a file the permissions of its directory, whatever the umask is. It does nothing if
// another user has made the file, or if the file system has no permissions.
func permit(path string) {
	if dir, err := os.Stat(filepath.Dir(path)); err == nil {
		_ = os.Chmod(path, dir.Mode().Perm()&0o666)
	}
}

func (osDisk) read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening it could wait for ever
		err = fmt.Errorf("file: %s is not a regular file, but %s", path, info.Mode().Type())
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func (osDisk) syncDir(dir string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync directories
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
