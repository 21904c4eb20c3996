package filelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/filelock"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func open(t *testing.T, path string) *filelock.Lock {
	t.Helper()
	lock, err := filelock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	return lock
}

// For the system, two opened files of one path are like two processes.
func TestOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	locks := []*filelock.Lock{open(t, path), open(t, path)}
	var inside, total atomic.Int32 // atomic, because the race detector does not know such locks
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				release, err := locks[i%2].Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				coretest.Check(t, inside.Add(1) == 1, "two at once")
				total.Add(1)
				inside.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
	coretest.Check(t, total.Load() == 8*50, "got %d turns", total.Load())
}

// A wait ends with its context, and leaves the lock to others.
func TestContextEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	mine, other := open(t, path), open(t, path)
	release, err := other.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	for range 2 { // one waits for the second Lock, one for the first
		wg.Go(func() {
			if _, err := mine.Acquire(ctx); !errors.Is(err, cause) {
				t.Errorf("got %v, want the cause", err)
			}
		})
	}
	time.Sleep(time.Millisecond) // so that they probably wait already; the result does not depend on it
	cancel(cause)
	wg.Wait()
	if _, err := mine.Acquire(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
	release()
	release() // a second release does nothing
	for range 2 {
		release, err := mine.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
}

func TestClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	mine, other := open(t, path), open(t, path)
	if _, err := mine.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	mine.Close()
	if _, err := other.Acquire(t.Context()); err != nil {
		t.Errorf("after Close: %v", err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		closed := open(t, path)
		closed.Close()
		if _, err := closed.Acquire(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("got %v, want that the file is closed", err)
		}
	}
	if _, err := filelock.Open(filepath.Join(path, "x")); err == nil {
		t.Error("a lock in a file was opened")
	}
}
