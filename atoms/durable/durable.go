package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/groupcommit"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ErrUnknown is returned if the queue has no item of that ID, or no longer has it.
var ErrUnknown = errors.New("durable: unknown item")

// A Queue keeps items of type T in a [Store] and runs them in all processes that call
// [Queue.Run]. Make one with [New]. All methods are safe for concurrent use, also from bodies.
// Methods with a context call the store and return its errors. Call Close when the queue is no
// longer used. The store belongs to the caller.
type Queue[T any] struct {
	queue *queue
	with  ItemOptions
}

// queue is shared by all views.
type queue struct {
	store   Store
	key     func(item any) string            // nil: none
	empty   func() (to any, item func() any) // a new item: a pointer to it, and its value
	opts    Options
	policy  policy
	waker   Waker // or nil
	here    *core.Coordinator[*task]
	inserts *groupcommit.Committer[*insertion]
	flows   *flows
	fenced  atomic.Uint64
	awaited atomic.Int64 // until when others are told about ends, in Unix nanoseconds
	metrics metrics
	bodies  mean
	wakes   chan struct{} // one value: look for items
	beats   chan struct{} // one value: beat at once
	ended   chan struct{} // one value: look at ends

	begun   sync.Once          // sets stop
	stop    context.CancelFunc // ends Run, or keeps it from beginning
	stopped chan struct{}      // closed when Run has ended

	mu   sync.Mutex
	runs map[ItemID]*run
	ends []*ending                   // ends that ends that wait for a turn
	late map[[2]string]chan struct{} // by key or Unique id; see insertLate
}

type task struct {
	*run
	value any
	wrong error // why it could not be decoded, though it is to be undone
}

type insertion struct {
	in  []Insert
	out []Inserted
}

// Busy reports that the item was not added because another transaction has its key or its Unique id.
func (i *insertion) busy() bool { return len(i.out) == 1 && i.out[0].Busy }

// Alone reports whether the insertion needs a commit of its own, because it may be as large as
// a commit may be.
func (i *insertion) Alone() bool { return len(i.in) != 1 }

// New makes a queue on a store. It returns an error if an option is wrong, or if store or work
// is nil. Key returns the key of an item; items with the key "" have no order. If key is nil,
// no item has an order; then name the types: New[Order, string](store, nil, ...).
//
// Work is the body that runs an item. Its context has an operation ([core.OperationFrom]) and a
// claim ([ClaimFrom]). If the body calls [core.Operation.Suspend], another item gets its slot
// at the next Poll.
func New[T any, K ~string](store Store, key func(T) K, work core.Work[T], opts Options) (*Queue[T], error) {
	opts, err := opts.resolved()
	if store == nil || work == nil {
		err = errors.Join(errors.New("durable: New needs a store and a function"), err)
	}
	if err != nil {
		return nil, err
	}
	q := &queue{store: store, opts: opts, waker: opts.Waker, policy: policy{opts.MaxAttempts, opts.Backoff, opts.MaxBackoff, opts.BackoffFunc, opts.HaltOnDead},
		wakes: make(chan struct{}, 1), beats: make(chan struct{}, 1), ended: make(chan struct{}, 1), stopped: make(chan struct{}), runs: map[ItemID]*run{}, late: map[[2]string]chan struct{}{}}
	q.empty = func() (any, func() any) {
		item := new(T)
		return item, func() any { return *item }
	}
	if key != nil {
		q.key = func(item any) string { return string(key(as[T](item))) }
	}
	if w, ok := store.(Waker); ok && q.waker == nil {
		q.waker = w
	}
	q.here, err = core.NewCoordinator(func(ctx context.Context, t *task) error {
		core.OperationFrom(ctx).SetKey(t.item.Key)
		if !t.begin() {
			return errNotStarted
		}
		defer q.bodies.note(time.Now())
		return q.attempt(ctx, t, func(ctx context.Context) error { return work(ctx, as[T](t.value)) })
	}, core.Options{Name: opts.Name, MaxConcurrency: opts.MaxConcurrency, MaxQueued: 1 << 30, Sink: opts.Sink,
		MaxTracked: opts.MaxTracked, MaxAge: opts.MaxAge, OnDone: q.done})
	if err != nil {
		return nil, err
	}
	q.inserts = core.Must(groupcommit.New(q.insert, groupcommit.Options{Name: opts.Name, MaxBatch: MaxBatch}))
	q.flows = newFlows(store, opts, q.policy, q.knows)
	return &Queue[T]{queue: q}, nil
}

