//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package file

import "errors"

const dirsSync, readsLock = false, false

var errLocked = errors.New("file: there is a lock")

func lockFile(uintptr, bool) error { return errors.ErrUnsupported }
func unlockFile(uintptr) error     { return errors.ErrUnsupported }
