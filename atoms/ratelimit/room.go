package ratelimit

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// InfDuration is the delay of what is never due.
const InfDuration = time.Duration(never)

// counts are the counters of a limiter. Every request is counted in one of them, or
// stands in line.
type counts struct {
	allowed, denied, delayed, cancelled uint64
}

// A room is where the line waits: the lock, the clock and the timer around a [line],
// and those who sleep in it. One timer serves all of them; it is set while somebody
// sleeps, for when the first in line is due.
type room struct {
	name  string // of whose it is
	begin time.Time
	mu    sync.Locker
	line  line

	sleepers int // places with a channel, in line
	timer    *time.Timer
	alarm    int64 // what the timer is set for; never: it is not
	closed   bool

	maxWaiting int64
	waiting    *atomic.Int64 // in line, in all rooms that share the bound
	counts     *counts
	limited    *condition // told who is refused or has to wait; nil: nobody
}

func (r *room) now() int64 { return int64(time.Since(r.begin)) }

// settle grants what is due. The caller passes what it returns to unlock.
func (r *room) settle(now int64) (done places) {
	if r.line.first == nil {
		return done
	}
	done = r.line.settle(now)
	for p := done.first; p != nil; p = p.behind {
		r.gone(p)
		r.counts.allowed++
		r.counts.delayed++
		if r.limited != nil {
			r.limited.last = max(r.limited.last, r.line.from)
		}
	}
	return done
}

// gone keeps account of somebody who has left the line.
func (r *room) gone(p *place) {
	r.waiting.Add(-1)
	if p.ready != nil {
		r.sleepers--
	}
}

// unlock sets the timer, unlocks and wakes those who are done.
func (r *room) unlock(now int64, done places) {
	r.set(now)
	r.mu.Unlock()
	wake(done)
}

func wake(done places) {
	for p := done.first; p != nil; {
		next := p.behind
		p.behind = nil
		if p.ready != nil {
			close(p.ready)
		}
		p = next
	}
}

// set sets the timer for when the first in line is due.
func (r *room) set(now int64) {
	due := int64(never)
	if r.sleepers > 0 {
		due = r.line.dueFirst()
	}
	switch {
	case due == r.alarm:
	case due == never:
		r.timer.Stop()
	case r.timer == nil:
		r.timer = time.AfterFunc(time.Duration(due-now), r.ring)
	default:
		r.timer.Reset(time.Duration(due - now))
	}
	r.alarm = due
}

// ring is called by the timer.
func (r *room) ring() {
	now := r.now()
	r.mu.Lock()
	r.alarm = never // it may also be an old one, that a newer one was set after
	r.unlock(now, r.settle(now))
}

// allow takes the costs now or not at all. It is called locked, and unlocks.
func (r *room) allow(now int64, costs []int64) bool {
	done := r.settle(now)
	ok := !r.closed && r.takeAll(now, costs)
	if ok {
		r.counts.allowed++
		r.unlock(now, done)
		return true
	}
	r.deny(now, done)
	return false
}

// deny counts a refusal, unlocks and says it.
func (r *room) deny(now int64, done places) {
	r.counts.denied++
	news := r.limited.touch(now)
	r.unlock(now, done)
	if news {
		r.limited.announce()
	}
}

// takeAll takes the costs if nobody is in line and all buckets have them.
func (r *room) takeAll(now int64, costs []int64) bool {
	if r.line.first != nil {
		return false
	}
	for i := range r.line.buckets {
		b := &r.line.buckets[i]
		mark := b.mark
		if b.meter.takeSlow(&mark, now, costs[i]) != taken {
			return false
		}
	}
	for i := range r.line.buckets {
		b := &r.line.buckets[i]
		b.meter.takeSlow(&b.mark, now, costs[i])
	}
	return true
}

// check says why the costs can never be had.
func (r *room) check(costs []int64) error {
	if r.closed {
		return errClosed
	}
	for i := range r.line.buckets {
		if m := r.line.buckets[i].meter; costs[i] > m.burst && m.rate != Unlimited {
			return ErrExceedsBurst
		}
	}
	return nil
}

