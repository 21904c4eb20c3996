package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	maxRow     = 16 // how many claims of a key are handed over in a row
	pruneEvery = time.Minute
)

// Run claims items and runs them until ctx ends or Stop or Close is called. Then it gives back
// the items that have not started, waits for the running bodies, and returns nil. Call Close to
// cancel these bodies. If the store cannot be reached, Run tries again. Run can be called once.
// A process that only enqueues does not call it.
func (q *Queue[T]) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	first := false
	q.begun.Do(func() { first, q.stop = true, stop })
	if !first {
		return fmt.Errorf("durable: queue %q: Run was called before, or Stop or Close was: %w", q.opts.Name, core.ErrClosed)
	}
	defer close(q.stopped)
	defer q.here.OnClosed(stop)()
	wake := func() { q.wake(false) }
	if q.waker != nil {
		defer q.waker.OnWake(q.opts.Name, wake)()
	}
	if q.opts.DeferOn != "" {
		defer q.opts.Sink.SubscribeRetracted(q.opts.DeferOn, func(core.Retraction) { wake() })()
	}
	l := &loop[T]{queue: q.queue, every: min(q.opts.Poll, q.opts.Lease/3), prune: time.Now()}
	defer l.reach(nil)
	for ctx.Err() == nil {
		if l.step() {
			continue
		}
		select {
		case <-ctx.Done():
		case <-q.wakes:
		case <-time.After(time.Until(l.beat)):
		}
	}
	l.stopping = true
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.here.Stop(context.Background())
		q.children.Wait()
	}()
	for l.session != nil {
		select {
		case <-ended:
			l.session.fence.Stop()
			l.call(func(ctx context.Context) error { return q.store.Leave(ctx, l.session.node) })
			l.session.lose(nil)
			l.session = nil
		case <-time.After(time.Until(l.beat)):
			l.step()
		}
	}
	<-ended
	return q.ends.Drain(context.Background())
}

// A loop is the state of Run. It calls the store once at a time. So a beat sees no claim that
// is under way, except claims that an end hands over.
type loop[T any] struct {
	*queue[T]
	session  *session // nil while there is none
	every    time.Duration
	beat     time.Time // when to beat next
	prune    time.Time
	stopping bool   // claims no more
	low      int    // items claimed since the last one by age
	release  func() // of SignalStoreLost; nil if the store can be reached
}

// call calls the store, with a time limit that leaves time for another beat.
func (l *loop[T]) call(fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.Lease/4)
	defer cancel()
	err := fn(ctx)
	if errors.Is(err, ErrLeaseLost) && l.session != nil {
		l.session.lose(ErrLeaseLost)
	} else {
		l.reach(err)
	}
	return err
}

func (l *loop[T]) reach(err error) {
	switch {
	case err != nil && l.release == nil:
		l.release = l.opts.Sink.Hold(SignalStoreLost, l.opts.Name, 0)
	case err == nil && l.release != nil:
		l.release()
		l.release = nil
	}
}

// step makes the calls of the store that are due. It reports whether more are due at once.
func (l *loop[T]) step() (more bool) {
	if l.session != nil && l.session.ctx.Err() != nil {
		l.session = nil
		l.opts.Sink.RaiseKey(SignalLeaseLost, l.opts.Name)
	}
	l.stopping = l.stopping || l.here.Stats().Closed
	if now := time.Now(); !now.Before(l.beat) || l.beats.Swap(false) {
		l.beat = now.Add(l.every)
		switch {
		case l.session != nil:
			l.doBeat()
		case !l.stopping:
			l.join()
		}
	}
	if l.session == nil || l.session.ctx.Err() != nil || l.stopping {
		return false
	}
	full := false // there is more to prune
	if now := time.Now(); !now.Before(l.prune) {
		l.call(func(ctx context.Context) error {
			n, err := l.store.Prune(ctx, l.opts.Name, l.opts.Keep, MaxBatch)
			full = n == MaxBatch
			return err
		})
		if !full {
			l.prune = now.Add(pruneEvery)
		}
	}
	return l.claim() || full
}

