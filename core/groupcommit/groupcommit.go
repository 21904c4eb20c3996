// Package groupcommit lets concurrent callers share a commit: items that come while one
// commit runs go into the next commit together. So a program can write to a disk or a
// database at full speed, although every caller waits until its item is durable.
//
//	c, err := groupcommit.New(func(ctx context.Context, items []Order, errs []error) error {
//		return insert(ctx, items) // one transaction
//	}, groupcommit.Options{})
//	…
//	err = c.Do(ctx, order) // nil: the transaction with the order is committed
//
// A single caller gets its own commit at once: no commit waits for more callers.
package groupcommit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/internal/check"
)

// ErrUndecided means that it is not known whether the item is committed: the context of the
// caller ended while the commit ran, or the function that commits panicked. After any other
// error the item is not committed, if the function keeps this rule.
var ErrUndecided = errors.New("groupcommit: it is not known whether the item is committed")

// Options configure a [Committer]. The zero value is the default.
type Options struct {
	// Name is the name of the coordinator that runs the commits; "" means "groupcommit".
	Name string
	// Sink gets the signals of that coordinator; nil means a new sink.
	Sink *core.Sink
	// MaxBatch is the largest number of items in one commit; 0 means 256, negative no
	// limit.
	MaxBatch int
	// MaxQueued is how many items may wait for a commit before Do waits for room; 0 means
	// 1024.
	MaxQueued int
	// Begin, if there is one, is called before each commit, for example to take a lock that
	// processes share. Items can be withdrawn until it returns, and items that come
	// meanwhile join the group. The function that it returns is called after the commit, or
	// when no items are left. If it returns an error, all items that wait fail with it. It must
	// not panic.
	Begin func(ctx context.Context) (end func(), err error)
}

func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "groupcommit")
	o.MaxBatch = cmp.Or(o.MaxBatch, 256)
	o.MaxQueued = cmp.Or(o.MaxQueued, 1024)
	if o.Begin == nil {
		o.Begin = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return o, check.Error(o.MaxQueued < 0,
		"groupcommit: Options.MaxQueued must be positive, or 0 for 1024, not %d", o.MaxQueued)
}

// A Committer commits items in groups, one commit at a time, in the order in which Do
// accepted them. Make one with [New]. All methods are safe for concurrent use. It owns a
// goroutine only while there are items; end it with Drain or Close.
//
// Its [core.Control] belongs to the coordinator whose operations run the commits. Stats counts
// these operations: one operation may do many commits, and it fails only if the function
// panics. Flush waits until the items accepted so far are committed or have failed. After
// Complete, Drain, Stop and Close, Do returns [core.ErrClosed]. Stop waits for the commit that
// runs, and Close ends its context as well; items that still wait then fail with that error.
type Committer[T any] struct {
	core.Control
	runs   *core.Coordinator[struct{}] // each operation commits the items that wait when it starts
	commit func(ctx context.Context, items []T, errs []error) error
	begin  func(ctx context.Context) (end func(), err error)
	batch  int
	room   chan struct{} // has one value for each item in the queue

	mu     sync.Mutex
	queue  []*entry[T]
	queued bool // a pending operation will take the queue
	left   int  // how many items, from the front of the queue, the running operation will still take
}

var _ core.Inspector = (*Committer[int])(nil)

// An entry is an item that waits, is being committed, or has been.
type entry[T any] struct {
	item    T
	alone   bool       // needs its own commit
	taken   bool       // from the queue
	commits bool       // a commit has taken the entry
	done    chan error // gets the result; buffered
}

// New makes a committer, or says what is wrong with the options. Commit gets at least one
// item. It sets errs[i] for an item that failed alone; the error it returns is for all
// other items. It must not keep the slices. Its context ends when the committer is closed.
//
// An item with a method Alone() bool that returns true gets its own commit.
func New[T any](commit func(ctx context.Context, items []T, errs []error) error, opts Options) (*Committer[T], error) {
	opts, err := opts.resolved()
	err = cmp.Or(check.Error(commit == nil, "groupcommit: New needs a function that commits"), err)
	if err != nil {
		return nil, err
	}
	c := &Committer[T]{commit: commit, begin: opts.Begin, batch: opts.MaxBatch, room: make(chan struct{}, opts.MaxQueued)}
	c.runs, err = core.NewCoordinator(c.run, core.Options{
		Name: opts.Name, Sink: opts.Sink, MaxConcurrency: 1, OnDone: c.ended,
	})
	if err != nil {
		return nil, fmt.Errorf("groupcommit: %w", err)
	}
	c.Control = c.runs.Control
	return c, nil
}

// Do has item committed and returns when that is done, with the error of its commit. If
// ctx ends before the commit begins, the item is withdrawn and Do returns the cause. If
// ctx ends later, the error also matches [ErrUndecided]. After Complete it returns
// [core.ErrClosed]; inside a commit, [core.ErrWouldDeadlock].
func (c *Committer[T]) Do(ctx context.Context, item T) error {
	e, err := c.add(ctx, item)
	if err != nil {
		return err
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
	}
	if c.withdraw(e) {
		return context.Cause(ctx)
	}
	if !e.commits {
		return <-e.done
	}
	select {
	case err := <-e.done:
		return err
	default:
		return fmt.Errorf("%w: %w", ErrUndecided, context.Cause(ctx))
	}
}