// Name returns Options.Name, or the default.
func (q *Queue[T]) Name() string { return q.queue.opts.Name }

// Sink returns the sink on which the queue raises its signals.
func (q *Queue[T]) Sink() *signals.Sink { return q.queue.opts.Sink }

// Store returns the store that New was given, for engines.
func (q *Queue[T]) Store() Store { return q.queue.store }

// Here returns this process's part of the queue: its operations are the items that this
// process has claimed. Closing or draining it ends [Queue.Run].
func (q *Queue[T]) Here() core.Inspector { return q.queue.here }

// With returns a view of the queue whose Enqueue gives items these options.
//
//ephemeral:view
func (q *Queue[T]) With(opts ItemOptions) *Queue[T] { return &Queue[T]{q.queue, opts} }

// Lane returns a view of the queue that puts items into that lane and is otherwise like q.
//
//ephemeral:lane {name}
//ephemeral:view
func (q *Queue[T]) Lane(name string) *Queue[T] {
	opts := q.with
	opts.Lane = name
	return q.With(opts)
}

// Prepare returns the Insert of an item, as Enqueue with ctx would make it. If Options.Encode or the function of
// the key panics, that is the error. It is for engines.
func (q *Queue[T]) Prepare(ctx context.Context, item T) (Insert, error) {
	return q.queue.prepare(ctx, item, q.with)
}

func (q *queue) prepare(ctx context.Context, item any, with ItemOptions) (Insert, error) {
	var data []byte
	var err error
	if panicked := guard.Do("Options.Encode", func() { data, err = q.opts.Encode(item) }); panicked != nil || err != nil {
		return Insert{}, q.fail("encode an item", cmp.Or(panicked, err))
	}
	with, wrong := with.resolved()
	in := Insert{Class: with.Class, Data: data, Delay: with.Delay, RunAt: with.RunAt, Unique: with.Unique, UniqueFor: with.UniqueFor, Replace: with.Replace, SkipIfAlive: with.SkipIfAlive, Cost: int64(with.Cost)}
	if q.key != nil {
		if in.Key, err = guard.Value("the function", func() string { return q.key(item) }); err != nil {
			return Insert{}, q.fail("find the key of an item", err)
		}
	}
	in.Rated = in.Key != "" && q.opts.KeyRate.PerSecond > 0
	errs := []error{wrong, checkText("the key of an item", in.Key)}
	if len(data) > MaxData {
		errs = append(errs, fmt.Errorf("durable: queue %q: an item has %d bytes, more than %d", q.opts.Name, len(data), MaxData))
	}
	in.Lane, in.Rank, err = q.lane(with.Lane)
	if errs = append(errs, err); in.Class != "" {
		errs = append(errs, q.knows(in.Class))
	}
	if in.SkipIfAlive && in.Key == "" {
		errs = append(errs, fmt.Errorf("durable: queue %q: ItemOptions.SkipIfAlive needs a key", q.opts.Name))
	}
	in.Extra = q.extra(ctx, with)
	return in, errors.Join(errs...)
}

// lane returns the lane that ItemOptions.Lane names.
func (q *queue) lane(of string) (name string, rank int, err error) {
	if of == "" && len(q.opts.Lanes) == 0 {
		return "", 0, nil
	}
	name = cmp.Or(of, "normal")
	rank = slices.IndexFunc(q.opts.Lanes, func(l core.Lane) bool { return l.Name == name })
	switch {
	case rank < 0 && of == "":
		rank = len(q.opts.Lanes) - 1
		name = q.opts.Lanes[rank].Name
	case rank < 0:
		err = fmt.Errorf("durable: queue %q: lane %q: %w", q.opts.Name, name, core.ErrUnknownLane)
	}
	return name, rank, err
}

