package durable

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// memClass is a class of a queue in memory.
type memClass struct {
	Class       // that counts now
	own         Class
	set         bool // by SetClass
	calls, cost memBucket
	shadow      *Shadow
}

// memBucket are the tokens of a rate.
type memBucket struct {
	rate  core.Rate
	meter bucket.Meter
	mark  bucket.Mark
	used  int64
}

func (q *memQueue) classOf(name string) *memClass {
	if q.class[name] == nil {
		q.class[name] = &memClass{Class: Class{Name: name}, own: Class{Name: name}}
	}
	return q.class[name]
}

func (m *memory) SetClass(ctx context.Context, queue string, class Class) error {
	return ignore(call(ctx, m, queue, func(q *memQueue, now time.Time) (bool, error) {
		c := q.classOf(class.Name)
		c.set = true
		c.use(class, now)
		return true, nil
	}))
}

func (m *memory) ResetClass(ctx context.Context, queue, class string) error {
	return ignore(call(ctx, m, queue, func(q *memQueue, now time.Time) (bool, error) {
		c := q.classOf(class)
		c.set = false
		c.use(c.own, now)
		return true, nil
	}))
}

func (m *memory) Charge(ctx context.Context, queue, class string, calls, cost int64) error {
	return ignore(call(ctx, m, queue, func(q *memQueue, now time.Time) (bool, error) {
		q.classOf(class).bill(calls, cost, now)
		return true, nil
	}))
}

func (c *memClass) charge(calls, cost int64, now time.Time) {
	c.calls.take(calls, now)
	c.cost.take(cost, now)
}

// bill is charge, and the shadow has it, too.
func (c *memClass) bill(calls, cost int64, now time.Time) {
	c.charge(calls, cost, now)
	c.shadow.Charge(calls, cost, now.UnixMicro())
}

// declare notes what a node has.
func (c *memClass) declare(own Class, now time.Time) {
	if c.own = own; !c.set {
		c.use(own, now)
	}
}

// use makes the values of a class count.
func (c *memClass) use(to Class, now time.Time) {
	c.Class = to
	c.calls.use(to.Rate, now)
	c.cost.use(to.CostRate, now)
	c.shadow = c.shadow.Use(to.Shadow, now.UnixMicro())
}

func (b *memBucket) use(rate core.Rate, now time.Time) {
	was, at := b.rate, now.UnixNano()
	switch b.rate = rate; {
	case rate == was:
	case rate.PerSecond == 0:
		b.used = 0
	case was.PerSecond == 0:
		b.meter, b.mark = bucket.Start(at, rate.PerSecond, int64(rate.Burst)), bucket.Mark{}
	default:
		next := bucket.Start(at, rate.PerSecond, int64(rate.Burst))
		b.mark, b.meter = b.meter.Move(b.mark, at, &next), next
	}
}

// take takes tokens, also if they are not there, or gives some back.
func (b *memBucket) take(n int64, now time.Time) {
	switch at := now.UnixNano(); {
	case b.rate.PerSecond == 0 || n == 0:
		return
	case n > 0:
		b.meter.Book(&b.mark, n, at, at)
	default:
		b.meter.Adjust(&b.mark, n)
	}
	b.used += n
}

