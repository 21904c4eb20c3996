//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package file

import "errors"

const dirsSync, readsLock = false, false

func (osLock) lock(bool) (bool, error) { return false, errors.ErrUnsupported }
func (osLock) unlock() error           { return nil }
