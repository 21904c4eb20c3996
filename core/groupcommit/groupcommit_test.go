package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func open[T any](t testing.TB, commit func(context.Context, []T, []error) error, opts Options) *Committer[T] {
	t.Helper()
	c, err := New(commit, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func checkEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

func checkIs(t testing.TB, what string, got, want error) {
	t.Helper()
	coretest.Check(t, errors.Is(got, want), "%s: got %v, want %v", what, got, want)
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		c := open(t, func(ctx context.Context, bodies []coretest.Body, errs []error) error {
			for i, body := range bodies {
				errs[i] = coretest.Run(ctx, body)
			}
			return nil
		}, Options{MaxBatch: 1})
		return coretest.Subject{Lifecycle: c, Submit: func(ctx context.Context, b coretest.Body) error {
			_, err := c.add(ctx, b)
			return err
		}}
	})
}

// Items that come while a commit runs share the next ones, in order, at most MaxBatch each.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := make(chan bool)
		var groups [][]int
		c := open(t, func(_ context.Context, items []int, errs []error) error {
			<-begin
			groups = append(groups, slices.Clone(items))
			for i, n := range items {
				if n == 3 {
					errs[i] = errors.ErrUnsupported
				}
			}
			if slices.Contains(items, 5) {
				return errors.New("the whole group")
			}
			return nil
		}, Options{MaxBatch: 4})
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for n := range errs {
			wg.Go(func() { errs[n] = c.Do(t.Context(), n) })
			synctest.Wait()
		}
		close(begin)
		wg.Wait()
		for i, want := range [][]int{{0}, {1, 2, 3, 4}, {5, 6, 7}} {
			if !slices.Equal(groups[i], want) {
				t.Errorf("group %d: got %v, want %v", i, groups[i], want)
			}
		}
		checkIs(t, "an item that failed alone", errs[3], errors.ErrUnsupported)
		checkEqual(t, "an item beside it", errs[4], nil)
		checkEqual(t, "items of a group that failed", errs[5] != nil && errs[5] == errs[7], true)
	})
}

// The error of a caller that gives up says whether its item may be committed.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := make(chan bool)
		var committed []int
		c := open(t, func(_ context.Context, items []int, _ []error) error {
			<-begin
			committed = append(committed, items...)
			return nil
		}, Options{MaxQueued: 2})
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		var errs [4]error
		var wg sync.WaitGroup
		for n := range errs { // one is in a commit, two are in the queue, one has no room
			wg.Go(func() { errs[n] = c.Do(ctx, n) })
			synctest.Wait()
		}
		cancel(cause)
		wg.Wait()
		for n, err := range errs {
			checkIs(t, "the cause", err, cause)
			checkEqual(t, "undecided", errors.Is(err, ErrUndecided), n == 0)
		}
		checkIs(t, "a context that has ended", c.Do(ctx, 4), cause)
		close(begin)
		checkIs(t, "the next", c.Do(t.Context(), 5), nil)
		checkEqual(t, "committed", slices.Equal(committed, []int{0, 5}), true)
	})
}

type single int

func (s single) Alone() bool { return s < 0 }

// Items can join a group, and leave it, until Begin has returned. Some items need their own
// group.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, refused := make(chan bool), errors.New("on purpose")
		var calls []any
		c := open(t, func(_ context.Context, items []single, _ []error) error {
			calls = append(calls, fmt.Sprint(items))
			return nil
		}, Options{MaxBatch: 4, Begin: func(ctx context.Context) (func(), error) {
			select {
			case ok := <-let:
				if !ok {
					return nil, refused
				}
				return func() { calls = append(calls, "end") }, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}})
		var all sync.WaitGroup
		do := func(ctx context.Context, item single, want error) {
			all.Go(func() { checkIs(t, fmt.Sprint(item), c.Do(ctx, item), want) })
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		do(ctx, 1, context.Canceled)
		cancel()
		synctest.Wait()
		let <- true // for nothing
		synctest.Wait()
		for _, item := range []single{2, 3, -4, -5, 6} {
			do(t.Context(), item, nil)
		}
		for range 4 {
			let <- true
		}
		all.Wait()
		want := "[end [2 3] end [-4] end [-5] end [6] end]"
		checkEqual(t, "calls", fmt.Sprint(calls), want)
		for range 5 { // more than MaxBatch, and some alone
			do(t.Context(), 7, refused)
			do(t.Context(), -7, refused)
		}
		let <- false
		all.Wait()
		do(t.Context(), 8, core.ErrClosed)
		checkIs(t, "Close", c.Close(), nil)
		all.Wait()
		checkEqual(t, "calls", fmt.Sprint(calls), want)
	})
}

