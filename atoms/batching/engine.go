package batching

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// engine is what batchers have in common: the shell around a builder, which decides.
// Lots that are sealed become operations of a coordinator, in that order, because
// they are given to it with mu held.
type engine[In, Out any] struct {
	inner   *core.Coordinator[*lot[item[In, Out]]]
	work    core.ResultWork[[]In, []Out]
	results bool // work has some
	opts    Options[In]
	base    time.Time
	flying  atomic.Int32 // lots being flushed
	entries sync.Pool    // that nobody has any more

	mu      sync.Mutex
	builder builder[item[In, Out]]
	lots    map[core.OperationID]*lot[item[In, Out]] // sealed or running
	timer   *time.Timer
	armed   time.Duration // when the timer fires, or never
}

// item is an item, and in the end its result.
type item[In, Out any] struct {
	in      In
	out     Out
	err     error
	settled chan struct{} // closed when that is known; nil: nobody waits for it
	room    chan struct{} // closed when it is accepted, or turned away because of Close; nil: it need not wait
}

func newEngine[In, Out any](work core.ResultWork[[]In, []Out], opts Options[In]) (*engine[In, Out], error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	x := &engine[In, Out]{
		work: work,
		opts: opts,
		base: time.Now(),
		builder: builder[item[In, Out]]{
			maxSize:        opts.MaxSize,
			maxBytes:       opts.MaxBytes,
			maxQueued:      opts.MaxQueued,
			maxQueuedBytes: opts.MaxQueuedBytes,
			delay:          opts.MaxDelay,
			limit:          opts.MaxConcurrency,
			perKey:         opts.MaxConcurrency,
			keyed:          opts.Key != nil,
			dropOldest:     opts.DropOldest,
			margin:         margin{fixed: opts.FlushMargin},
		},
		lots:  make(map[core.OperationID]*lot[item[In, Out]]),
		armed: never,
	}
	inner := core.Options{
		Name:           opts.Name,
		Sink:           opts.Sink,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      math.MaxInt32, // there are no more lots than items, and those are bounded here
		MaxTracked:     opts.MaxTracked,
		MaxAge:         opts.MaxAge,
	}
	if opts.Key == nil {
		x.inner, err = core.NewCoordinator(x.run, inner)
	} else {
		x.builder.perKey = 1
		x.inner, err = core.NewKeyedCoordinator(func(l *lot[item[In, Out]]) string { return l.group.key }, x.run, inner)
	}
	if err != nil {
		return nil, fmt.Errorf("batching: %w", err)
	}
	return x, nil
}

// Enqueue accepts an item, and returns when it is accepted, not when it is flushed.
// While there is no room it waits, first come first served, until ctx ends, whose
// cause it then returns. It returns [core.ErrClosed] after Complete, Drain and Close,
// an error that is [ErrTooLarge] for an item that no batch could take, and
// [core.ErrWouldDeadlock] when it would have to wait and is called from a flush of this
// batcher.
func (x *engine[In, Out]) Enqueue(ctx context.Context, item In) error {
	_, err := x.enter(ctx, item, false, true)
	return err
}

// TryEnqueue is Enqueue for those who do not wait: it returns [core.ErrFull] when there
// is no room.
func (x *engine[In, Out]) TryEnqueue(item In) error {
	_, err := x.enter(context.Background(), item, false, false)
	return err
}

