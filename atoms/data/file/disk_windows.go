package file

import (
	"syscall"
	"unsafe"
)

const (
	dirsSync  = false             // Windows cannot sync directories
	readsLock = true              // a file cannot be replaced while it is read
	errLocked = syscall.Errno(33) // ERROR_LOCK_VIOLATION
	exclusive = uintptr(2)        // LOCKFILE_EXCLUSIVE_LOCK
	noWaiting = uintptr(1)        // LOCKFILE_FAIL_IMMEDIATELY
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

func lockFile(handle uintptr, wait bool) error {
	how := exclusive
	if !wait {
		how |= noWaiting
	}
	return errorOf(lockFileEx.Call(handle, how, 0, 1, 0, uintptr(unsafe.Pointer(new(syscall.Overlapped)))))
}

func unlockFile(handle uintptr) error {
	return errorOf(unlockFileEx.Call(handle, 0, 1, 0, uintptr(unsafe.Pointer(new(syscall.Overlapped)))))
}

func errorOf(ok, _ uintptr, err error) error {
	if ok != 0 {
		return nil
	}
	return err
}
