package ratelimit

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Limit is one of the limits of a [Group].
type Limit struct {
	// Name says what is limited; commands whose key it is are for this limit. It
	// must not be empty.
	Name string
	// Rate is in tokens per second, as for [New].
	Rate float64
	// Burst is how many tokens the bucket holds; 0 means 20.
	Burst int
}

// GroupOptions configure a [Group]. The zero value is the default.
type GroupOptions struct {
	// Name is the key of [SignalLimited] and [SignalRecovered], which are about the
	// group; "" means "ratelimit".
	Name string
	// MaxWaiting, NoControl and Sink are as in [Options].
	MaxWaiting int
	NoControl  bool
	Sink       *core.Sink
}

// A Group is several limits that every request has to keep at once: so many
// requests, and so many bytes. A request has a cost for each, in the order in which the
// limits were given to [NewGroup], and takes all or nothing: who waits holds nothing of
// any, the first in line takes from all buckets at the moment at which all have enough,
// and nobody overtakes it. A cost of 0 too needs a limit that is not paused, and owes
// nothing.
//
// What a request really cost is often known afterwards: reserve what it may cost, and
// tell the reservation; see [Reservation.Adjust].
//
// Methods panic if they are given a negative cost, or not as many costs as there are
// limits. All are safe for concurrent use. Allow and Wait cost as much as that of a
// [Limiter], and a little for every further limit; a wait with a deadline, and a
// reservation's Delay, may look through the line.
//
// Unlike a Limiter, a Group heeds only commands with a key, the name of a limit: one
// number would not do for all.
type Group struct {
	shell
	names   []string
	meters  []meter
	buckets []bucket
}

// NewGroup makes a group of 1 to 64 limits, with full buckets, or says what is wrong.
// It starts no goroutine; unless told not to, it subscribes to commands on the sink.
func NewGroup(limits []Limit, opts GroupOptions) (*Group, error) {
	if len(limits) == 0 || len(limits) > maxBuckets {
		return nil, fmt.Errorf("ratelimit: a group has 1 to %d limits, not %d", maxBuckets, len(limits))
	}
	if opts.Name == "" {
		opts.Name = defaultName
	}
	if err := checkMaxWaiting(&opts.MaxWaiting); err != nil {
		return nil, err
	}
	g := &Group{meters: make([]meter, len(limits))}
	for i, limit := range limits {
		if limit.Burst == 0 {
			limit.Burst = defaultBurst
		}
		rate, err := checkRate(limit.Rate)
		if err == nil {
			err = checkBurst("Burst", limit.Burst)
		}
		if err == nil && (limit.Name == "" || g.find(limit.Name) != nil) {
			err = fmt.Errorf("ratelimit: Name must not be empty and differ from the others")
		}
		if err != nil {
			return nil, fmt.Errorf("%w (limit %d, %q)", err, i, limit.Name)
		}
		g.meters[i] = newMeter(0, rate, int64(limit.Burst))
		g.names = append(g.names, limit.Name)
		g.buckets = append(g.buckets, bucket{&g.meters[i], lowest})
	}
	g.open(opts.Name, opts.Sink, opts.MaxWaiting, g.buckets)
	if !opts.NoControl {
		g.unsubscribe = g.sink.Subscribe(commandPattern, func(s core.Signal) {
			if p := g.find(s.Key); p != nil {
				heed(g.sink, *p, s.Key, s)
			}
		})
	}
	return g, nil
}

// find returns the limit of that name; nil if there is none.
func (g *Group) find(name string) *part {
	for i, known := range g.names {
		if known == name {
			return &part{&g.shell, name, &g.buckets[i]}
		}
	}
	return nil
}

// must is find for names that must be right.
func (g *Group) must(name string) *part {
	p := g.find(name)
	if p == nil {
		panic(fmt.Sprintf("ratelimit: the group has no limit %q", name))
	}
	return p
}

