package ratelimit

import (
	"context"
	"time"
)

// A Reservation is a place in line, taken by [Limiter.ReserveN] or [Group.Reserve].
// Whether or not anybody waits, its turn comes, and then it has its tokens. All
// methods are safe for concurrent use.
//
// When that is can change: it comes earlier when somebody ahead cancels, or the
// rate rises, and later when the rate falls or the limiter pauses. Who only sleeps for
// Delay acts too late then, or too early; Wait takes it into account.
type Reservation struct {
	room  *room
	place place
}

// OK reports whether the reservation was made and has not been given up.
func (r *Reservation) OK() bool {
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	return r.place.standing != left
}

// Delay is how long it is, as things stand, until the holder may act: 0 if it may,
// [InfDuration] if the limiter is paused or the reservation is not OK. It may look
// through the line.
func (r *Reservation) Delay() time.Duration {
	now := r.room.now()
	r.room.mu.Lock()
	done := r.room.settle(now)
	due := int64(never)
	switch r.place.standing {
	case granted:
		due = now
	case inLine:
		due = r.room.line.dueOf(&r.place, now)
	}
	r.room.unlock(now, done)
	if due == never {
		return InfDuration
	}
	return time.Duration(due - now)
}

// Wait waits until the holder may act. When ctx ends first it cancels the reservation
// and returns the cause of ctx; when the turn would not come before the deadline of
// ctx, it does so at once, and returns a [*DeadlineError].
func (r *Reservation) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		r.Cancel()
		return context.Cause(ctx)
	}
	room, p := r.room, &r.place
	deadline, ready := room.deadline(ctx), make(chan struct{})
	now := room.now()
	room.mu.Lock()
	done := room.settle(now)
	standing, err := p.standing, p.err
	if standing == left && err == nil {
		err = errCancelled
	}
	if standing == inLine {
		if due := room.line.dueOf(p, now); deadline != never && due >= deadline {
			err = newDeadlineError(due, now, deadline)
			room.drop(p, errCancelled, &done)
			room.line.changed(now)
			done.join(room.settle(now))
		} else if p.ready == nil {
			p.ready = ready
			room.sleepers++
		}
	}
	room.unlock(now, done)
	if standing != inLine || err != nil {
		return err
	}
	return room.await(ctx, p)
}

// Cancel gives back exactly what was reserved, also when its turn has come: the
// bucket is as if the reservation had never been made, and those behind it move up.
// It is for holders that have not acted. Cancelling twice does nothing.
func (r *Reservation) Cancel() { r.room.cancel(&r.place, errCancelled) }

// Adjust makes the reservation cost what was really used, one number for every limit
// of a [Group]: what was used less comes back, what was used more is taken, and owed
// if it is not there. The bucket is then as if the reservation had cost that from its
// turn on. Adjust may be called before and after the turn has come, and many times;
// after Cancel it does nothing. It panics if a number is negative or
// there are not as many as limits.
func (r *Reservation) Adjust(actual ...int) {
	if len(actual) != len(r.place.costs) {
		panic("ratelimit: Adjust needs one number of tokens for each limit")
	}
	costs := toCosts("Adjust", nil, actual)
	room, p := r.room, &r.place
	now := room.now()
	room.mu.Lock()
	done := room.change(now, func() {
		switch p.standing {
		case granted:
			room.line.adjust(p, costs)
		case inLine:
			room.line.owed += costs[0] - p.costs[0]
			copy(p.costs, costs)
		}
	})
	room.unlock(now, done)
}

// newPlace makes a place of somebody who waits.
func newPlace(costs ...int) *place {
	p := &place{ready: make(chan struct{})}
	p.setCosts(costs)
	return p
}

func (p *place) setCosts(costs []int) { p.costs = toCosts("costs", p.cost[:0], costs) }

// toCosts appends the costs to to. More than can ever be had is as good as that.
func toCosts(what string, to []int64, costs []int) []int64 {
	for _, n := range costs {
		if n < 0 {
			panic("ratelimit: " + what + " needs numbers of tokens that are not negative")
		}
		to = append(to, min(int64(n), maxBurst+1))
	}
	return to
}
