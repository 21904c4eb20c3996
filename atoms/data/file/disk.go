package file

import (
	"cmp"
	"io"
	"os"
)

// A disk is all that the engine does to files, so that a test can take a disk that loses
// power. Paths are full.
type disk interface {
	mkdir(dir string) error
	names(dir string) ([]string, error)
	read(path string, most int64) ([]byte, error) // its first bytes
	create(path string) (writer, error)           // which must not be there
	rename(from, to string) error                 // replaces what is there
	remove(path string) error
	syncDir(dir string) error // makes what create, rename and remove did there durable
	openLock(path string) (locker, error)
}

// A writer is a file that is being written. Sync makes what has been written durable.
type writer interface {
	io.WriteCloser
	Sync() error
}

// A locker is a file that at most one locker in all processes has locked. It is unlocked
// when it is closed, and when its process ends.
type locker interface {
	// lock reports whether it has locked the file; if wait is set, it waits for that.
	lock(wait bool) (bool, error)
	unlock() error
	Close() error
}

// osDisk is the disk of the operating system.
type osDisk struct{}

func (osDisk) mkdir(dir string) error       { return os.Mkdir(dir, 0o700) }
func (osDisk) rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) remove(path string) error     { return os.Remove(path) }

func (osDisk) create(path string) (writer, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (osDisk) names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (osDisk) read(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func (osDisk) syncDir(dir string) error {
	if !dirsSync {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (osDisk) openLock(path string) (locker, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	return osLock{f}, err
}

type osLock struct{ *os.File }

func (l osLock) lock(wait bool) (bool, error) {
	err := l.control(func(handle uintptr) error { return lockFile(handle, wait) })
	if err == errLocked {
		return false, nil
	}
	return err == nil, err
}

func (l osLock) unlock() error { return l.control(unlockFile) }

// control calls fn with the handle of the file, which is not closed meanwhile.
func (l osLock) control(fn func(handle uintptr) error) error {
	conn, err := l.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(handle uintptr) { err = fn(handle) })
	return cmp.Or(failed, err)
}
