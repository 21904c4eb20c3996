//go:build !windows

package sqlitewriter

import (
	"os"
	"syscall"
)

// lockFile locks a file. It waits for others that have it open and locked.
func lockFile(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}

func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
