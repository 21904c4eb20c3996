//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package file

import "syscall"

const (
	dirsSync  = true  // directories can be synced
	readsLock = false // a file can be replaced while it is read
)

func (l osLock) lock(wait bool) (locked bool, err error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	err = l.control(func(handle uintptr) error { return flock(handle, how) })
	if err == syscall.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

func (l osLock) unlock() error {
	return l.control(func(handle uintptr) error { return flock(handle, syscall.LOCK_UN) })
}

func flock(handle uintptr, how int) error {
	for {
		if err := syscall.Flock(int(handle), how); err != syscall.EINTR {
			return err
		}
	}
}