// EnqueueUnique is Enqueue for a view with a Unique id or SkipIfAlive; see [Queue.With]. It returns the ID of the item that
// stands, and whether that was added now. If it was not, the queue got it before; [Queue.Explain] says
// what has become of it.
func (q *Queue[T]) EnqueueUnique(ctx context.Context, item T) (id ItemID, added bool, err error) {
	if q.with.Unique == "" && !q.with.SkipIfAlive {
		return 0, false, fmt.Errorf("durable: queue %q: EnqueueUnique needs ItemOptions.Unique or SkipIfAlive", q.queue.opts.Name)
	}
	done, err := q.enqueue(ctx, []T{item}, nil)
	if err != nil {
		return 0, false, err
	}
	return done[0].ID, !done[0].Duplicate, nil
}

// Enqueue adds an item and returns its ID when the item is on disk. If one goroutine adds
// several items of one key, they run in the order of its calls. Concurrent calls share a
// transaction. If the store does not answer within Options.Lease, Enqueue returns an error.
//
// If the error is [ErrUndecided], the item may have been added: with a Unique id, call Enqueue
// again. After Close, Enqueue returns [core.ErrClosed]. If it would wait for a transaction of
// its caller, it returns [core.ErrWouldDeadlock].
func (q *Queue[T]) Enqueue(ctx context.Context, item T) (ItemID, error) {
	done, err := q.enqueue(ctx, []T{item}, nil)
	if err != nil {
		return 0, err
	}
	return done[0].ID, nil
}

func (q *Queue[T]) enqueue(ctx context.Context, items []T, opts []ItemOptions) ([]Inserted, error) {
	i := &insertion{in: make([]Insert, len(items))}
	for n, item := range items {
		var err error
		with := q.with
		if opts != nil {
			with = opts[n]
		}
		if i.in[n], err = q.queue.prepare(ctx, item, with); err != nil {
			return nil, err
		}
	}
	if inside(ctx, q.queue.store) {
		return nil, q.queue.fail("enqueue, inside a transaction that this would wait for", core.ErrWouldDeadlock)
	}
	i.in[0].NoWait = len(i.in) == 1
	err := q.queue.inserts.Do(ctx, i)
	for err == nil && i.busy() {
		err = q.queue.insertLate(ctx, i)
	}
	if err != nil {
		return nil, q.queue.fail("enqueue", err)
	}
	q.queue.wake(true)
	for n, in := range i.out {
		if in.OtherKey {
			err = errors.Join(err, q.queue.fail("enqueue", fmt.Errorf("%w: item %d has the Unique id %.80q, and another key than %.80q", ErrOrder, in.ID, i.in[n].Unique, i.in[n].Key)))
		}
	}
	return i.out, err
}

// EnqueueAll adds up to [MaxBatch] items in one transaction: all or none. It returns their IDs
// when they are on disk. Options, if there are any, are those of each item, in place of those of the view. If the id of an item with
// Replace belongs to another key, the error is [ErrOrder], and the others are added.
func (q *Queue[T]) EnqueueAll(ctx context.Context, items []T, opts ...ItemOptions) ([]ItemID, error) {
	if len(opts) > 0 && len(opts) != len(items) {
		return nil, fmt.Errorf("durable: queue %q: EnqueueAll got options for %d of %d items", q.queue.opts.Name, len(opts), len(items))
	}
	if len(items) > MaxBatch {
		return nil, fmt.Errorf("durable: queue %q: EnqueueAll got %d items, more than %d", q.queue.opts.Name, len(items), MaxBatch)
	}
	if len(items) == 0 {
		return nil, nil
	}
	done, err := q.enqueue(ctx, items, opts)
	if err != nil {
		return nil, err
	}
	ids := make([]ItemID, len(done))
	for n, in := range done {
		ids[n] = in.ID
	}
	return ids, nil
}

func (q *queue) insert(ctx context.Context, all []*insertion, _ []error) error {
	var ins []Insert
	for _, i := range all {
		ins = append(ins, i.in...)
	}
	ctx, cancel := context.WithTimeout(ctx, q.opts.Lease) // other items wait until it returns
	defer cancel()
	out, err := q.store.Insert(ctx, q.opts.Name, ins)
	for _, i := range all[:min(len(all), len(out))] {
		i.out, out = out[:len(i.in)], out[len(i.in):]
	}
	return err
}

