package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Limit is one of the limits of a [Group].
type Limit struct {
	// Name is the key of the signals about this limit and of the commands for it. It must
	// not be blank. The limits of a group need different names.
	//
	//ephemeral:none
	Name string
	// Rate is as for [New], but PerSecond must not be 0. To start with a pause, call
	// [Group.SetRate].
	Rate core.Rate
}

// A Group has several limits for each request, such as requests and bytes. Make one with
// [NewGroup], and close it. A request has a cost for each limit, in the order of the limits in
// NewGroup. It takes all tokens at once: the first request in the queue passes when all buckets
// have enough, and no request overtakes it. A waiter holds no tokens of any limit. While a limit
// is paused, no request passes, even if its cost for this limit is 0.
//
// Often the cost of a request is known afterwards. Then reserve the highest cost, and correct
// the reservation later; see [Reservation.Adjust].
//
// Methods panic if a cost is negative, or if the number of costs is not the number of limits.
// All methods are safe for concurrent use. Allow and Wait cost as much as in a [Limiter], and
// a little more for each further limit.
//
// A Group obeys only commands that have the name of a limit as key: one number does not fit
// all limits. Name, Sink, Reset, PauseFor and Close are the same as in a [Keyed].
type Group struct{ single }

// NewGroup makes a group of limits with full buckets. It returns an error if the limits or the
// options are not valid. It starts no goroutine. Without IgnoreCommands, it subscribes to
// commands on the sink.
func NewGroup(limits []Limit, opts Options) (*Group, error) {
	_, opts, err := opts.resolved(core.Rate{})
	if err != nil {
		return nil, err
	}
	if len(limits) == 0 {
		return nil, errors.New("ratelimit: a group has at least one limit")
	}
	limits = slices.Clone(limits)
	for i, limit := range limits {
		limits[i], err = limit.resolved()
		if err == nil && slices.ContainsFunc(limits[:i], func(other Limit) bool { return other.Name == limit.Name }) {
			err = errors.New("ratelimit: Name is that of another limit, they must differ")
		}
		if err != nil {
			return nil, fmt.Errorf("%w (limit %d, %q)", err, i, limit.Name)
		}
	}
	g := &Group{}
	g.init(opts, limits...)
	g.subscribe(opts, false)
	return g, nil
}

// resolved returns the limit with the defaults filled in.
func (l Limit) resolved() (Limit, error) {
	rate, err := checkRate(l.Rate)
	if err == nil && rate.PerSecond == 0 {
		err = errors.New("ratelimit: PerSecond must not be 0, which would pause the group until SetRate")
	}
	l.Rate = rate
	return l, errors.Join(err, checkName(l.Name))
}

// find calls fn with the index of a limit, or returns an error.
func (g *Group) find(name string, fn func(limit int) error) error {
	i := slices.Index(g.limits, name)
	if i < 0 {
		return fmt.Errorf("ratelimit: group %q has no limit %q, only %q", g.name, name, g.limits)
	}
	return fn(i)
}

// Allow takes the costs if all buckets have enough and the queue is empty, and reports whether
// it did.
func (g *Group) Allow(costs ...int) bool {
	var few [4]int64
	all := g.toCosts("Allow", few[:0], costs)
	return g.queue.allow(g.shard.lock(), all)
}

// Wait waits until all buckets have enough, and takes the costs. It returns the errors of
// [Limiter.WaitN].
func (g *Group) Wait(ctx context.Context, costs ...int) error {
	var few [4]int64
	all := g.toCosts("Wait", few[:0], costs)
	if ctx.Err() != nil {
		return g.shard.giveUp(ctx)
	}
	now := g.shard.lock()
	ok := g.queue.takeNow(now, all)
	g.shard.mu.Unlock()
	if ok {
		return nil
	}
	r, deadline := newRequest(all), g.deadline(ctx)
	return g.queue.wait(ctx, g.shard.lock(), r, deadline)
}

// Reserve reserves the costs, and does not wait; see [Limiter.ReserveN].
func (g *Group) Reserve(costs ...int) *Reservation {
	return g.queue.reserve(g.toCosts("Reserve", nil, costs))
}

// SetRate changes the rate of a limit; see [Limiter.SetRate]. If there is no limit of that name,
// it returns an error.
func (g *Group) SetRate(name string, rate float64) error {
	return g.find(name, func(limit int) error { return g.setRate(limit, rate) })
}

// SetBurst changes the burst of a limit; see [Limiter.SetBurst]. If there is no limit of that
// name, it returns an error.
func (g *Group) SetBurst(name string, burst int) error {
	return g.find(name, func(limit int) error { return g.setBurst(limit, burst) })
}

// Tokens is the number of tokens in the bucket of a limit; see [Limiter.Tokens]. If there is no
// limit of that name, it panics.
func (g *Group) Tokens(name string) (tokens float64) {
	limits := g.Stats().Limits
	err := g.find(name, func(limit int) error { tokens = limits[limit].Tokens; return nil })
	return core.Must(tokens, err)
}
