//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package filelock

import "errors"

const supported = false

func tryLock(uintptr) (bool, error)  { return false, errors.ErrUnsupported }
func waitLock(uintptr) (bool, error) { return false, errors.ErrUnsupported }
func unlock(uintptr) (bool, error)   { return false, errors.ErrUnsupported }
