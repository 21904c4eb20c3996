package ratelimit

import (
	"container/list"
	"context"
	"strconv"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A queue is a first come, first served queue in front of buckets. A queued request holds no
// tokens. The first request takes tokens of all buckets at the moment at which all have enough.
//
// This moment does not depend on the time of the calls: settle grants each request at the time
// at which it was due. The lock of the shard guards a queue. Methods get the time as now, if
// their comment does not say that they read the clock.
type queue struct {
	shard   *shard
	limited *condition // nil for the queues of keys
	buckets []tokenBucket

	requests list.List // of *request
	from     int64     // earliest time at which the first request can be granted
	forecast forecast

	timer *time.Timer
	alarm int64 // when the timer rings; Never: it is not set
	slot  int32 // of the key
}

// A tokenBucket has the tokens of one limit or of one key.
type tokenBucket struct {
	meter *bucket.Meter
	mark  bucket.Mark
}

// dueAt returns the time, not before from, at which all buckets have enough.
func dueAt(buckets []tokenBucket, costs []int64, from int64) int64 {
	for i, b := range buckets {
		from = max(from, b.meter.Due(b.mark, costs[i], from))
	}
	return from
}

// book takes the costs as of the time at. DueAt has returned this time.
func book(buckets []tokenBucket, costs []int64, from, at int64) {
	for i := range buckets {
		buckets[i].meter.Book(&buckets[i].mark, costs[i], from, at)
	}
}

// A forecast is the state of the buckets at the time at which the last request in the queue
// will be granted.
type forecast struct {
	known   bool
	buckets []tokenBucket
	at      int64
}

// settle grants all requests that are due.
func (q *queue) settle(now int64) {
	for r := q.first(); r != nil && !q.shard.closed; r = q.first() {
		at := q.dueFirst()
		if at > now {
			return
		}
		book(q.buckets, r.costs, q.from, at)
		q.remove(r)
		q.from = at
		r.grant(q.buckets, at)
		q.shard.counts.Allowed++
		if q.limited != nil {
			q.limited.last = max(q.limited.last, at)
		}
	}
}

// change settles, calls fn, which changes the queue or its buckets, and settles again. Requests
// that are due because of the change are due from now on.
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

// first returns the first request in the queue, or nil.
func (q *queue) first() *request {
	if q.requests.Len() == 0 {
		return nil
	}
	return q.requests.Front().Value.(*request)
}

// dueFirst returns the time at which the first request is due.
func (q *queue) dueFirst() int64 {
	if r := q.first(); r != nil {
		return dueAt(q.buckets, r.costs, q.from)
	}
	return bucket.Never
}

// dueNext returns the time at which a new request would be due. Call settle before.
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

// dueOf returns the time at which a queued request is due.
func (q *queue) dueOf(r *request) int64 {
	var f forecast
	f.fill(q, r)
	return dueAt(f.buckets, r.costs, f.at)
}

// fill returns the forecast after all requests of the queue that come before end.
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
	if f.at = dueAt(f.buckets, costs, from); f.at != bucket.Never {
		book(f.buckets, costs, from, f.at)
	}
}

// push puts a request at the end of the queue. Call settle before.
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

// takeNow takes the costs if the queue is empty and all buckets have enough, and counts the
// request.
func (q *queue) takeNow(now int64, costs []int64) bool {
	ok := !q.shard.closed && q.requests.Len() == 0
	last := len(q.buckets) - 1
	for i := 0; i < last && ok; i++ {
		b := q.buckets[i] // a copy, because nothing is taken yet
		ok = b.meter.Take(&b.mark, now, costs[i])
	}
	for i := last; i >= 0 && ok; i-- {
		b := &q.buckets[i]
		ok = b.meter.Take(&b.mark, now, costs[i])
	}
	if ok {
		q.shard.counts.Allowed++
	}
	return ok
}

// allow takes the costs now, or refuses the request. It unlocks.
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

// enter grants a request, queues it or refuses it. It refuses a request that would not be due
// before the deadline. The deadline never means none.
func (q *queue) enter(now int64, r *request, deadline int64) {
	q.settle(now)
	s := q.shard
	err := s.check(q.buckets, r.costs)
	if err == nil {
		if q.takeNow(now, r.costs) {
			r.grant(q.buckets, now)
			return
		}
		q.begin(now)
		if deadline != bucket.Never {
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

// reserve enters a request without a waiter. It locks, and reads the clock.
func (q *queue) reserve(costs []int64) *Reservation {
	r := &Reservation{queue: q, request: request{costs: costs}}
	now := q.shard.lock()
	q.enter(now, &r.request, bucket.Never)
	q.unlock(now)
	return r
}

// await waits until a request is no longer queued. If ctx ends first, it takes the request out
// of the queue. It locks, and reads the clock.
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

// drop takes a request out of the queue, or gives its tokens back if its turn is now. After that,
// the queue is as if the request had never come. After the turn it does nothing: the tokens may
// have been used.
func (q *queue) drop(now int64, r *request, why error) {
	switch {
	case r.state == granted && r.at >= now:
		q.shard.counts.Allowed--
		q.adjust(r, make([]int64, len(r.costs)))
		r.state = gone // a waiter may read err
	case r.state == queued:
		q.remove(r)
		r.finish(gone, why)
	default:
		return
	}
	q.shard.counts.Cancelled++
	q.changed(now)
}

// adjust sets the real costs of a request.
func (q *queue) adjust(r *request, costs []int64) {
	for i, cost := range costs {
		if r.state == granted {
			if r.costs[i] == untaken {
				continue
			}
			q.buckets[i].meter.Adjust(&q.buckets[i].mark, cost-r.costs[i])
		}
		r.costs[i] = cost
	}
}

// close ends all queued requests. It ends the condition without [SignalRecovered].
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

// schedule sets the timer: to the time at which the first request is due, or, if the queue is
// empty, to the end of the condition. In the second case the timer may ring early; then it is
// set again.
func (q *queue) schedule(now int64) {
	due := q.dueFirst()
	if q.requests.Len() == 0 && q.limited != nil && q.limited.on {
		due = min(q.alarm, q.quietUntil())
	}
	switch {
	case due == q.alarm:
	case due == bucket.Never:
		q.timer.Stop()
	case q.timer == nil:
		q.timer = time.AfterFunc(time.Duration(due-now), q.ring)
	default:
		q.timer.Reset(time.Duration(due - now))
	}
	q.alarm = due
}

// ring is called by the timer. The timer may have been set again before the call.
func (q *queue) ring() {
	now := q.shard.lock()
	q.alarm = bucket.Never
	q.settle(now)
	q.recover(now)
	q.unlock(now)
}

// A condition says whether a limiter is limited: [SignalLimited] is held. It begins when a
// request is refused or queued. The lock of its shard guards all fields but release.
type condition struct {
	on      bool
	last    int64  // when the last request was refused, or was granted in the queue
	release func() // ends [SignalLimited]; only effects use it
}

// quietUntil returns the time at which the condition ends if no request is refused or queued
// before. The wait is the time that the slowest bucket takes to fill, but at least a second and
// at most a minute. If it were shorter, a steady overload would begin and end the condition all
// the time.
func (q *queue) quietUntil() int64 {
	seconds := 1.0
	for i := range q.buckets {
		m := q.buckets[i].meter
		seconds = max(seconds, min(60, float64(m.Burst())/m.Rate())) // the rate may be 0
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
