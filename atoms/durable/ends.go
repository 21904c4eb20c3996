package durable

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An ending is the end of a claim that is not recorded yet.
type ending struct {
	run     *run
	end     End
	since   time.Time
	again   time.Time // when to try again
	busy    int       // how often the lock of its key was taken
	refused int       // how often a turn with it failed
	err     error     // of the last turn that did not record it
}

// errBusy is why the end of an item is not recorded while its key is locked.
var errBusy = errors.New("durable: another transaction has the lock of its key")

// atOnce says that the item can be claimed again at once.
func (x *ending) atOnce(e Ended) bool {
	switch x.end.Kind {
	case EndSnoozed, EndRetry:
		return x.end.After <= 0 && e.State == stateAfter[x.end.Kind]
	case EndParked: // a signal may be there
		return e.State == Ready && (x.end.Park.Step == "" || x.end.Park.Pattern != "" || x.end.Park.For <= 0)
	}
	return x.end.Kind != EndGivenBack && e.State == Ready // it is to be undone
}

// class is that of the item after the end.
func (x *ending) class() string {
	if x.end.Kind == EndParked {
		return x.end.Park.Class
	}
	return x.run.item.Class
}

// freed says that something can be claimed since the end, of which the store tells nothing: the next item of
// the key, if the body has ended the item in a transaction of its own, or an item that nobody ran.
func (x *ending) freed(e Ended) bool {
	return x.run.store == nil || x.end.Key != "" && x.run.finished.Load() && e.Outcome != OutcomeEnded
}

// done ends the claim of an operation that has ended. It does so whatever happens before: else the
// item, its key and its slot would never be free.
func (q *queue) done(o core.Snapshot) {
	r := o.Item.(*task).run
	e := End{Kind: EndRetry, After: q.policy.maxBackoff, Err: "durable: what follows the attempt could not be decided"}
	defer func() { q.finish(r, e) }()
	e = q.policy.after(r.last(), o.Status, o.Err, rand.Float64())
	if givenBack(r, o) {
		e = End{Kind: EndGivenBack}
	}
	e, strays := r.hasFlow().end(e)
	if e.Kind == EndDone {
		e.Result = r.returned()
	}
	if len(strays) > 0 {
		FlowStray.Raise(q.opts.Sink, q.opts.Name, Stray{r.item.ID, r.item.Key, strays})
	}
	owed := r.owed()
	e.Calls, e.Cost = owed[0], owed[1]
}

// finish lets the pump record the end of a claim. If the store cannot be reached, or refuses the
// end, the pump tries again until the lease is lost or Run gives up.
func (q *queue) finish(r *run, e End) {
	e.ID, e.Key, e.Token = r.item.ID, r.item.Key, r.item.Token
	q.mu.Lock()
	q.ends = append(q.ends, &ending{run: r, end: e, since: time.Now()})
	q.mu.Unlock()
	select {
	case q.ended <- struct{}{}:
	default:
	}
}

var kindOf = map[State]signals.Kind[Item]{Done: ItemSucceeded, Retry: ItemRetried, Dead: ItemFailed, Halted: ItemFailed, Cancelled: ItemCancelled, Ready: ItemReturned, 0: ItemFenced}

// tell raises the signal about the end of a claim.
func (q *queue) tell(r *run, e End, out Ended) {
	i := r.item
	i.Data, i.State = nil, out.State
	back := out.State == Ready && (e.Kind == EndSnoozed || e.Kind == EndParked)
	if back {
		i.Note = e.Err
	} else {
		i.Err = cmp.Or(e.Err, i.Err)
	}
	if out.Outcome == OutcomeFenced && r.finished.Load() && e.Kind == EndDone {
		i.State = Done
	}
	if i.State&failed != 0 && i.Failing.IsZero() {
		i.Failing = time.Now()
	}
	kind := kindOf[i.State]
	if back {
		kind = ItemSnoozed
	} else if i.State == Ready && e.Kind != EndGivenBack { // it is to be undone
		kind = ItemRetried
	}
	if i.State == 0 {
		q.fenced.Add(1)
	}
	if i.State&(Dead|Halted) != 0 && r.text != nil {
		i.Text = r.text()
	}
	kind.Raise(q.opts.Sink, q.opts.Name, i)
}

// take takes ends of one session, at most one for each item, and returns the session, and when to
// take again; zero: when there is something new. An end that was refused is taken alone. Without
// ends, take returns the current session, or nil.
func (p *pump) take(now time.Time, none bool) (s *session, some []*ending, next time.Time) {
	p.queue.mu.Lock()
	all := append(p.again, p.queue.ends...)
	p.queue.ends = nil
	p.queue.mu.Unlock()
	once := map[ItemID]bool{}
	p.again = nil
	for _, x := range all {
		at := x.again
		if p.others && x.refused > 0 && !at.After(now) {
			at = now.Add(1)
		}
		late := at.After(now)
		if late && (next.IsZero() || at.Before(next)) {
			next = at
		}
		if none || late || len(some) == MaxBatch || once[x.end.ID] || s != nil && x.run.session != s || len(some) > 0 && x.refused+some[0].refused > 0 {
			p.again = append(p.again, x)
			continue
		}
		s, once[x.end.ID] = x.run.session, true
		some = append(some, x)
	}
	if s == nil {
		s = p.loop.session.Load()
	}
	p.others = p.others && none
	return s, some, next
}

// refuse notes that a turn with these ends failed. The store may refuse one of them only, so each is tried
// alone from now on, with pauses that get longer.
func (p *pump) refuse(some []*ending, err error) {
	for _, x := range some {
		x.again, x.err = time.Now().Add(min(10*time.Millisecond<<min(x.refused, 20), p.loop.every)), err
		p.others = p.others || x.refused > 0
		x.refused++
	}
	p.again = append(p.again, some...)
}

// giveUp forgets the ends that were not recorded. When the node has left the store, their items are
// free again.
func (p *pump) giveUp() {
	for _, x := range p.again {
		p.gaveUp = errors.Join(p.gaveUp, fmt.Errorf("durable: queue %q: the end of item %d could not be recorded for %v, so the item may run again: %w", p.queue.opts.Name, x.end.ID, p.queue.opts.Lease, x.err))
		p.leave(x.run)
		p.queue.tell(x.run, x.end, Ended{})
	}
}

// leave frees the slot of a run.
func (p *pump) leave(r *run) {
	if r.release != nil {
		r.release()
	}
	p.queue.mu.Lock()
	started := r.store != nil // false for an orphan
	if p.queue.runs[r.item.ID] == r {
		delete(p.queue.runs, r.item.ID)
	}
	p.queue.mu.Unlock()
	if r.alone {
		p.loop.share.free(p.queue, false)
	}
	if started {
		p.loop.share.exit(p.queue)
	}
}
