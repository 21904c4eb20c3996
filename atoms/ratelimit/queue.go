package ratelimit

import (
	"container/list"
	"context"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A queue is a first come, first served queue in front of buckets. A request needs tokens
// of all of them at the same moment. A queued request holds nothing: the first in the queue
// takes from all buckets at the moment at which all have enough.
//
// A request is granted at the time at which it is due, not at the time at which somebody
// looks, so the result does not depend on when that is. The lock of the shard guards a
// queue. Methods get the time as now, except those that say otherwise.
type queue struct {
	shard   *shard
	limited *condition // nil for the queues of keys
	buckets []bucket

	requests list.List // of *request
	from     int64     // the first has been the first since then, or came later
	forecast forecast

	timer *time.Timer
	alarm int64 // what the timer is set for; never: it is not set
	slot  int32 // of the key
}

// A forecast is what the buckets will be like when the last in the queue is granted.
type forecast struct {
	known   bool
	buckets []bucket
	at      int64
}

// settle grants all requests that are due.
func (q *queue) settle(now int64) {
	for r := q.first(); r != nil && !q.shard.closed; r = q.first() {
		at := q.dueFirst()
		if at > now {
			return
		}
		for i := range q.buckets {
			q.buckets[i].take(r.costs[i], q.from, at)
		}
		q.remove(r)
		q.from = at
		r.grant(q.buckets)
		q.shard.counts.Allowed++
		q.shard.counts.Delayed++
		if q.limited != nil {
			q.limited.last = max(q.limited.last, at)
		}
	}
}

// change settles, changes what fn changes, and settles again: what becomes due by the
// change is due from now on.
func (q *queue) change(now int64, fn func()) {
	q.settle(now)
	fn()
	q.changed(now)
}

func (q *queue) changed(now int64) {
	q.from = max(q.from, now)
	q.forecast.known = false
	q.settle(now)
}

// first is the first request in the queue, or nil.
func (q *queue) first() *request {
	if q.requests.Len() == 0 {
		return nil
	}
	return q.requests.Front().Value.(*request)
}

// dueFirst is when the first in the queue is due.
func (q *queue) dueFirst() int64 {
	if r := q.first(); r != nil {
		return dueAt(q.buckets, r.costs, q.from)
	}
	return never
}

// dueNext is when a request that came now, after settle, would be due.
func (q *queue) dueNext(costs []int64, now int64) int64 {
	if q.requests.Len() == 0 {
		return dueAt(q.buckets, costs, now)
	}
	if !q.forecast.known {
		q.forecast.fill(q, nil)
		q.forecast.known = true
	}
	return dueAt(q.forecast.buckets, costs, q.forecast.at)
}

// dueOf is when a queued request is due.
func (q *queue) dueOf(r *request) int64 {
	var f forecast
	f.fill(q, r)
	return dueAt(f.buckets, r.costs, f.at)
}

// fill grants the requests of a queue before end.
func (f *forecast) fill(q *queue, end *request) {
	f.buckets, f.at = append(f.buckets[:0], q.buckets...), q.from
	for e := q.requests.Front(); e != nil; e = e.Next() {
		r := e.Value.(*request)
		if r == end {
			return
		}
		f.grant(r.costs)
	}
}

func (f *forecast) grant(costs []int64) {
	from := f.at
	if f.at = dueAt(f.buckets, costs, from); f.at == never {
		return
	}
	for i := range f.buckets {
		f.buckets[i].take(costs[i], from, f.at)
	}
}

// push puts a request at the end of the queue, after settle.
func (q *queue) push(r *request, now int64) {
	if q.first() == nil {
		q.from, q.forecast.known = now, false
	}
	r.element, r.state = q.requests.PushBack(r), queued
	if q.forecast.known {
		q.forecast.grant(r.costs)
	}
}

// remove takes a request out of the queue.
func (q *queue) remove(r *request) {
	q.requests.Remove(r.element)
	q.shard.engine.queued.Add(-1)
}

// takeNow takes the costs if the queue is empty and all buckets have them, and counts that.
func (q *queue) takeNow(now int64, costs []int64) bool {
	ok := !q.shard.closed && q.requests.Len() == 0
	last := len(q.buckets) - 1
	for i := 0; i < last && ok; i++ {
		b := q.buckets[i] // a copy: nothing is taken yet
		ok = b.meter.take(&b.mark, now, costs[i])
	}
	for i := last; i >= 0 && ok; i-- {
		b := &q.buckets[i]
		ok = b.meter.take(&b.mark, now, costs[i])
	}
	if ok {
		q.shard.counts.Allowed++
	}
	return ok
}

// allow takes the costs now or refuses. It unlocks.
func (q *queue) allow(now int64, costs []int64) bool {
	q.settle(now)
	ok := q.takeNow(now, costs)
	if !ok {
		q.shard.counts.Denied++
		q.begin(now)
	}
	q.unlock(now)
	return ok
}

// wait enters a request and waits for its turn. It unlocks.
func (q *queue) wait(ctx context.Context, now int64, r *request, deadline int64) error {
	q.enter(now, r, deadline)
	q.unlock(now)
	return q.await(ctx, r)
}

// enter grants a request, queues it or refuses it. It refuses a request that would not be
// due before the deadline; never is no deadline.
func (q *queue) enter(now int64, r *request, deadline int64) {
	q.settle(now)
	s := q.shard
	err := s.check(q.buckets, r.costs)
	if err == nil {
		if q.takeNow(now, r.costs) {
			r.grant(q.buckets)
			return
		}
		q.begin(now)
		if deadline != never {
			err = s.engine.tooLate(q.dueNext(r.costs, now), now, deadline)
		}
	}
	if err == nil && s.engine.queued.Add(1) > s.engine.maxQueued {
		s.engine.queued.Add(-1)
		err = s.engine.errFull
	}
	if err == nil {
		q.push(r, now)
		return
	}
	r.finish(gone, err)
	s.counts.Denied++
}

// reserve enters a request that no caller waits for. It locks, and reads the clock.
func (q *queue) reserve(costs []int64) *Reservation {
	r := &Reservation{queue: q, request: request{costs: costs}}
	now := q.shard.lock()
	q.enter(now, &r.request, never)
	q.unlock(now)
	return r
}

// await waits until a request is not queued, or takes it out of the queue when ctx ends
// first. It locks, and reads the clock.
func (q *queue) await(ctx context.Context, r *request) error {
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor("limiter "+strconv.Quote(q.shard.engine.name), time.Time{})()
	}
	select {
	case <-r.ready:
		return r.err
	case <-ctx.Done():
	}
	cause, now := context.Cause(ctx), q.shard.lock()
	q.settle(now)
	if r.state == queued {
		q.drop(now, r, cause)
	}
	err := r.err
	q.unlock(now)
	return err
}