// enter brings an item; called says that somebody waits for its result, wait that it
// may wait for room.
func (x *engine[In, Out]) enter(ctx context.Context, in In, called, wait bool) (*entry[item[In, Out]], error) {
	if wait && ctx.Err() != nil {
		return nil, x.reject(context.Cause(ctx))
	}
	e, ok := x.entries.Get().(*entry[item[In, Out]])
	if !ok {
		e = new(entry[item[In, Out]])
	}
	e.called, e.latest, e.value.in = called, never, in
	if x.opts.SizeOf != nil {
		e.size = max(0, x.opts.SizeOf(in))
		if most := min(x.opts.MaxBytes, x.opts.MaxQueuedBytes); e.size > most {
			return nil, x.reject(fmt.Errorf("%w: it has %d bytes, and %d is the limit", ErrTooLarge, e.size, most))
		}
	}
	if x.opts.Key != nil {
		e.key = x.opts.Key(in)
	}
	if called {
		e.value.settled = make(chan struct{})
		if deadline, ok := ctx.Deadline(); ok {
			e.latest = max(0, deadline.Sub(x.base))
		}
	}
	waits, err := x.accept(e)
	if err == core.ErrFull && wait {
		if x.isOwn(ctx) {
			return nil, x.reject(core.ErrWouldDeadlock)
		}
		e.value.room = make(chan struct{})
		waits, err = x.accept(e)
	}
	switch {
	case waits:
		return e, x.awaitRoom(ctx, e)
	case err != nil:
		return nil, x.reject(err)
	}
	return e, nil
}

// accept gives an entry to the builder, and lets it wait where there is no room if it
// can.
func (x *engine[In, Out]) accept(e *entry[item[In, Out]]) (waits bool, err error) {
	x.mu.Lock()
	now := x.now()
	err = x.builder.accept(e, now)
	if waits = err == core.ErrFull && e.value.room != nil; waits {
		x.builder.wait(e)
		err = nil
	}
	after := x.commit(now, core.ErrDropped)
	x.mu.Unlock()
	x.settle(&after)
	x.report(&after)
	return waits, err
}

// reuse keeps the memory of entries that nobody has any more.
func (x *engine[In, Out]) reuse(entries []*entry[item[In, Out]]) {
	for _, e := range entries {
		if !e.called && e.value.room == nil {
			*e = entry[item[In, Out]]{}
			x.entries.Put(e)
		}
	}
}

// awaitRoom waits until an entry is accepted or turned away, or ctx ends.
func (x *engine[In, Out]) awaitRoom(ctx context.Context, e *entry[item[In, Out]]) error {
	var err error
	select {
	case <-e.value.room:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	x.mu.Lock()
	if e.stage != stageWaiting {
		defer x.mu.Unlock()
		if e.lot == nil {
			return core.ErrClosed
		}
		return nil
	}
	now := x.now()
	x.builder.leave(e, now)
	x.builder.stats.Rejected++
	after := x.commit(now, err)
	x.mu.Unlock()
	x.settle(&after)
	return err
}

// reject counts an item that was not accepted because of err, and returns the error
// to tell: that the intake is closed goes before anything else.
func (x *engine[In, Out]) reject(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.builder.stats.Rejected++
	if x.builder.closed {
		return core.ErrClosed
	}
	return err
}

// do brings an item and waits for its result.
func (x *engine[In, Out]) do(ctx context.Context, in In) (out Out, err error) {
	if x.isOwn(ctx) {
		return out, x.reject(core.ErrWouldDeadlock)
	}
	e, err := x.enter(ctx, in, true, true)
	if err != nil {
		return out, err
	}
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor("a batch of "+strconv.Quote(x.Name()), time.Time{})()
	}
	select {
	case <-e.value.settled:
		return e.value.out, e.value.err
	case <-ctx.Done():
		return x.leave(e, context.Cause(ctx))
	}
}

// leave stops waiting for a result, unless it is there.
func (x *engine[In, Out]) leave(e *entry[item[In, Out]], cause error) (out Out, err error) {
	x.mu.Lock()
	if e.stage == stageDone {
		defer x.mu.Unlock()
		return e.value.out, e.value.err
	}
	now := x.now()
	abandoned := x.builder.leave(e, now)
	after := x.commit(now, cause)
	x.mu.Unlock()
	x.settle(&after)
	if abandoned {
		x.inner.Cancel(e.lot.id, cause)
	}
	return out, cause
}

var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// isOwn reports whether the caller is a flush of this batcher: by its context or by its
// goroutine, which the coordinator recognises.
func (x *engine[In, Out]) isOwn(ctx context.Context) bool {
	if x.flying.Load() == 0 {
		return false
	}
	if id := core.OperationFrom(ctx).ID(); id != 0 {
		x.mu.Lock()
		_, own := x.lots[id]
		x.mu.Unlock()
		if own {
			return true
		}
	}
	return x.inner.Flush(ended) == core.ErrWouldDeadlock
}

