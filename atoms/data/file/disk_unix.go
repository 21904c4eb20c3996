//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package file

import "syscall"

const (
	dirsSync  = true  // directories can be synced
	readsLock = false // a file can be replaced while it is read
	errLocked = syscall.EWOULDBLOCK
)

func lockFile(handle uintptr, wait bool) error {
	if wait {
		return flock(handle, syscall.LOCK_EX)
	}
	return flock(handle, syscall.LOCK_EX|syscall.LOCK_NB)
}

func unlockFile(handle uintptr) error { return flock(handle, syscall.LOCK_UN) }

func flock(handle uintptr, how int) error {
	for {
		if err := syscall.Flock(int(handle), how); err != syscall.EINTR {
			return err
		}
	}
}