func ignore[V any](_ V, err error) error { return err }

func (l *loop[T]) join() {
	node := Node{Queue: l.opts.Name, Name: l.opts.Node, Lease: l.opts.Lease, MaxConcurrency: l.opts.MaxConcurrency, MaxCluster: l.opts.MaxCluster, Lanes: l.opts.Lanes}
	if len(node.Lanes) == 0 {
		node.Lanes = []core.Lane{{}}
	}
	sent := time.Now()
	err := l.call(func(ctx context.Context) (err error) {
		node.ID, err = l.store.Join(ctx, node)
		return err
	})
	if err == nil {
		l.session = newSession(node, sent)
		l.doBeat() // frees the items of nodes that are gone
	}
}

func (l *loop[T]) doBeat() {
	s, sent, note, beaten := l.session, time.Now(), "", Beaten{}
	if l.deferred() {
		note = "waits while " + l.opts.DeferOn + " is present"
	}
	err := l.call(func(ctx context.Context) (err error) {
		beaten, err = l.store.Beat(ctx, s.node, note)
		return err
	})
	for _, lost := range beaten.Lost {
		NodeLost.Raise(l.opts.Sink, l.opts.Name, lost)
	}
	if err != nil {
		return
	}
	if s.ctx.Err() == nil {
		s.fence.Reset(s.left(sent))
	}
	l.mu.Lock()
	runs := maps.Clone(l.runs)
	l.mu.Unlock()
	for _, c := range beaten.Claims {
		if r := runs[c.ID]; r != nil && c.Cancel != "" && r.item.Token == c.Token {
			cause := fmt.Errorf("durable: item %d of queue %q: %w: %s", c.ID, l.opts.Name, core.ErrCancelled, c.Cancel)
			r.know(l.here.Control, 0, c.Cancel, cause)
		}
	}
	var lost []Held
	s.seen, lost = orphans(s.seen, beaten.Claims, func(id ItemID) bool { return runs[id] != nil }, sent, l.opts.Lease)
	for _, c := range lost {
		if l.stopping { // Leave gives it back
			break
		}
		l.children.Go(func() {
			l.finish(&run{queue: l.opts.Name, item: Item{ID: c.ID, Token: c.Token}, session: s}, End{Kind: EndGivenBack})
		})
	}
}

func (q *queue[T]) deferred() bool { return q.opts.DeferOn != "" && q.opts.Sink.Has(q.opts.DeferOn) }

// claim claims as many items as can start. It reports whether there may be more.
func (l *loop[T]) claim() (more bool) {
	l.mu.Lock()
	room := l.opts.MaxConcurrency - len(l.runs)
	l.mu.Unlock()
	want := Want{Max: min(MaxBatch, room+l.here.Stats().Suspended)}
	if want.Max <= 0 || l.deferred() {
		return false
	}
	if len(l.opts.Lanes) > 1 && l.opts.Ageing > 0 && l.low >= 3 {
		want.Aged = l.opts.Ageing
	}
	var items []Item
	err := l.call(func(ctx context.Context) (err error) {
		items, err = l.store.Claim(ctx, l.session.node, want)
		return err
	})
	if l.low += len(items); want.Aged > 0 && len(items) > 0 {
		l.low = 0
	}
	for _, i := range items {
		l.start(l.session, i, 0)
	}
	return err == nil && len(items) == want.Max
}

