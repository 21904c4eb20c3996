package sqlitewriter

import (
	"context"
	"os"
)

// lock is the lock file that processes hold while they write. SQLite's own locks keep the
// file intact. This one makes processes take turns, which SQLite's busy timeout does not.
type lock struct {
	path string
	file *os.File // nil: it is not open
}

// acquire takes the lock. It waits on a goroutine, because the system call cannot be given up.
func (l *lock) acquire(ctx context.Context) (err error) {
	if l.file == nil {
		if l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
			return err
		}
	}
	file, got := l.file, make(chan error, 1)
	go func() { got <- lockFile(file) }()
	select {
	case err := <-got:
		return os.NewSyscallError("lock file", err)
	case <-ctx.Done():
		l.file = nil
		go func() {
			<-got
			_ = file.Close() // which unlocks it
		}()
		return context.Cause(ctx)
	}
}

func (l *lock) release() { _ = unlockFile(l.file) } // fails only if it is not locked

func (l *lock) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing was written
	}
}
