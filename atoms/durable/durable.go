package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
)

// ErrUnknown is returned for an item that the queue does not have, or not any more.
var ErrUnknown = errors.New("durable: unknown item")

// A Queue keeps items of type T in a [Store] and runs them in all processes that call
// [Queue.Run]. Make one with [New]. All methods are safe for concurrent use, from bodies as
// well. Those that ask the store take a context and return its errors. Call Close when the
// queue is not used any more; the store belongs to the caller.
type Queue[T any] struct {
	*queue[T]
	with ItemOptions
}

// queue is what all views share.
type queue[T any] struct {
	store   Store
	key     func(T) string // nil: none
	opts    Options
	policy  policy
	waker   Waker // or nil
	here    *core.Coordinator[*task[T]]
	inserts *groupcommit.Committer[*insertion]
	ends    *groupcommit.Committer[*ending]
	fenced  atomic.Uint64
	wakes   chan struct{} // has one: look for items
	beats   atomic.Bool   // set: beat without waiting for the time

	begun   sync.Once          // sets stop
	stop    context.CancelFunc // ends Run, or keeps it from beginning
	stopped chan struct{}      // closed when Run has ended

	mu       sync.Mutex
	runs     map[ItemID]*run
	children sync.WaitGroup // goroutines that end claims without an operation
}

type task[T any] struct {
	*run
	value T
}

type insertion struct {
	in  []Insert
	out []Inserted
}

// Alone says that a commit is for this one only: it may be as large as one may be.
func (i *insertion) Alone() bool { return len(i.in) != 1 }

type ending struct {
	node Node
	end  End
	out  Ended
}

// New makes a queue on a store, or says what is wrong with the options. Key returns the key
// of an item; items with the key "" have no order. If key is nil, no item has an order; then
// name the types: New[Order, string](store, nil, ...). Work runs an item:
// its context is that of an operation ([core.OperationFrom]) with a claim ([ClaimFrom]). The
// slot of an operation that is suspended is used from the next Poll on.
func New[T any, K ~string](store Store, key func(T) K, work core.Work[T], opts Options) (*Queue[T], error) {
	opts, err := opts.resolved()
	if store == nil || work == nil {
		err = errors.Join(errors.New("durable: New needs a store and a function"), err)
	}
	if err != nil {
		return nil, err
	}
	q := &queue[T]{store: store, opts: opts, waker: opts.Waker, policy: policy{opts.MaxAttempts, opts.Backoff, opts.MaxBackoff, opts.HaltOnDead},
		wakes: make(chan struct{}, 1), stopped: make(chan struct{}), runs: map[ItemID]*run{}}
	if key != nil {
		q.key = func(item T) string { return string(key(item)) }
	}
	if w, ok := store.(Waker); ok && q.waker == nil {
		q.waker = w
	}
	q.here, err = core.NewCoordinator(func(ctx context.Context, t *task[T]) error {
		core.OperationFrom(ctx).SetKey(t.item.Key)
		return work(ctx, t.value)
	}, core.Options{Name: opts.Name, MaxConcurrency: opts.MaxConcurrency, MaxQueued: 1 << 30, Timeout: opts.Timeout, Sink: opts.Sink,
		MaxTracked: opts.MaxTracked, MaxAge: opts.MaxAge, OnDone: q.done})
	if err != nil {
		return nil, err
	}
	q.inserts = core.Must(groupcommit.New(q.insert, groupcommit.Options{Name: opts.Name, MaxBatch: MaxBatch}))
	q.ends = core.Must(groupcommit.New(q.end, groupcommit.Options{Name: opts.Name, MaxBatch: MaxBatch}))
	return &Queue[T]{queue: q}, nil
}

// Name is that of the options.
func (q *Queue[T]) Name() string { return q.opts.Name }

// Sink is that of the options, or the one of the queue.
func (q *Queue[T]) Sink() *core.Sink { return q.opts.Sink }

// Store is what New was given, for engines.
func (q *Queue[T]) Store() Store { return q.store }

// Here is this process's part of the queue: its operations are the items that it has
// claimed. To end it ends [Queue.Run].
func (q *Queue[T]) Here() core.Inspector { return q.here }

// With returns a view of the queue whose Enqueue gives items these options.
func (q *Queue[T]) With(opts ItemOptions) *Queue[T] { return &Queue[T]{q.queue, opts} }

// Lane returns a view of the queue that puts items into that lane and is otherwise like q.
func (q *Queue[T]) Lane(name string) *Queue[T] {
	opts := q.with
	opts.Lane = name
	return q.With(opts)
}

// Prepare returns what Enqueue would insert, for engines.
func (q *Queue[T]) Prepare(item T) (Insert, error) {
	data, err := q.opts.Encode(item)
	if err != nil {
		return Insert{}, q.fail("encode an item", err)
	}
	with, err := q.with.resolved()
	in := Insert{Data: data, Delay: with.Delay, Unique: with.Unique, UniqueFor: with.UniqueFor}
	if q.key != nil {
		in.Key = q.key(item)
	}
	errs := []error{err, checkText("the key of an item", in.Key)}
	if len(data) > MaxData {
		errs = append(errs, fmt.Errorf("durable: queue %q: an item has %d bytes, more than %d", q.opts.Name, len(data), MaxData))
	}
	in.Lane, in.Rank, err = q.lane()
	return in, errors.Join(append(errs, err)...)
}

