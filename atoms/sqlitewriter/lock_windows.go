package sqlitewriter

import (
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const lockfileExclusiveLock = 2

// lockFile locks the first byte of a file. It waits for other handles that have locked it.
func lockFile(f *os.File) error { return call(lockFileEx, f.Fd(), lockfileExclusiveLock, 0, 1, 0) }

func unlockFile(f *os.File) error { return call(unlockFileEx, f.Fd(), 0, 1, 0) }

func call(proc *syscall.LazyProc, args ...uintptr) error {
	var at syscall.Overlapped
	if ok, _, err := proc.Call(append(args, uintptr(unsafe.Pointer(&at)))...); ok == 0 {
		return err
	}
	return nil
}
