package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	maxRow     = 16 // the maximum number of claims of a key that are handed over in a row
	shortRow   = 3  // the same while other items may wait
	pruneEvery = time.Minute
)

// Run claims items and runs them until ctx ends or Stop or Close is called. Then it gives back
// the items that have not started, waits for the running bodies, and returns nil. Call Close to
// cancel these bodies. If the store cannot be reached, Run tries again. Run can be called once.
// A process that only enqueues does not call it.
//
// If the store refuses the end of an item, the other items go on. After the last body has ended, Run
// tries for one Lease to record the ends that are left. Then it raises [SignalFenced] for each, gives
// the items back, and returns an error with their IDs: they may run again.
func (q *Queue[T]) Run(ctx context.Context) error {
	return q.queue.run(ctx)
}

func (q *queue) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	first := false
	q.begun.Do(func() { first, q.stop = true, stop })
	if !first {
		return fmt.Errorf("durable: queue %q: Run was called before, or Stop or Close was: %w", q.opts.Name, core.ErrClosed)
	}
	defer close(q.stopped)
	defer q.here.OnClosed(stop)()
	turns := 1
	if s, ok := q.store.(interface {
		Connect() (turns int, release func())
	}); ok {
		var release func()
		turns, release = s.Connect()
		defer release()
	}
	wake := func() { q.wake(false) }
	if q.waker != nil {
		defer q.waker.OnWake(q.opts.Name, wake)()
	}
	defer q.hearWaiters()()
	gates := []string{q.opts.DeferOn}
	for _, c := range q.opts.Classes {
		gates = append(gates, c.DeferOn, c.TrialOn)
	}
	for _, gate := range gates {
		if gate != "" {
			defer q.opts.Sink.SubscribeRetracted(gate, func(signals.Retraction) { wake() })()
		}
	}
	share, leave := shareOf(q.store, q, q.opts.Lease, wake)
	defer leave()
	l := &loop{queue: q, running: ctx, share: share, every: min(q.opts.Poll, q.opts.Lease/3), prune: time.Now()}
	defer l.line.reach(l.queue.opts, nil)
	defer l.prunes.Wait()
	p := &pump{loop: l, queue: q, most: turns, came: make(chan *turn, turns), more: true, quit: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run()
	}()
	for ctx.Err() == nil {
		l.step(false)
		select {
		case <-ctx.Done():
		case <-q.beats:
			l.beat = time.Time{}
		case <-time.After(time.Until(l.beat)):
		}
	}
	go func() {
		q.here.Stop(context.Background())
		p.last = time.Now().Add(q.opts.Lease)
		close(p.quit)
	}()
	for {
		select {
		case <-ended:
			if s := l.session.Swap(nil); s != nil {
				s.fence.Stop()
				l.call(&l.line, s, func(ctx context.Context) error { return q.store.Leave(ctx, s.node) }, l.queue.opts.Lease/4)
				s.lose(nil)
			}
			return p.gaveUp
		case <-time.After(time.Until(l.beat)):
			l.step(true)
		}
	}
}