func (c *Committer[T]) add(ctx context.Context, item T) (*entry[T], error) {
	if c.Inside(ctx) {
		return nil, core.ErrWouldDeadlock
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	e := &entry[T]{item: item, done: make(chan error, 1)}
	if item, ok := any(item).(interface{ Alone() bool }); ok {
		e.alone, _ = guard.Value("Alone", item.Alone)
	}
	if c.Stats().Closed {
		<-c.room
		return nil, c.errClosed()
	}
	c.push(e)
	return e, nil
}

func (c *Committer[T]) push(e *entry[T]) {
	c.mu.Lock()
	c.queue = append(c.queue, e)
	first := !c.queued
	c.queued = true
	c.mu.Unlock()
	if first {
		c.start() // fails if Complete was called after the check in Do
	}
}

func (c *Committer[T]) errClosed() error {
	_, err := c.runs.TryEnqueue(context.Background(), struct{}{})
	return cmp.Or(err, core.ErrClosed)
}

// start enqueues an operation that takes the queue.
func (c *Committer[T]) start() {
	if _, err := c.runs.TryEnqueue(context.Background(), struct{}{}); err != nil {
		c.abandon(err)
	}
}

// run commits the items that are in the queue when it starts. Items that come after the
// last commit has begun are for the next operation, so that Flush does not wait for them.
func (c *Committer[T]) run(ctx context.Context, _ struct{}) error {
	c.mu.Lock()
	c.queued, c.left = false, len(c.queue)
	c.mu.Unlock()
	defer func() { c.mu.Lock(); c.left = 0; c.mu.Unlock() }()
	c.commitLeft(ctx)
	return nil
}

// commitLeft commits the items that the running operation has to commit.
func (c *Committer[T]) commitLeft(ctx context.Context) {
	for c.hasLeft() && ctx.Err() == nil {
		c.commitNext(ctx)
	}
}

func (c *Committer[T]) hasLeft() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left > 0
}

// commitNext commits the next group.
func (c *Committer[T]) commitNext(ctx context.Context) {
	end, err := c.begin(ctx)
	if err != nil && ctx.Err() != nil {
		return // the committer is closed, and the items have ended
	}
	runtime.Gosched() // so that callers of the last commit can join this one
	batch := c.take(err == nil)
	items, errs := make([]T, len(batch)), make([]error, len(batch))
	for i, e := range batch {
		items[i] = e.item
	}
	panics := false
	defer func() {
		for i, e := range batch {
			e.done <- cmp.Or(errs[i], err)
		}
		if panics { // the remaining items were accepted, and must not be lost if no operation follows
			c.commitLeft(ctx)
		}
	}()
	if err != nil {
		return
	}
	defer end()
	if len(batch) > 0 {
		err = fmt.Errorf("%w: the function that commits panicked or ended its goroutine", ErrUndecided)
		panics = true
		err = c.commit(ctx, items, errs)
		panics = false
	}
}

// take removes the next group from the queue, or all items if Begin has failed.
func (c *Committer[T]) take(commits bool) []*entry[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.queue)
	if commits && c.batch > 0 {
		n = min(n, c.batch)
	}
	if i := slices.IndexFunc(c.queue[:n], func(e *entry[T]) bool { return e.alone }); commits && i >= 0 {
		n = max(i, 1)
	}
	batch := c.queue[:n:n]
	c.queue, c.left = c.queue[n:], max(0, c.left-n)
	for _, e := range batch {
		e.taken, e.commits = true, commits
		<-c.room
	}
	return batch
}

// ended is called when an operation has ended. Entries are left in the queue if it has not
// started, because of Stop or Close, or has ended early.
func (c *Committer[T]) ended(s core.Snapshot) {
	c.mu.Lock()
	again := !c.queued && len(c.queue) > c.left
	if s.Started.IsZero() {
		c.left, again = 0, false
	}
	c.queued = c.queued || again
	c.mu.Unlock()
	if s.Started.IsZero() {
		c.abandon(c.errClosed())
	} else if again {
		c.start()
	}
}

// abandon ends the entries that no operation will take, with an error.
func (c *Committer[T]) abandon(err error) {
	c.mu.Lock()
	abandoned := slices.Clone(c.queue[c.left:])
	c.queue, c.queued = c.queue[:c.left], false
	for _, e := range abandoned {
		e.taken = true
		<-c.room
	}
	c.mu.Unlock()
	for _, e := range abandoned {
		e.done <- err
	}
}

// withdraw removes an entry from the queue and reports whether it was there.
func (c *Committer[T]) withdraw(e *entry[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.taken {
		return false
	}
	i := slices.Index(c.queue, e)
	c.queue = slices.Delete(c.queue, i, i+1)
	if i < c.left {
		c.left--
	}
	<-c.room
	return true
}
