package sqlitewriter

import (
	"context"
	"os"
)

// acquireLock locks the lock file that processes hold while they write; to close it releases
// the lock. SQLite's own locks keep the database intact. This one makes processes take
// turns, which SQLite's busy timeout does not.
func acquireLock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	got := make(chan error, 1)
	go func() { got <- lockFile(f) }() // the system call cannot be given up
	select {
	case err := <-got:
		return f, os.NewSyscallError("lock file", err)
	case <-ctx.Done():
		go func() {
			<-got
			_ = f.Close()
		}()
		return nil, context.Cause(ctx)
	}
}