func (x *engine[In, Out]) now() time.Duration { return time.Since(x.base) }

// aftermath is what a change under the lock entails.
type aftermath[V any] struct {
	admitted []*entry[V] // have waited for room
	gone     []*entry[V] // will not be flushed
	emptied  []*lot[V]   // have no entries any more
	cause    error       // why
	floods   bool        // items begin to be dropped
}

// commit passes on what the builder has decided, and sets the timer. Entries and lots
// that are not to be flushed are so because of cause. mu is held.
func (x *engine[In, Out]) commit(now time.Duration, cause error) aftermath[item[In, Out]] {
	b := &x.builder
	for i, l := range b.sealed {
		b.sealed[i] = nil
		l.id = core.Must(x.inner.TryEnqueue(l)) // it has room, and is open while there are items
		x.lots[l.id] = l
	}
	b.sealed = b.sealed[:0]
	if at := b.next(); at < x.armed {
		x.armed = at
		if x.timer == nil {
			x.timer = time.AfterFunc(at-now, x.ring)
		} else {
			x.timer.Reset(at - now)
		}
	}
	if len(b.admitted)+len(b.dropped)+len(b.emptied) == 0 {
		return aftermath[item[In, Out]]{}
	}
	after := aftermath[item[In, Out]]{b.admitted, nil, b.emptied, cause, b.floods}
	b.admitted, b.emptied, b.floods = nil, nil, false
	for _, l := range after.emptied {
		l.cause = cause
		delete(x.lots, l.id)
	}
	x.lose(&after, b.dropped)
	b.dropped = nil
	return after
}

// lose notes entries that will not be flushed. mu is held.
func (x *engine[In, Out]) lose(after *aftermath[item[In, Out]], entries []*entry[item[In, Out]]) {
	for _, e := range entries {
		e.value.err = after.cause
	}
	after.gone = append(after.gone, entries...)
}

// settle answers who waits, and cancels the operations of lots that have become
// empty. No lock is held.
func (x *engine[In, Out]) settle(after *aftermath[item[In, Out]]) {
	for _, e := range after.admitted {
		close(e.value.room)
	}
	for _, e := range after.gone {
		if e.called {
			close(e.value.settled)
		}
	}
	for _, l := range after.emptied {
		x.inner.Cancel(l.id, after.cause)
	}
}

// report tells of items that will not be flushed. No lock is held.
func (x *engine[In, Out]) report(after *aftermath[item[In, Out]]) {
	defer x.handOver(after) // after the signal, even if a handler of it ends the goroutine
	if after.floods {
		x.inner.Sink().RaiseKey(SignalDropped, x.opts.Name)
	}
}

// handOver hands items that will not be flushed to OnError.
func (x *engine[In, Out]) handOver(after *aftermath[item[In, Out]]) {
	var lost []In
	for _, e := range after.gone {
		if !e.called {
			lost = append(lost, e.value.in)
		}
	}
	if len(lost) > 0 && x.opts.OnError != nil {
		x.opts.OnError(lost, after.cause)
	}
}

// Flush flushes all items accepted so far, and waits until that is done, while the
// intake stays open. When ctx ends first it returns its cause; the flushes go on.
// Called from one of them it returns [core.ErrWouldDeadlock].
func (x *engine[In, Out]) Flush(ctx context.Context) error {
	if x.isOwn(ctx) {
		return core.ErrWouldDeadlock
	}
	x.mu.Lock()
	x.builder.flush()
	x.commit(x.now(), nil) // nobody is let in or out by this
	x.mu.Unlock()
	return x.inner.Flush(ctx)
}