// check panics if these cannot be costs.
func (g *Group) check(costs []int) {
	if len(costs) != len(g.buckets) {
		panic(fmt.Sprintf("ratelimit: the group has %d limits, and was given %d costs", len(g.buckets), len(costs)))
	}
}

// Allow takes what a request costs if it is there and nobody waits, and reports
// whether it did.
func (g *Group) Allow(costs ...int) bool {
	g.check(costs)
	var few [4]int64
	all := toCosts("Allow", few[:0], costs)
	now := g.room.now()
	g.mu.Lock()
	return g.room.allow(now, all)
}

// Wait takes what a request costs, and waits until it is there; see [Limiter.WaitN]
// for when it does not.
func (g *Group) Wait(ctx context.Context, costs ...int) error {
	g.check(costs)
	if ctx.Err() != nil {
		g.room.giveUp()
		return context.Cause(ctx)
	}
	var few [4]int64
	all := toCosts("Wait", few[:0], costs)
	now := g.room.now()
	g.mu.Lock()
	if !g.room.closed && g.room.takeAll(now, all) {
		g.counts.allowed++
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()
	return g.room.wait(ctx, newPlace(append([]int(nil), costs...)...))
}

// Reserve takes a place in line for what a request costs, and waits for nothing; see
// [Limiter.ReserveN].
func (g *Group) Reserve(costs ...int) *Reservation {
	g.check(costs)
	return g.reserve(append([]int(nil), costs...)...)
}

// SetRate changes the rate of a limit; see [Limiter.SetRate]. It panics if there is
// no limit of that name, as the other methods do that take a name.
func (g *Group) SetRate(name string, rate float64) error { return g.must(name).setRate(rate) }

// SetBurst changes the burst of a limit; see [Limiter.SetBurst].
func (g *Group) SetBurst(name string, burst int) error { return g.must(name).setBurst(burst) }

// Tokens is how many tokens are in the bucket of a limit; see [Limiter.Tokens].
func (g *Group) Tokens(name string) float64 { return g.must(name).tokens() }

// Reset fills all buckets, and forgets what is owed.
func (g *Group) Reset() {
	r := &g.room
	now := r.now()
	g.mu.Lock()
	done := r.change(now, func() { r.line.fill(now) })
	r.unlock(now, done)
}

// GroupStats are the counters of a [Group]. Every request that was ever made is in
// exactly one of the first four.
type GroupStats struct {
	Allowed   uint64 `json:"allowed"`   // have got what they asked for
	Denied    uint64 `json:"denied"`    // were refused when they came
	Waiting   int    `json:"waiting"`   // stand in line, reservations too
	Cancelled uint64 `json:"cancelled"` // have given it back, or gave up, be it because of Close

	Delayed uint64       `json:"delayed"` // have got it later than they asked, whatever became of it
	Limited bool         `json:"limited"` // [SignalLimited] stands
	Limits  []LimitStats `json:"limits"`
}

// LimitStats say how it is with a limit of a [Group].
type LimitStats struct {
	Name   string  `json:"name"`
	Tokens float64 `json:"tokens"` // in the bucket; negative: owed
	Rate   float64 `json:"rate"`   // tokens per second; [Unlimited] if it is
	Burst  int     `json:"burst"`
}

// Stats returns the counters of the group, read as one cut.
func (g *Group) Stats() GroupStats {
	now := g.room.now()
	g.mu.Lock()
	done := g.room.settle(now)
	common := g.stats()
	limits := make([]LimitStats, len(g.buckets))
	for i := range limits {
		b := &g.buckets[i]
		limits[i] = LimitStats{g.names[i], b.meter.level(b.mark, now).float(), b.meter.rate, int(b.meter.burst)}
	}
	g.room.unlock(now, done)
	return GroupStats{common.Allowed, common.Denied, common.Waiting, common.Cancelled, common.Delayed, common.Limited, limits}
}