func (q *Queue[T]) lane() (name string, rank int, err error) {
	if q.with.Lane == "" && len(q.opts.Lanes) == 0 {
		return "", 0, nil
	}
	name = cmp.Or(q.with.Lane, "normal")
	rank = slices.IndexFunc(q.opts.Lanes, func(l core.Lane) bool { return l.Name == name })
	switch {
	case rank < 0 && q.with.Lane == "":
		rank = len(q.opts.Lanes) - 1
		name = q.opts.Lanes[rank].Name
	case rank < 0:
		err = fmt.Errorf("durable: queue %q: lane %q: %w", q.opts.Name, name, core.ErrUnknownLane)
	}
	return name, rank, err
}

// Enqueue adds an item and returns its ID when it is on disk. Items of one goroutine with one
// key run in the order of its calls. Concurrent calls share a transaction. An error that is
// [ErrUndecided] means that the item may have been added: with a Unique id, Enqueue can be
// called again. The store has a Lease to answer in. After Close it returns [core.ErrClosed],
// and where it would wait for a transaction of its caller [core.ErrWouldDeadlock].
func (q *Queue[T]) Enqueue(ctx context.Context, item T) (ItemID, error) {
	ids, err := q.enqueue(ctx, item)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

func (q *Queue[T]) enqueue(ctx context.Context, items ...T) ([]ItemID, error) {
	i := &insertion{in: make([]Insert, len(items))}
	for n, item := range items {
		var err error
		if i.in[n], err = q.Prepare(item); err != nil {
			return nil, err
		}
	}
	if s, ok := q.store.(interface{ Inside(context.Context) bool }); ok && s.Inside(ctx) {
		return nil, q.fail("enqueue, inside a transaction that this would wait for", core.ErrWouldDeadlock)
	}
	if err := q.inserts.Do(ctx, i); err != nil {
		return nil, q.fail("enqueue", err)
	}
	ids := make([]ItemID, len(items))
	for n, out := range i.out {
		ids[n] = out.ID
	}
	q.wake(true)
	return ids, nil
}

// EnqueueAll adds up to [MaxBatch] items in one transaction, all or none, and returns their
// IDs when they are on disk.
func (q *Queue[T]) EnqueueAll(ctx context.Context, items []T) ([]ItemID, error) {
	if len(items) > MaxBatch {
		return nil, fmt.Errorf("durable: queue %q: EnqueueAll got %d items, more than %d", q.opts.Name, len(items), MaxBatch)
	}
	if len(items) == 0 {
		return nil, nil
	}
	return q.enqueue(ctx, items...)
}

func (q *queue[T]) insert(ctx context.Context, all []*insertion, _ []error) error {
	var ins []Insert
	for _, i := range all {
		ins = append(ins, i.in...)
	}
	ctx, cancel := context.WithTimeout(ctx, q.opts.Lease) // others wait behind it
	defer cancel()
	out, err := q.store.Insert(ctx, q.opts.Name, ins)
	for _, i := range all[:min(len(all), len(out))] {
		i.out, out = out[:len(i.in)], out[len(i.in):]
	}
	return err
}

func (q *queue[T]) fail(what string, err error) error {
	if errors.Is(err, groupcommit.ErrUndecided) {
		err = fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("durable: queue %q: %s: %w", q.opts.Name, what, err)
}

// wake lets this process look for items, and the others.
func (q *queue[T]) wake(others bool) {
	select {
	case q.wakes <- struct{}{}:
	default:
	}
	if others && q.waker != nil {
		q.waker.Wake(q.opts.Name)
	}
}

// Cancel cancels an item, in whatever process it is. One that waits does not start any more,
// and one that is dead is given up;
// one that runs has its context cancelled when its process beats next, with a cause that is
// [core.ErrCancelled], and is cancelled if its body then returns an error. It reports false if
// the item is done or cancelled, or is unknown. Reason is for people.
func (q *Queue[T]) Cancel(ctx context.Context, id ItemID, reason string) (bool, error) {
	states, err := q.store.Cancel(ctx, q.opts.Name, []ItemID{id}, cmp.Or(clean(reason), "cancelled"))
	if err != nil {
		return false, q.fail("cancel", err)
	}
	q.beats.Store(true)
	q.wake(true)
	return states[0] != 0, nil
}

// Again lets items wait again that are dead or cancelled, with all their attempts, and
// returns how many of them it changed. They come before later items of their keys.
func (q *Queue[T]) Again(ctx context.Context, ids ...ItemID) (changed int, err error) {
	for some := range slices.Chunk(ids, MaxBatch) {
		got, err := q.store.Again(ctx, q.opts.Name, some)
		if changed += len(got); err != nil {
			return changed, q.fail("try again", err)
		}
	}
	q.wake(true)
	return changed, nil
}

// AgainAll is Again for the items that match selects: Query{Dead: true}, for example.
func (q *Queue[T]) AgainAll(ctx context.Context, match Query) (changed int, err error) {
	var ids []ItemID
	for i, err := range q.Items(ctx, match) {
		if err != nil {
			return 0, err
		}
		ids = append(ids, i.ID)
	}
	return q.Again(ctx, ids...)
}

// Pause keeps all processes from claiming, until Resume. What runs goes on, and Enqueue
// accepts.
func (q *Queue[T]) Pause(ctx context.Context) error {
	return q.fail("pause", q.store.Pause(ctx, q.opts.Name, true))
}

// Resume ends a Pause.
func (q *Queue[T]) Resume(ctx context.Context) error {
	err := q.fail("resume", q.store.Pause(ctx, q.opts.Name, false))
	q.wake(true)
	return err
}

// Items walks the items that match selects, in the order of their IDs, and ends with the
// first error. It reads them in pages, so it may show changes that are made meanwhile.
func (q *Queue[T]) Items(ctx context.Context, match Query) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		page := match
		if page.Dead = false; match.Dead {
			page.State = Dead | Halted
		}
		for left := cmp.Or(max(0, match.Limit), math.MaxInt); left > 0; left -= page.Limit {
			page.Limit = min(left, 100)
			items, err := q.store.Items(ctx, q.opts.Name, page)
			if err != nil {
				yield(Item{}, q.fail("list items", err))
				return
			}
			for _, i := range items {
				if page.After = i.ID; !yield(i, nil) {
					return
				}
			}
			if len(items) < page.Limit {
				return
			}
		}
	}
}

