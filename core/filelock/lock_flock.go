//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelock

import "syscall"

const supported = true

func tryLock(handle uintptr) (bool, error) {
	err := flock(handle, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func waitLock(handle uintptr) (bool, error) { return true, flock(handle, syscall.LOCK_EX) }
func unlock(handle uintptr) (bool, error)   { return true, flock(handle, syscall.LOCK_UN) }

func flock(handle uintptr, how int) error {
	for {
		if err := syscall.Flock(int(handle), how); err != syscall.EINTR {
			return err
		}
	}
}
