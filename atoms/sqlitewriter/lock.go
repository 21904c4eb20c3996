package sqlitewriter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lock is the lock file that processes hold while they write. SQLite's own locks keep the
// file intact. This one makes processes take turns, which SQLite's busy timeout does not.
//
// There are two files, because a process that has just written would win a single lock
// again and again. The next process to write holds the second lock while it waits for
// the first one, so the process that has just written has to wait behind it.
type lock struct {
	path       string
	main, next *os.File
}

func openLock(path string) (*lock, error) {
	l := &lock{path: path + ".lock"}
	var err error
	if l.main, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("sqlitewriter: lock file: %w", err)
	}
	if l.next, err = os.OpenFile(l.path+"-next", os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		l.close()
		return nil, fmt.Errorf("sqlitewriter: lock file: %w", err)
	}
	return l, nil
}

// acquire takes the lock, or returns false when stop returns true. A blocking system call
// could not be given up, so it asks again: after a twentieth of the time it has waited.
func (l *lock) acquire(stop func() bool) (bool, error) {
	if ok, err := await(l.next, stop); !ok {
		return false, l.explain(err)
	}
	ok, err := await(l.main, stop)
	return ok, l.explain(errors.Join(err, unlockFile(l.next)))
}

func await(f *os.File, stop func() bool) (bool, error) {
	const least, most = 200 * time.Microsecond, 10 * time.Millisecond
	for begun := time.Now(); ; {
		ok, err := tryLockFile(f)
		if ok || err != nil || stop() {
			return ok, err
		}
		time.Sleep(min(least+time.Since(begun)/20, most))
	}
}

func (l *lock) release() { _ = unlockFile(l.main) } // fails only if it is not locked

func (l *lock) close() {
	_ = l.main.Close() // nothing was written
	if l.next != nil {
		_ = l.next.Close()
	}
}

func (l *lock) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlitewriter: lock file: %w", &fs.PathError{Op: "lock", Path: l.path, Err: err})
}