// start runs an item that was claimed.
func (q *queue[T]) start(s *session, i Item, row int) {
	t := &task[T]{run: &run{queue: q.opts.Name, store: q.store, item: i, session: s, row: row}}
	q.mu.Lock()
	q.runs[i.ID] = t.run
	q.mu.Unlock()
	var err error
	end, refused := q.policy.refuse(i)
	if !refused {
		if t.value, err = q.decode(i); err != nil {
			end, refused = q.policy.dead(err.Error()), true
		}
	}
	if !refused {
		end = End{Kind: EndGivenBack} // if it cannot start
		t.release = context.AfterFunc(s.ctx, func() { t.know(q.here.Control, 0, "", ErrLeaseLost) })
		if !q.deferred() { // since it was claimed
			op, err := q.here.Enqueue(context.WithValue(context.Background(), runKey{}, t.run), t)
			if err == nil {
				t.know(q.here.Control, op, "", nil)
				return
			}
		}
	}
	q.children.Go(func() { q.finish(t.run, end) })
}

// done ends the claim of an operation that has ended.
func (q *queue[T]) done(o core.Snapshot) {
	r := o.Item.(*task[T]).run
	q.finish(r, q.policy.after(r.last(), o.Status, o.Err, rand.Float64()))
}

// finish records the end of a claim. If the store cannot be reached, it tries again until the
// lease is lost.
func (q *queue[T]) finish(r *run, e End) {
	e.ID, e.Token = r.item.ID, r.item.Token
	e.HandOver = r.row < maxRow && !q.deferred() && !q.here.Stats().Closed
	x := &ending{node: r.session.node, end: e}
	wait := 10 * time.Millisecond
	for q.ends.Do(context.Background(), x) != nil && r.session.ctx.Err() == nil {
		select {
		case <-time.After(wait):
		case <-r.session.ctx.Done():
		}
		wait = min(2*wait, q.opts.Poll)
	}
	if r.release != nil {
		r.release()
	}
	q.mu.Lock()
	if q.runs[r.item.ID] == r {
		delete(q.runs, r.item.ID)
	}
	q.mu.Unlock()
	if x.out.Next != nil {
		q.start(r.session, *x.out.Next, r.row+1)
	}
	q.tell(r.item, e, x.out, r.finished.Load())
	if x.out.Next == nil { // else the slot is taken again, and a claim would be a commit for nothing
		q.wake(r.item.Key != "")
	}
}

var kindOf = map[State]core.Kind[Item]{Done: ItemSucceeded, Retry: ItemRetried, Dead: ItemFailed, Halted: ItemFailed, Cancelled: ItemCancelled, Ready: ItemReturned, 0: ItemFenced}

// tell raises the signal about the end of a claim.
func (q *queue[T]) tell(i Item, e End, out Ended, finished bool) {
	i.Data, i.State, i.Err = nil, out.State, cmp.Or(e.Err, i.Err)
	if out.Outcome == OutcomeFenced && finished && e.Kind == EndDone {
		i.State = Done
	}
	kind := kindOf[i.State]
	if i.State == Ready && e.Kind == EndSnoozed {
		kind = ItemSnoozed
	}
	if i.State == 0 {
		q.fenced.Add(1)
	}
	kind.Raise(q.opts.Sink, q.opts.Name, i)
}

// end records ends, in one transaction for each node.
func (q *queue[T]) end(ctx context.Context, all []*ending, errs []error) error {
	ctx, cancel := context.WithTimeout(ctx, q.opts.Lease/4)
	defer cancel()
	of, once := map[NodeID][]int{}, map[ItemID]bool{}
	for n, x := range all {
		if once[x.end.ID] { // an earlier claim, whose end got no answer
			errs[n] = ErrUndecided
			continue
		}
		once[x.end.ID] = true
		of[x.node.ID] = append(of[x.node.ID], n)
	}
	for _, which := range of {
		ends := make([]End, len(which))
		for n, of := range which {
			ends[n] = all[of].end
		}
		out, err := q.store.End(ctx, all[which[0]].node, ends)
		for n, of := range which {
			if errs[of] = err; err == nil {
				all[of].out = out[n]
			}
		}
	}
	return nil
}
