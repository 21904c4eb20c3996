// Package filelock lets processes take turns, by an advisory lock on a file. It is for
// processes that write to the same directory or database, for example.
//
//	lock, err := filelock.Open("app.db.lock")
//	…
//	release, err := lock.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer release()
//
// The lock ends with the process that holds it, however the process ends. The file stays:
// do not delete it while a process uses it, because that breaks the lock. It needs a local
// file system. Callers in one process get the lock in about the order in which they ask for
// it. Between processes, the operating system decides.
package filelock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
)

// A Lock is a lock file. At most one caller, in one process, holds the lock; two Locks of one
// file in the same process exclude each other as well. Make one with [Open]. All methods are
// safe for concurrent use.
type Lock struct {
	file *os.File
	turn chan struct{} // has a value while a caller has the lock, or waits for other processes
}

// Open opens the lock file, and makes it if there is none; its directory must exist. It
// locks nothing. An error comes from package os, or is errors.ErrUnsupported if the
// operating system has no such locks.
func Open(path string) (*Lock, error) {
	if !supported {
		return nil, fmt.Errorf("filelock: %w", errors.ErrUnsupported)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	return &Lock{file, make(chan struct{}, 1)}, nil
}

// Acquire waits for the lock and returns a function that releases it, which may be called many
// times. If ctx ends first, or has ended before the call, it returns the cause of ctx.
func (l *Lock) Acquire(ctx context.Context) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if ok, err := l.control(tryLock); ok || err != nil {
		return l.locked(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := l.control(waitLock)
		waited <- err
	}()
	select {
	case err := <-waited:
		return l.locked(err)
	case <-ctx.Done():
		go func() { // a wait for another process cannot be interrupted
			if release, err := l.locked(<-waited); err == nil {
				release()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func (l *Lock) locked(err error) (release func(), failed error) {
	if err != nil {
		<-l.turn
		return nil, fmt.Errorf("filelock: %s: %w", l.file.Name(), err)
	}
	return sync.OnceFunc(func() {
		_, _ = l.control(unlock) // fails only if the file is not locked, or is closed
		<-l.turn
	}), nil
}

// Close closes the file, which releases the lock for other Locks. A later Acquire fails. An
// Acquire that waits goes on until its context ends. A second Close is an error.
func (l *Lock) Close() error { return l.file.Close() }

// control calls fn with the file's handle, which stays open meanwhile.
func (l *Lock) control(fn func(handle uintptr) (bool, error)) (ok bool, err error) {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return false, err
	}
	failed := conn.Control(func(handle uintptr) { ok, err = fn(handle) })
	return ok, cmp.Or(failed, err)
}