// Run runs queues, of any types, until ctx ends and all of them have ended. If one returns an error, Run ends the others, as the end of ctx
// does. It returns the errors of all.
func Run(ctx context.Context, queues ...interface{ Run(context.Context) error }) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(queues))
	var all sync.WaitGroup
	for n, q := range queues {
		all.Go(func() {
			if errs[n] = q.Run(ctx); errs[n] != nil {
				stop()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// A loop keeps this process a node of the store. It runs in the goroutine of Run, so a call
// that hangs does not delay the ends of items.
type loop struct {
	queue   *queue
	share   *share
	running context.Context         // ends when no more items are to be claimed
	session atomic.Pointer[session] // nil while there is none
	doubt   atomic.Bool             // the answer of a turn that may claim was lost
	pruning atomic.Bool
	prunes  sync.WaitGroup

	begunTurns, overTurns atomic.Int64 // the numbers of turns
	every                 time.Duration
	beat                  time.Time // when to beat next
	prune                 time.Time
	line                  line
}

// A line makes the calls of one goroutine to the store.
type line struct {
	release func() // ends SignalStoreLost; nil if the store can be reached
	err     error  // of the last call
}

func (l *line) reach(o Options, err error) {
	l.err = err
	switch {
	case err != nil && l.release == nil:
		l.release = StoreLost.Hold(o.Sink, o.Name, err, 0)
	case err == nil && l.release != nil:
		l.release()
		l.release = nil
	}
}

// call calls the store, with a time limit. If there is no answer for a quarter of the lease, the store counts as lost,
// and a call does not hold up the end of Run for longer.
func (l *loop) call(by *line, s *session, fn func(ctx context.Context) error, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if limit <= l.queue.opts.Lease/4 {
		return l.answered(by, s, fn(ctx))
	}
	answer := make(chan error, 1)
	go func() { answer <- fn(ctx) }()
	var err error
	select {
	case err = <-answer:
	case <-time.After(l.queue.opts.Lease / 4):
		by.reach(l.queue.opts, fmt.Errorf("durable: the store has not answered for %v: %w", l.queue.opts.Lease/4, context.DeadlineExceeded))
		select {
		case err = <-answer:
		case <-l.running.Done():
			cancel()
			err = <-answer
		}
	}
	return l.answered(by, s, err)
}

// answered notes the result of a call.
func (l *loop) answered(by *line, s *session, err error) error {
	if guard.Is(err, ErrLeaseLost) && s != nil {
		s.lose(ErrLeaseLost)
	} else {
		by.reach(l.queue.opts, err)
	}
	return err
}

// step makes the calls that are due. Only beats are made here: nothing delays them.
func (l *loop) step(stopping bool) {
	if s := l.session.Load(); s != nil && s.ctx.Err() != nil {
		l.session.Store(nil)
		why := "the store has ended its lease"
		if s.left() <= 0 {
			why = fmt.Sprintf("the store has accepted no heartbeat for %v", s.span())
		}
		err := fmt.Errorf("%w: this process lives, but %s", ErrLeaseLost, why)
		if guard.Is(l.line.err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w; either the store is slow, or the bodies leave this process too little processor time", err)
		}
		if l.line.err != nil {
			err = fmt.Errorf("%w, because the store could not be reached: %w", err, l.line.err)
		}
		l.queue.metrics.lost.Add(1)
		LeaseLost.Raise(l.queue.opts.Sink, l.queue.opts.Name, err)
	}
	if now := time.Now(); !now.Before(l.beat) {
		l.beat = l.share.next(now, l.every)
		switch s := l.session.Load(); {
		case s != nil:
			l.doBeat(s, stopping)
		case !stopping:
			l.join()
		}
	}
	if s := l.session.Load(); s != nil && s.ctx.Err() == nil && !stopping && !time.Now().Before(l.prune) && !l.pruning.Swap(true) {
		l.prune = time.Now().Add(pruneEvery)
		l.prunes.Go(l.pruneAll)
	}
}

// pruneAll deletes what ended long ago.
func (l *loop) pruneAll() {
	defer l.pruning.Store(false)
	var by line
	defer by.reach(l.queue.opts, nil)
	for more := true; more && l.running.Err() == nil; {
		more = false
		l.call(&by, nil, func(ctx context.Context) (err error) {
			_, more, err = l.queue.store.Prune(ctx, l.queue.opts.Name, l.queue.opts.Keep, MaxBatch)
			return err
		}, l.queue.opts.Lease/4)
	}
}

func ignore[V any](_ V, err error) error { return err }

func (l *loop) join() {
	node := Node{Queue: l.queue.opts.Name, Name: l.queue.opts.Node, Lease: l.queue.opts.Lease, MaxConcurrency: l.queue.opts.MaxConcurrency, MaxCluster: l.queue.opts.MaxCluster, Lanes: l.queue.opts.Lanes}
	for _, c := range l.queue.opts.Classes {
		node.Classes = append(node.Classes, c.limits())
	}
	node.KeyEvery, node.KeyBurst = keyTimes(l.queue.opts.KeyRate)
	if len(node.Lanes) == 0 {
		node.Lanes = []core.Lane{{}}
	}
	sent := time.Now()
	err := l.call(&l.line, nil, func(ctx context.Context) (err error) {
		node.ID, err = l.queue.store.Join(ctx, node)
		return err
	}, l.queue.opts.Lease/2)
	if err == nil {
		s := newSession(node, sent)
		l.doBeat(s, false) // frees the items of nodes that are gone
		l.session.Store(s)
		l.queue.wake(false)
	}
}

func (l *loop) doBeat(s *session, stopping bool) {
	sent, note, beaten := time.Now(), l.queue.note(), Beaten{}
	doubt, over, known := l.doubt.Swap(false), l.overTurns.Load(), l.known()
	err := l.call(&l.line, s, func(ctx context.Context) (err error) {
		beaten, err = l.share.beat(ctx, l.queue.store, s.node, note)
		return err
	}, max(s.left()-l.queue.opts.Lease/8, l.queue.opts.Lease/4)) // a beat that hangs leaves time for another one
	for _, lost := range beaten.Lost {
		lost.Reason = fmt.Sprintf("%s sent no heartbeat before its lease was over: %s free again", lost.Name, count(lost.Claims))
		NodeLost.Raise(l.queue.opts.Sink, l.queue.opts.Name, lost)
	}
	if err != nil {
		l.doubt.Store(l.doubt.Load() || doubt)
		return
	}
	s.extend(sent)
	if beaten.Due && !beaten.Paused {
		l.queue.wake(false)
	}
	runs := l.known()
	for _, c := range beaten.Claims {
		if r := runs[c.ID]; r != nil && c.Cancel != "" && r.item.Token == c.Token {
			cause := fmt.Errorf("durable: item %d of queue %q: %w: %s", c.ID, l.queue.opts.Name, core.ErrCancelled, c.Cancel)
			r.know(l.queue.here.Control, 0, c.Cancel, cause)
		}
	}
	s.serve(l.queue.opts, beaten.Strays)
	s.classed.Store(beaten.Classed || s.classed.Load())
	if beaten.Suspect && !beaten.Paused && !stopping && !l.queue.deferred() {
		l.share.request(l.queue, time.Now())
	}
	var lost []Held
	s.seen, lost = orphans(s.seen, beaten.Claims, known, over, l.begunTurns.Load())
	if doubt && len(s.seen) > len(lost) {
		l.beat = time.Time{} // the next beat knows
	}
	for _, c := range lost {
		if !stopping { // else Leave gives it back
			r := &run{queue: l.queue.opts.Name, item: Item{ID: c.ID, Key: c.Key, Token: c.Token}, session: s}
			l.queue.mu.Lock()
			if l.queue.runs[c.ID] == nil {
				l.queue.runs[c.ID] = r // it is known from now on
			}
			l.queue.mu.Unlock()
			delete(s.seen, c)
			l.queue.finish(r, End{Kind: EndGivenBack})
		}
	}
}

// known is the claims that this process knows.
func (l *loop) known() map[ItemID]*run {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return maps.Clone(l.queue.runs)
}
