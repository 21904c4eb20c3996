package ratelimit

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"time"
)

// A Reservation is a queued request, made by [Limiter.ReserveN] or [Group.Reserve]. When its
// turn comes it has its tokens, whether or not a caller waits. All methods are safe for
// concurrent use.
//
// The turn can change. It comes earlier when a request ahead is cancelled or the rate rises,
// and later when the rate falls or the limiter pauses. A caller that sleeps for Delay then
// acts too early or too late; Wait takes it into account.
type Reservation struct {
	queue   *queue
	request request
}

// OK reports whether the reservation was made and has not been cancelled.
func (r *Reservation) OK() bool {
	r.queue.shard.mu.Lock()
	defer r.queue.shard.mu.Unlock()
	return r.request.state != gone
}

// Delay is how long it is until the holder may act, if nothing changes: 0 if it may act
// now, [InfDuration] if the limiter is paused or the reservation is not OK. It takes time
// in proportion to the requests ahead.
func (r *Reservation) Delay() time.Duration {
	q := r.queue
	now := q.shard.lock()
	defer q.unlock(now)
	q.settle(now)
	switch r.request.state {
	case granted:
		return 0
	case queued:
		if due := q.dueOf(&r.request); due != never {
			return time.Duration(due - now)
		}
	}
	return InfDuration
}

// Wait waits until the holder may act. When ctx ends first it cancels the reservation and
// returns the cause of ctx. When the turn would not come before the deadline of ctx, it
// cancels the reservation at once and returns a [*DeadlineError].
func (r *Reservation) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		r.Cancel()
		return context.Cause(ctx)
	}
	q, p := r.queue, &r.request
	deadline, ready := q.shard.engine.deadline(ctx), make(chan struct{})
	now := q.shard.lock()
	q.settle(now)
	waits, err := p.state == queued, p.err
	switch {
	case p.state == gone && err == nil: // it was granted before
		err = q.shard.engine.errCancelled
	case waits:
		if deadline != never {
			err = q.shard.engine.tooLate(q.dueOf(p), now, deadline)
		}
		if err != nil {
			q.drop(now, p, q.shard.engine.errCancelled)
		} else if p.ready == nil {
			p.ready = ready
		}
	}
	q.unlock(now)
	if !waits || err != nil {
		return err
	}
	return q.await(ctx, p)
}

// Cancel gives back exactly what was reserved, also after the turn has come: the bucket is
// as if the reservation had never been made, and the requests behind it move up. Call it if
// the holder has not acted. Cancelling twice does nothing.
func (r *Reservation) Cancel() {
	q := r.queue
	now := q.shard.lock()
	q.settle(now)
	q.drop(now, &r.request, q.shard.engine.errCancelled)
	q.unlock(now)
}

// Adjust makes the reservation cost what was really used, one number for every limit of a
// [Group]. If less was used, the rest goes back. If more was used, it is taken, and owed if
// it is not there. The bucket is then as if the reservation had cost that from its turn on.
// Adjust may be called before and after the turn has come, and many times; after Cancel it
// does nothing. It panics if a number is negative or there are not as many as limits.
func (r *Reservation) Adjust(actual ...int) {
	q := r.queue
	costs := q.shard.engine.toCosts("Adjust", nil, actual)
	now := q.shard.lock()
	q.change(now, func() {
		if r.request.state != gone {
			q.adjust(&r.request, costs)
		}
	})
	q.unlock(now)
}

// state is how far a request is.
type state int

const (
	queued  state = iota + 1 // holds nothing
	granted                  // has its tokens
	gone                     // was refused, gave up, or has given its tokens back
)

// A request is what one caller asked for.
type request struct {
	costs []int64       // tokens of each bucket, or untaken
	state state         // 0: it has not come yet
	ready chan struct{} // closed when the request leaves the queue; nil: nobody waits
	err   error         // why it is gone

	element *list.Element // while it is queued
}

// untaken is the cost of a bucket that was unlimited, from which nothing was taken.
const untaken = -1

// newRequest makes the request of a caller that waits.
func newRequest(costs []int64) *request {
	return &request{costs: slices.Clone(costs), ready: make(chan struct{})}
}

// grant gives a request its tokens, which have been taken from the buckets.
func (r *request) grant(buckets []bucket) {
	for i := range buckets {
		if buckets[i].meter.rate == Unlimited {
			r.costs[i] = untaken
		}
	}
	r.finish(granted, nil)
}

// finish wakes the waiters of a request that is not queued any more.
func (r *request) finish(s state, err error) {
	r.state, r.err = s, err
	if r.ready != nil {
		close(r.ready)
	}
}

// costOf panics if a number of tokens is negative. More tokens than can ever be had count as
// one more than that.
func costOf(what string, n int) int64 {
	if n < 0 {
		panic("ratelimit: " + what + " needs a number of tokens that is not negative")
	}
	return min(int64(n), maxBurst+1)
}

// toCosts appends the costs to a slice. It panics if these cannot be costs.
func (e *engine) toCosts(what string, to []int64, costs []int) []int64 {
	if len(costs) != len(e.limits) {
		panic(fmt.Sprintf("ratelimit: %s needs a cost for each of %d limits, not %d costs", what, len(e.limits), len(costs)))
	}
	for _, n := range costs {
		to = append(to, costOf(what, n))
	}
	return to
}
