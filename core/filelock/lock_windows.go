package filelock

import (
	"syscall"
	"unsafe"
)

const (
	supported = true

	exclusive = uintptr(2)        // LOCKFILE_EXCLUSIVE_LOCK
	noWaiting = uintptr(1)        // LOCKFILE_FAIL_IMMEDIATELY
	violation = syscall.Errno(33) // ERROR_LOCK_VIOLATION
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

func tryLock(handle uintptr) (bool, error) {
	ok, err := call(lockFileEx, handle, exclusive|noWaiting, 0, 1, 0)
	if err == violation {
		return false, nil
	}
	return ok, err
}

func waitLock(handle uintptr) (bool, error) { return call(lockFileEx, handle, exclusive, 0, 1, 0) }
func unlock(handle uintptr) (bool, error)   { return call(unlockFileEx, handle, 0, 1, 0) }

// call calls a function for the first byte of the file: this byte is locked.
func call(proc *syscall.LazyProc, args ...uintptr) (bool, error) {
	overlapped := new(syscall.Overlapped)
	if ok, _, err := proc.Call(append(args, uintptr(unsafe.Pointer(overlapped)))...); ok == 0 {
		return false, err
	}
	return true, nil
}