// Complete ends the intake and flushes what was accepted, without waiting for that.
// Who waits for room gets [core.ErrClosed].
func (x *engine[In, Out]) Complete() {
	x.mu.Lock()
	turnedAway := x.builder.complete()
	x.builder.flush()
	x.commit(x.now(), nil) // nobody is let in or out by this
	x.disarm()
	x.mu.Unlock()
	for _, e := range turnedAway {
		close(e.value.room)
	}
	x.inner.Complete()
}

// Drain ends the intake, flushes all that was accepted, and waits until that is done.
// When ctx ends first it returns its cause; the flushes go on. Called from one of them
// it returns [core.ErrWouldDeadlock] and changes nothing.
func (x *engine[In, Out]) Drain(ctx context.Context) error {
	if x.isOwn(ctx) {
		return core.ErrWouldDeadlock
	}
	x.Complete()
	return x.inner.Flush(ctx)
}

// Close ends the intake without flushing anything: items that wait count as
// cancelled, for the cause [core.ErrClosed], and so are the flushes that run. It
// waits for these to return, unless it is called from one of them or from a handler
// of a signal. It returns nil. Use Drain first to lose nothing.
func (x *engine[In, Out]) Close() error {
	x.mu.Lock()
	turnedAway := x.builder.complete()
	lost := x.builder.close()
	after := x.commit(x.now(), core.ErrClosed)
	after.cause = core.ErrClosed
	x.lose(&after, lost)
	x.disarm()
	x.mu.Unlock()
	for _, e := range turnedAway {
		close(e.value.room)
	}
	x.settle(&after)
	defer x.report(&after)
	return x.inner.Close()
}

// Cancel cancels the flush of a batch. One that has not begun will not be; one that has
// gets its context cancelled. The cause, nil meaning [core.ErrCancelled], is what who
// waits for its items gets, unless the flush returns something else, and OnError. It
// reports false if there was nothing to cancel.
func (x *engine[In, Out]) Cancel(id core.OperationID, cause error) bool {
	if cause == nil {
		cause = core.ErrCancelled
	}
	x.mu.Lock()
	l := x.lots[id]
	if l == nil || l.state != lotSealed {
		x.mu.Unlock()
		return l != nil && x.inner.Cancel(id, cause)
	}
	now := x.now()
	lost := x.builder.cancel(l, now)
	after := x.commit(now, cause)
	x.lose(&after, lost)
	x.mu.Unlock()
	x.settle(&after)
	x.report(&after)
	return true
}

// Lookup returns what is known of a batch that waits for its turn, is being flushed,
// or has been not long ago.
func (x *engine[In, Out]) Lookup(id core.OperationID) (core.Snapshot, bool) {
	return x.inner.Lookup(id)
}

// Operations walks the batches that q selects, in the order in which they were filled.
// One that is still being filled is not an operation yet.
func (x *engine[In, Out]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return x.inner.Operations(q)
}

// Explain says why a batch waits; see [core.Coordinator.Explain].
func (x *engine[In, Out]) Explain(id core.OperationID) (core.Explanation, bool) {
	return x.inner.Explain(id)
}

// OnFinalized calls fn with the last snapshot of every batch that leaves the window,
// exactly once each, on Close too; see [core.Coordinator.OnFinalized].
func (x *engine[In, Out]) OnFinalized(fn func(core.Snapshot)) (cancel func()) {
	return x.inner.OnFinalized(fn)
}

// Stats returns the counters of items and batches, read as one cut.
func (x *engine[In, Out]) Stats() Stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.builder.counters()
}

// Name is [Options.Name].
func (x *engine[In, Out]) Name() string { return x.inner.Name() }

// Sink is where signals are raised.
func (x *engine[In, Out]) Sink() *core.Sink { return x.inner.Sink() }

// disarm stops the timer, which would keep the batcher in memory, when there is
// nothing left that could become due. mu is held.
func (x *engine[In, Out]) disarm() {
	if x.timer != nil {
		x.timer.Stop()
	}
}

// ring is the timer's function.
func (x *engine[In, Out]) ring() {
	x.mu.Lock()
	x.armed = never
	now := x.now()
	x.builder.step(now)
	x.commit(now, nil) // nobody is let in or out by this
	x.mu.Unlock()
}