// until is the time until there are n tokens, or the bucket is full, in whole microseconds.
func (b *memBucket) until(n int64, now time.Time) time.Duration {
	at := now.UnixNano()
	if b.rate.PerSecond == 0 || n == 0 {
		return 0
	}
	d := time.Duration(b.meter.Due(b.mark, n, at) - at)
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

func (b *memBucket) stats(now time.Time) (s core.RateStats) {
	if b.rate.PerSecond > 0 {
		s = core.RateStats{PerSecond: b.rate.PerSecond, Burst: b.rate.Burst, Used: b.used, Debt: max(0, -b.meter.Level(b.mark, now.UnixNano()))}
	}
	return s
}

// memTurn is what a turn knows about classes.
type memTurn struct {
	*memQueue
	now   time.Time
	want  Want
	lacks map[string]int64 // the cost of the item for which a class waits
}

// limit is how many items of the class may run; negative: no limit.
func (t *memTurn) limit(class string) int {
	limit := -1
	if c := t.class[class]; c != nil && c.Limit > 0 {
		limit = c.Limit
	}
	for _, g := range t.want.Gates {
		if g.Class == class && (limit < 0 || g.Limit < limit) {
			limit = g.Limit
		}
	}
	return limit
}

// shut reports whether the class is paused, or a gate lets none of its items start.
func (t *memTurn) shut(class string) bool {
	return class != "" && (t.isPaused(class, "", t.now) || t.limit(class) == 0)
}

func (t *memTurn) full(class string) bool {
	limit := t.limit(class)
	return class != "" && limit >= 0 && t.runs(class) >= limit
}

func (q *memQueue) runs(class string) int {
	return len(q.in(Running, func(i *memItem) bool { return i.Class == class }))
}

// hasRoom reports whether the class of an item has room, but for its cost.
func (t *memTurn) hasRoom(i *memItem) bool {
	_, lacks := t.lacks[i.Class]
	c := t.class[i.Class]
	return i.Class == "" || !lacks && !t.shut(i.Class) && !t.full(i.Class) && (c == nil || c.calls.until(1, t.now) == 0)
}

// lack is the cost of an item, if its class has not got it; or 0.
func (t *memTurn) lack(i *memItem) int64 {
	if c := t.class[i.Class]; i.Class != "" && c != nil && i.Cost > 0 && c.cost.until(i.Cost, t.now) > 0 {
		return i.Cost
	}
	return 0
}

// admit takes the tokens for an item if its class has room.
func (t *memTurn) admit(i *memItem) bool {
	if !t.hasRoom(i) || t.lack(i) > 0 {
		return false
	}
	if c := t.class[i.Class]; c != nil && i.Class != "" {
		c.charge(1, i.Cost, t.now)
		i.late = c.shadow.Claim(i.Cost, t.now.UnixMicro())
	}
	return true
}

// counts reports whether a class counts and items of classes wait.
func (t *memTurn) counts() bool {
	counts := slices.ContainsFunc(t.want.Gates, func(g Gate) bool { return !t.shut(g.Class) })
	for name, c := range t.class {
		counts = counts || !t.shut(name) && (c.Limit > 0 || c.Rate.PerSecond > 0 || c.CostRate.PerSecond > 0)
	}
	return counts && len(t.in(Ready|Retry, func(i *memItem) bool { return i.Class != "" })) > 0
}

// waits are the classes without room of which an item can be claimed otherwise.
func (t *memTurn) waits(can func(*memItem) bool) (waits []ClassWait) {
	names := map[string]bool{}
	for _, i := range t.in(Ready|Retry, func(i *memItem) bool { return i.Class != "" && can(i) && !t.hasRoom(i) && !t.shut(i.Class) }) {
		names[i.Class] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w := ClassWait{Class: name}
		if c := t.class[name]; !t.full(name) {
			cost := time.Duration(0)
			if price := t.lacks[name]; price > 0 { // items without a cost do not wait for a debt
				cost = c.cost.until(price, t.now)
			}
			w.Next, w.Half = max(cost, c.calls.until(1, t.now)), max(cost, c.calls.until(max(1, int64(c.Rate.Burst/2)), t.now))
		}
		waits = append(waits, w)
	}
	return waits
}

func (q *memQueue) classStats(now time.Time) (all []ClassStats) {
	names := map[string]bool{}
	for name, c := range q.class {
		if c.Limit > 0 || c.Rate.PerSecond > 0 || c.CostRate.PerSecond > 0 || c.shadow != nil || c.set {
			names[name] = true
		}
	}
	for _, i := range q.in(Ready|Retry|Running, func(i *memItem) bool { return i.Class != "" }) {
		names[i.Class] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, q.statsOf(name, 1, now))
	}
	return all
}

func (q *memQueue) statsOf(class string, price int64, now time.Time) ClassStats {
	s := ClassStats{Name: class, Running: q.runs(class), Pending: len(q.in(Ready|Retry, func(i *memItem) bool { return i.Class == class }))}
	if c := q.class[class]; c != nil {
		s.Limit, s.Set, s.Calls, s.Cost = c.Limit, c.set, c.calls.stats(now), c.cost.stats(now)
		s.Shadow = c.shadow.Stats()
		cost := c.cost.until(price, now)
		if wait := max(c.calls.until(1, now), cost); wait > 0 {
			s.Next = now.Add(wait)
		}
		if cost > 0 {
			s.NextCost = now.Add(cost)
		}
	}
	return s
}