// drop takes a request out of the queue, or gives its tokens back. The requests behind it
// are due as if it had never come.
func (q *queue) drop(now int64, r *request, why error) {
	switch r.state {
	case granted:
		q.shard.counts.Allowed--
		q.adjust(r, make([]int64, len(r.costs)))
		r.state = gone // a waiter may read err
	case queued:
		q.remove(r)
		r.finish(gone, why)
	default:
		return
	}
	q.shard.counts.Cancelled++
	q.changed(now)
}

// adjust makes a request cost what it really cost.
func (q *queue) adjust(r *request, costs []int64) {
	for i, cost := range costs {
		if r.state == granted {
			if r.costs[i] == untaken {
				continue
			}
			q.buckets[i].charge(cost - r.costs[i])
		}
		r.costs[i] = cost
	}
}

// close ends all queued requests, and the condition without a signal.
func (q *queue) close(now int64) {
	for r := q.first(); r != nil; r = q.first() {
		q.drop(now, r, q.shard.engine.errClosed)
	}
	if c := q.limited; c != nil && c.on {
		c.on = false
		q.shard.engine.effects.Add(func() { c.release() })
	}
}

// unlock sets the timer and unlocks.
func (q *queue) unlock(now int64) {
	q.schedule(now)
	q.shard.unlock()
}

// schedule sets the timer for when the first in the queue is due, or else for the end of
// the condition. For that it may come early; then it is set again.
func (q *queue) schedule(now int64) {
	due := q.dueFirst()
	if q.requests.Len() == 0 && q.limited != nil && q.limited.on {
		due = min(q.alarm, q.quietUntil())
	}
	switch {
	case due == q.alarm:
	case due == never:
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(time.Duration(due-now), q.ring)
	default:
		q.timer.Reset(time.Duration(due - now))
	}
	q.alarm = due
}

// ring is called by the timer. The call may be late, when the timer is already set again.
func (q *queue) ring() {
	now := q.shard.lock()
	q.alarm = never
	q.settle(now)
	q.recover(now)
	q.unlock(now)
}

// A condition is whether a limiter is limited. It begins when a request is refused or
// queued. The lock of its shard guards all but release.
type condition struct {
	on      bool
	last    int64  // when the last request was refused, or left the queue
	release func() // ends [SignalLimited]; only effects use it
}

// quietUntil is when the condition ends if no request is refused or queued before: after as
// long as the slowest bucket takes to fill, but at least a second and at most a minute. With
// less, a steady overload would begin and end it with every second request.
func (q *queue) quietUntil() int64 {
	seconds := 1.0
	for i := range q.buckets {
		m := q.buckets[i].meter
		seconds = max(seconds, min(60, float64(m.burst)/m.rate)) // the rate may be 0
	}
	return q.limited.last + int64(seconds*1e9)
}

// begin begins the condition, because a request is refused or queued.
func (q *queue) begin(now int64) {
	c, s := q.limited, q.shard
	if c == nil || s.closed {
		return
	}
	c.last = max(c.last, now)
	if !c.on {
		c.on = true
		s.afterUnlock(func() { c.release = s.engine.sink.Hold(SignalLimited, s.engine.name, 0) })
	}
}

// recover ends the condition if its time is over.
func (q *queue) recover(now int64) {
	c, s := q.limited, q.shard
	if c == nil || !c.on || q.requests.Len() > 0 || now < q.quietUntil() {
		return
	}
	c.on = false
	s.afterUnlock(func() {
		c.release()
		s.engine.sink.RaiseKey(SignalRecovered, s.engine.name)
	})
}