// Decode returns what was enqueued as that item.
func (q *Queue[T]) Decode(i Item) (T, error) { return q.decode(i) }

func (q *queue[T]) decode(i Item) (item T, err error) {
	if err := q.opts.Decode(i.Data, &item); err != nil {
		return item, q.fail(fmt.Sprintf("decode item %d, key %q, as %T", i.ID, i.Key, item), err)
	}
	return item, nil
}

// Stats counts the items of the queue in all processes. [Queue.Here] has the counters of this one.
func (q *Queue[T]) Stats(ctx context.Context) (Stats, error) {
	s, err := q.store.Stats(ctx, q.opts.Name)
	s.Fenced = q.fenced.Load()
	return s, q.fail("count items", err)
}

// Explain says why an item waits, or where it runs, or how it ended. For an unknown item it
// returns [ErrUnknown].
func (q *Queue[T]) Explain(ctx context.Context, id ItemID) (Explanation, error) {
	x, ok, err := q.store.Explain(ctx, q.opts.Name, id)
	if err == nil && !ok {
		err = ErrUnknown
	}
	x.MaxAttempts = q.opts.MaxAttempts
	return x, q.fail(fmt.Sprintf("explain item %d", id), err)
}

// Prune deletes the items that have ended and are older than Options.Keep, and returns how
// many. Run does it every minute.
func (q *Queue[T]) Prune(ctx context.Context) (pruned int, err error) {
	for {
		n, err := q.store.Prune(ctx, q.opts.Name, q.opts.Keep, MaxBatch)
		if pruned += n; err != nil || n < MaxBatch {
			return pruned, q.fail("prune", err)
		}
	}
}

// Stop ends [Queue.Run]: no more items are claimed, those that were claimed and have not
// started are given back, and it waits until those that run have ended. When ctx ends first it
// stops waiting and returns its cause. Enqueue still works. Inside a body it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (q *Queue[T]) Stop(ctx context.Context) error {
	if q.here.Inside(ctx) {
		return q.fail("stop", core.ErrWouldDeadlock)
	}
	q.here.Complete() // for a Run that comes later
	select {
	case <-q.halt():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close is Stop, and also cancels the bodies that run, with the cause [core.ErrClosed]. If a
// body then returns an error, its item is given back, and the attempt does not count. Enqueue
// returns [core.ErrClosed] from then on. If the store cannot be reached, Close waits for up to
// a Lease for items that are being added, and as long for the ends of items. Inside a body it
// does not wait for bodies. It returns nil.
func (q *Queue[T]) Close() error {
	ended := q.halt()
	q.here.Close()
	ctx, cancel := context.WithTimeout(context.Background(), q.opts.Lease)
	defer cancel()
	q.inserts.Drain(ctx)
	q.inserts.Close()
	if !q.here.Inside(context.Background()) {
		<-ended
	}
	return nil
}

// halt ends Run, or keeps it from beginning, and returns what is closed when it has ended.
func (q *queue[T]) halt() <-chan struct{} {
	q.begun.Do(func() { q.stop = sync.OnceFunc(func() { close(q.stopped) }) })
	q.stop()
	return q.stopped
}
