package file

import (
	"syscall"
	"unsafe"
)

const (
	dirsSync  = false // Windows cannot sync directories
	readsLock = true  // a file cannot be replaced while it is read
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	failImmediately = 1
	exclusive       = 2
	lockViolation   = syscall.Errno(33)
)

func (l osLock) lock(wait bool) (locked bool, err error) {
	how := uintptr(exclusive)
	if !wait {
		how |= failImmediately
	}
	err = l.control(func(handle uintptr) error {
		return done(lockFileEx.Call(handle, how, 0, 1, 0, uintptr(unsafe.Pointer(new(syscall.Overlapped)))))
	})
	if err == lockViolation {
		return false, nil
	}
	return err == nil, err
}

func (l osLock) unlock() error {
	return l.control(func(handle uintptr) error {
		return done(unlockFileEx.Call(handle, 0, 1, 0, uintptr(unsafe.Pointer(new(syscall.Overlapped)))))
	})
}

func done(ok, _ uintptr, err error) error {
	if ok != 0 {
		return nil
	}
	return err
}
