package ratelimit

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A Reservation is a request of [Limiter.ReserveN] or [Group.Reserve]. It gets its tokens when
// its turn comes, even if no caller waits. All methods are safe for concurrent use.
//
// The time of the turn can change: a request ahead is cancelled, the rate changes, or the
// limiter pauses. Wait follows such changes. A caller that sleeps for Delay does not.
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

// Delay is the time until the turn of the reservation, if nothing changes. It is 0 if the turn
// has come. It is the longest [time.Duration] if the rate is 0 or the reservation is not OK. The call takes
// time in proportion to the number of requests ahead.
func (r *Reservation) Delay() time.Duration {
	q := r.queue
	now := q.shard.lock()
	defer q.unlock(now)
	q.settle(now)
	switch r.request.state {
	case granted:
		return 0
	case queued:
		if due := q.dueOf(&r.request); due != bucket.Never {
			return time.Duration(due - now)
		}
	}
	return infinite
}

// Wait waits until the turn of the reservation. If ctx ends first, it cancels the reservation
// and returns the cause of ctx. If the turn would not come before the deadline of ctx, it
// cancels the reservation at once and returns an error that matches [ErrTooLate]. If the reservation was
// refused, Wait returns the error of [Limiter.WaitN]. If it was cancelled, the error matches
// [core.ErrCancelled]. If ctx has ended before the call, Wait calls [Reservation.Cancel], and
// returns the cause of ctx.
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
	case p.state == gone && err == nil: // the request was granted before ctx ended
		err = q.shard.engine.errCancelled
	case waits:
		if deadline != bucket.Never {
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

// Cancel gives up the reservation before its turn, or at the moment of its turn. The bucket is as
// if the reservation had never been made, and the requests behind it move up. After the turn,
// Cancel does nothing, because the tokens count as used. If they were not used, call Adjust. If
// the tokens were there when the reservation was made, that moment was its turn. A second call of
// Cancel does nothing.
func (r *Reservation) Cancel() {
	q := r.queue
	now := q.shard.lock()
	q.settle(now)
	q.drop(now, &r.request, q.shard.engine.errCancelled)
	q.unlock(now)
}

// Adjust sets the number of tokens that were really used: one number for a [Limiter], and one
// for each limit of a [Group]. If it is less than reserved, the rest goes back. If it is more,
// the difference is taken, even if Tokens becomes negative. The bucket is then as if the
// reservation had always had this cost, but tokens that would have overflowed meanwhile come
// back, too. Adjust may be called several times, before and after the turn. After a reservation
// was cancelled it does nothing. It panics if a number is negative, or if the number of
// arguments is wrong.
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

// state is the state of a request.
type state int

const (
	queued  state = iota + 1 // has no tokens yet
	granted                  // has its tokens
	gone                     // was refused, gave up, or was cancelled
)

// A request is a call that asks for tokens.
type request struct {
	costs []int64       // tokens from each bucket, or untaken
	state state         // 0: before enter
	at    int64         // when the request got its tokens
	ready chan struct{} // closed when the request leaves the queue; nil: there is no waiter
	err   error         // why the state is gone

	element *list.Element // while it is queued
}

// untaken is the cost at an unlimited bucket: nothing was taken.
const untaken = -1

// newRequest makes the request of a caller that waits.
func newRequest(costs []int64) *request {
	return &request{costs: slices.Clone(costs), ready: make(chan struct{})}
}

// grant ends a request whose tokens have been taken from the buckets at the time at.
func (r *request) grant(buckets []tokenBucket, at int64) {
	r.at = at
	for i := range buckets {
		if buckets[i].meter.Rate() == Unlimited {
			r.costs[i] = untaken
		}
	}
	r.finish(granted, nil)
}

// finish sets the last state of a request, and wakes its waiters.
func (r *request) finish(s state, err error) {
	r.state, r.err = s, err
	if r.ready != nil {
		close(r.ready)
	}
}

// costOf returns n tokens as a cost, at most one more than the largest burst. It panics if n
// is negative.
func costOf(what string, n int) int64 {
	if n < 0 {
		panic("ratelimit: " + what + " needs a number of tokens that is not negative")
	}
	return min(int64(n), bucket.MaxBurst+1)
}

// toCosts appends the costs to a slice. It panics if their number or one of them is wrong.
func (e *engine) toCosts(what string, to []int64, costs []int) []int64 {
	if len(costs) != len(e.limits) {
		panic(fmt.Sprintf("ratelimit: %s needs a cost for each of %d limits, not %d costs", what, len(e.limits), len(costs)))
	}
	for _, n := range costs {
		to = append(to, costOf(what, n))
	}
	return to
}