// No caller waits for ever: not after Close, not after a panic, not inside a commit.
func TestEveryItemEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Committer[string]
		c = open(t, func(ctx context.Context, items []string, _ []error) error {
			switch items[0] {
			case "panic":
				panic("on purpose")
			case "inside":
				return errors.Join(c.Do(ctx, "x"), c.Flush(ctx), c.Drain(ctx), c.Stop(ctx))
			case "until closed":
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}, Options{MaxBatch: 1})
		var wg sync.WaitGroup
		results := map[string]error{}
		var mu sync.Mutex
		do := func(item string) {
			wg.Go(func() {
				err := c.Do(t.Context(), item)
				mu.Lock()
				defer mu.Unlock()
				results[item] = err
			})
		}
		do("panic")
		do("after it")
		do("inside")
		wg.Wait()
		checkEqual(t, "panic", results["panic"] != nil, true)
		checkIs(t, "after a panic", results["after it"], nil)
		checkIs(t, "inside a commit", results["inside"], core.ErrWouldDeadlock)
		do("until closed")
		synctest.Wait()
		do("waiting")
		synctest.Wait()
		checkIs(t, "Close", c.Close(), nil)
		wg.Wait()
		checkEqual(t, "running at Close", results["until closed"] != nil, true)
		checkIs(t, "waiting at Close", results["waiting"], core.ErrClosed)
		checkIs(t, "after Close", c.Do(t.Context(), "late"), core.ErrClosed)
	})
}

// Items accepted before Complete are committed, even if a Do comes at the same moment, or if a
// commit panics later.
func TestCompleteLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := make(chan bool)
		var committed []int
		c := open(t, func(_ context.Context, items []int, _ []error) error {
			<-begin
			if items[0] == 2 {
				panic("on purpose")
			}
			committed = append(committed, items...)
			return nil
		}, Options{MaxBatch: 1})
		errs := make([]error, 6)
		var all sync.WaitGroup
		for n := range errs {
			all.Go(func() { errs[n] = c.Do(t.Context(), n) })
			synctest.Wait()
		}
		begin <- true // now the second operation commits the others, one by one
		synctest.Wait()
		c.Complete()
		late := &entry[int]{item: 6, done: make(chan error, 1)} // the Do of this item has seen an open intake
		c.room <- struct{}{}
		c.push(late)
		checkIs(t, "late", <-late.done, core.ErrClosed)
		close(begin)
		all.Wait()
		for n, err := range errs {
			checkEqual(t, fmt.Sprint("error of ", n), err != nil, n == 2)
		}
		checkEqual(t, "committed", fmt.Sprint(committed), "[0 1 3 4 5]")
		checkIs(t, "Drain", c.Drain(t.Context()), nil)
		checkEqual(t, "room taken", len(c.room), 0)
	})
}

func TestOptions(t *testing.T) {
	commit := func(context.Context, []int, []error) error { return nil }
	if _, err := New(commit, Options{MaxQueued: -1}); err == nil {
		t.Error("a negative MaxQueued was accepted")
	}
	if _, err := New[int](nil, Options{}); err == nil {
		t.Error("nil was accepted")
	}
	checkEqual(t, "with no limit of a batch", open(t, commit, Options{MaxBatch: -1}).Do(t.Context(), 1), nil)
}