// insertLate adds an item whose key or Unique id another transaction has. One call for each of them waits, outside
// of the group, so that others go on; then the others try again together.
func (q *queue) insertLate(ctx context.Context, i *insertion) error {
	done := make(chan struct{})
	q.mu.Lock()
	var mine [][2]string
	var first chan struct{}
	for _, id := range [][2]string{{"key", i.in[0].Key}, {"unique", i.in[0].Unique}} {
		if id[1] != "" {
			mine, first = append(mine, id), cmp.Or(first, q.late[id])
		}
	}
	for _, id := range mine {
		if first == nil {
			q.late[id] = done
		}
	}
	q.mu.Unlock()
	if first != nil {
		select {
		case <-first:
			return q.inserts.Do(ctx, i)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, id := range mine {
			delete(q.late, id)
		}
		close(done)
	}()
	i.in[0].NoWait = false
	return q.insert(ctx, []*insertion{i}, nil)
}

func (q *queue) fail(what string, err error) error {
	if guard.Is(err, groupcommit.ErrUndecided) {
		err = fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("durable: queue %q: %s: %w", q.opts.Name, what, err)
}

// wake makes this process look for items. If others is true, it also wakes other processes.
func (q *queue) wake(others bool) {
	select {
	case q.wakes <- struct{}{}:
	default:
	}
	if others && q.waker != nil {
		q.waker.Wake(q.opts.Name)
	}
}

// beatNow makes this process beat at once.
func (q *queue) beatNow() {
	select {
	case q.beats <- struct{}{}:
	default:
	}
}

// Cancel cancels an item, also one that another process runs. An item that waits or is dead
// becomes Cancelled at once. If the item runs, its context is cancelled at the next heartbeat
// of its process, with a cause that is [core.ErrCancelled]. If its body then returns an error,
// the item becomes Cancelled. Cancel reports false if the item is done, cancelled or unknown.
// Reason is for people.
func (q *Queue[T]) Cancel(ctx context.Context, id ItemID, reason string) (bool, error) {
	states, err := q.queue.cancel(ctx, []ItemID{id}, ^State(0), cmp.Or(clean(reason), "cancelled"))
	if err != nil {
		return false, q.queue.fail("cancel", err)
	}
	return states[0] != 0, nil
}

func (q *queue) cancel(ctx context.Context, ids []ItemID, from State, reason string) ([]State, error) {
	states, err := q.store.Cancel(ctx, q.opts.Name, ids, from, reason)
	if err != nil {
		return nil, err
	}
	q.beatNow()
	q.wake(true)
	q.tellWaiters()
	return states, nil
}

// Again puts dead and cancelled items back into the queue, with the attempt count 0. They
// run before later items of their keys. Again returns the number of items that it changed:
// it changes no other items.
func (q *Queue[T]) Again(ctx context.Context, ids ...ItemID) (changed int, err error) {
	return q.queue.again(ctx, ids...)
}

func (q *queue) again(ctx context.Context, ids ...ItemID) (changed int, err error) {
	for some := range slices.Chunk(ids, MaxBatch) {
		got, err := q.store.Again(ctx, q.opts.Name, some, ^State(0))
		if changed += len(got); err != nil {
			return changed, q.fail("try again", err)
		}
	}
	q.wake(true)
	return changed, nil
}

// Decode returns the value that was enqueued as the item. If Options.Decode panics, that is the error. The item must have its Data, as the
// items of [Queue.Items] do.
func (q *Queue[T]) Decode(i Item) (T, error) {
	item, err := q.queue.decode(i)
	return as[T](item), err
}

// as returns an item as a T: the zero T if it is a nil interface.
func as[T any](item any) T {
	t, _ := item.(T)
	return t
}

func (q *queue) decode(i Item) (any, error) {
	to, item := q.empty()
	var err error
	panicked := guard.Do("Options.Decode", func() { err = q.opts.Decode(i.Data, to) })
	if err = cmp.Or(panicked, err); err != nil {
		err = q.fail(fmt.Sprintf("decode item %d, key %q, as %T", i.ID, i.Key, item()), err)
	}
	return item(), err
}

// text is what Options.Show says of an item.
func (q *queue) text(item any) string {
	text, _ := guard.Value("Options.Show", func() string { return q.opts.Show(item) })
	return clean(text)
}

// Stats counts the items of the queue in all processes. [Queue.Here] has the counters of this
// process.
func (q *Queue[T]) Stats(ctx context.Context) (Stats, error) {
	return q.queue.stats(ctx)
}

func (q *queue) stats(ctx context.Context) (Stats, error) {
	s, err := q.store.Stats(ctx, q.opts.Name)
	s.Fenced = q.fenced.Load()
	return s, q.fail("count items", err)
}

// Explain says why an item waits, where it runs, or how it ended. If the queue has no such item,
// the error is [ErrUnknown].
func (q *Queue[T]) Explain(ctx context.Context, id ItemID) (Explanation, error) {
	return q.queue.explain(ctx, id)
}

func (q *queue) explain(ctx context.Context, id ItemID) (Explanation, error) {
	x, ok, err := q.store.Explain(ctx, q.opts.Name, id)
	if err == nil && !ok {
		err = ErrUnknown
	}
	x.Item.open()
	if x.Head != nil {
		x.Head.open()
	}
	x.MaxAttempts = cmp.Or(x.Item.MaxAttempts, q.opts.MaxAttempts)
	for n := range x.Nodes {
		x.Nodes[n].Note = noteFor(x.Nodes[n].Note, x.Item.Class)
	}
	q.mu.Lock()
	r := q.runs[id]
	q.mu.Unlock()
	if r != nil && r.item.Token == x.Item.Token {
		x.Pending, x.Item.Shadow = r.state.Load() == pending, r.item.Shadow
	}
	if i := x.Item; i.State == Running || i.State == Done {
		x.Attempts = append(x.Attempts, Attempt{i.Token, stateKind[i.State], i.Node, i.Started, i.Ended, ""})
	}
	if err == nil && x.Item.Flow > 0 {
		if j, unread := q.history(ctx, id, false); unread == nil {
			x.Flow = &j
		}
	}
	if err == nil && x.Head != nil && x.Head.Flow > 0 {
		if j, unread := q.history(ctx, x.Head.ID, false); unread == nil {
			x.headWaits = j.Wait
		}
	}
	return x, q.fail(fmt.Sprintf("explain item %d", id), err)
}

// Prune deletes all items that ended longer ago than Options.Keep, and returns how many. Run
// does that every minute, [MaxBatch] items at a time. Without Run, call Prune.
func (q *Queue[T]) Prune(ctx context.Context) (pruned int, err error) {
	return q.queue.prune(ctx)
}

func (q *queue) prune(ctx context.Context) (pruned int, err error) {
	for {
		n, more, err := q.store.Prune(ctx, q.opts.Name, q.opts.Keep, MaxBatch)
		if pruned += n; err != nil || !more {
			return pruned, q.fail("prune", err)
		}
	}
}

// Stop ends [Queue.Run]: this process claims no more items, gives back claimed items that have
// not started, and waits for the running bodies. If ctx ends first, Stop returns the cause, and
// Run goes on ending. Enqueue still works. If Stop is called by a body, it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (q *Queue[T]) Stop(ctx context.Context) error {
	if q.queue.here.Inside(ctx) {
		return q.queue.fail("stop", core.ErrWouldDeadlock)
	}
	q.queue.here.Complete() // a later Run ends at once
	select {
	case <-q.queue.halt():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close is like Stop, and also cancels the running bodies, with the cause [core.ErrClosed]. If
// such a body returns an error, its item is given back, and the attempt does not count. After
// Close, Enqueue returns [core.ErrClosed]. If the store cannot be reached, Close waits up to
// one Lease for items that are being added, and up to one Lease to record the ends of items: see
// [Queue.Run]. If Close is called by a body, it does not wait for bodies. It returns nil.
func (q *Queue[T]) Close() error {
	ended := q.queue.halt()
	q.queue.here.Close()
	ctx, cancel := context.WithTimeout(context.Background(), q.queue.opts.Lease)
	defer cancel()
	q.queue.inserts.Drain(ctx)
	q.queue.inserts.Close()
	defer q.queue.flows.records.Close()
	if !q.queue.here.Inside(context.Background()) {
		<-ended
	}
	return nil
}

// halt ends Run, or prevents its start. It returns a channel that is closed when Run has ended.
func (q *queue) halt() <-chan struct{} {
	q.begun.Do(func() { q.stop = sync.OnceFunc(func() { close(q.stopped) }) })
	q.stop()
	return q.stopped
}
