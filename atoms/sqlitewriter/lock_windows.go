package sqlitewriter

import (
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const lockfileExclusiveLock = 2

// lockFile locks the first byte of a file. It waits for other handles that have locked it.
func lockFile(f *os.File) error {
	var at syscall.Overlapped
	if ok, _, err := lockFileEx.Call(f.Fd(), lockfileExclusiveLock, 0, 1, 0, uintptr(unsafe.Pointer(&at))); ok == 0 {
		return err
	}
	return nil
}