// enter grants p now or puts it in line, and reports whether it did that. It is called
// locked, and unlocks. A deadline that is not later than p's turn is an error; never is
// none.
func (r *room) enter(now int64, p *place, deadline int64) (waits bool, err error) {
	done := r.settle(now)
	err = r.check(p.costs)
	news := false
	switch {
	case err != nil:
	case r.takeAll(now, p.costs):
		p.grantNow(r.line.buckets)
		r.counts.allowed++
	default:
		news = r.limited.touch(now)
		if deadline != never {
			if due := r.line.dueNext(p.costs, now); due >= deadline {
				err = newDeadlineError(due, now, deadline)
				break
			}
		}
		if r.waiting.Add(1) > r.maxWaiting {
			r.waiting.Add(-1)
			err = errFull
			break
		}
		r.line.push(p, now)
		waits = true
		if p.ready != nil {
			r.sleepers++
		}
	}
	if err != nil {
		p.standing, p.err = left, err
		r.counts.denied++
	}
	r.unlock(now, done)
	if news {
		r.limited.announce()
	}
	return waits, err
}

func newDeadlineError(due, now, deadline int64) *DeadlineError {
	err := &DeadlineError{Wait: InfDuration, Left: time.Duration(deadline - now)}
	if due != never {
		err.Wait = time.Duration(due - now)
	}
	return err
}

// grantNow marks a place whose costs were taken when it came.
func (p *place) grantNow(buckets []bucket) {
	p.standing = granted
	for i := range buckets {
		if buckets[i].meter.rate == Unlimited {
			p.free |= 1 << i
		}
	}
}

// deadline returns when ctx ends by time; never, if it does not say. It goes by the
// time that is left, because the wall clock may have been set since begin.
func (r *room) deadline(ctx context.Context) int64 {
	at, ok := ctx.Deadline()
	if !ok {
		return never
	}
	left, now := int64(time.Until(at)), r.now()
	if left > never-now {
		return never
	}
	return now + left
}

// wait enters p and waits for its turn.
func (r *room) wait(ctx context.Context, p *place) error {
	deadline := r.deadline(ctx)
	now := r.now()
	r.mu.Lock()
	waits, err := r.enter(now, p, deadline)
	if !waits {
		return err
	}
	return r.await(ctx, p)
}

// giveUp counts somebody whose context had ended before it came.
func (r *room) giveUp() {
	r.mu.Lock()
	r.counts.cancelled++
	r.mu.Unlock()
}

// await sleeps until p is granted or ended, or gives it up when ctx ends.
func (r *room) await(ctx context.Context, p *place) error {
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor("limiter "+strconv.Quote(r.name), time.Time{})()
	}
	select {
	case <-p.ready:
		// Granted at the very moment at which ctx ended is cancelled too, so that
		// it does not depend on what select sees first.
		if p.err != nil || ctx.Err() == nil {
			return p.err
		}
	case <-ctx.Done():
	}
	r.cancel(p, errCancelled)
	return context.Cause(ctx)
}

// cancel gives back all that p has, or takes it out of the line. Those behind it are
// due as if it had never come.
func (r *room) cancel(p *place, why error) {
	now := r.now()
	r.mu.Lock()
	done := r.settle(now)
	if p.standing == granted || p.standing == inLine {
		r.drop(p, why, &done)
		r.line.changed(now)
		done.join(r.settle(now))
	}
	r.unlock(now, done)
}

// drop takes back what p has, and adds it to done if somebody has to be told.
func (r *room) drop(p *place, why error, done *places) {
	r.counts.cancelled++
	if p.standing == granted {
		p.standing = left
		r.counts.allowed--
		r.line.adjust(p, make([]int64, len(p.costs)))
		return
	}
	p.standing, p.err = left, why
	r.line.remove(p)
	r.gone(p)
	done.add(p)
}

// change settles, changes what fn changes, and lets those wait anew who are in line.
func (r *room) change(now int64, fn func()) places {
	done := r.settle(now)
	fn()
	r.line.changed(now)
	done.join(r.settle(now))
	return done
}

// close ends everybody who is in line, and refuses whoever comes. It is called
// locked; the caller passes what it returns to unlock.
func (r *room) close(now int64) places {
	done := r.settle(now)
	r.closed = true
	for r.line.first != nil {
		r.drop(r.line.first, errClosed, &done)
	}
	return done
}
