package durable

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// memClass is a class of a queue in memory.
type memClass struct {
	Class // that counts now
	own   Class
	set   bool // by SetClass
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

// declare notes what a node has.
func (c *memClass) declare(own Class, now time.Time) {
	if c.own = own; !c.set {
		c.use(own, now)
	}
}

// use makes the values of a class count.
func (c *memClass) use(to Class, now time.Time) {
	was, rate, at := c.Rate, to.Rate, now.UnixNano()
	switch c.Class = to; {
	case rate == was:
	case rate.PerSecond == 0:
		c.used = 0
	case was.PerSecond == 0:
		c.meter, c.mark = bucket.Start(at, rate.PerSecond, int64(rate.Burst)), bucket.Mark{}
	default:
		c.meter.SetRate(at, rate.PerSecond)
		c.meter.SetBurst(at, int64(rate.Burst))
	}
}

func (c *memClass) full(q *memQueue) bool { return c.Limit > 0 && q.runs(c.Name) >= c.Limit }

func (q *memQueue) runs(class string) int {
	return len(q.in(Running, func(i *memItem) bool { return i.Class == class }))
}

// hasRoom reports whether the class of an item has room.
func (q *memQueue) hasRoom(i *memItem, now time.Time) bool {
	c := q.class[i.Class]
	if c == nil {
		return true
	}
	mark := c.mark
	return !c.full(q) && (c.Rate.PerSecond == 0 || c.meter.Take(&mark, now.UnixNano(), 1))
}

// admit takes a token for an item if its class has room.
func (q *memQueue) admit(i *memItem, now time.Time) bool {
	if !q.hasRoom(i, now) {
		return false
	}
	if c := q.class[i.Class]; c != nil && c.Rate.PerSecond > 0 {
		c.meter.Take(&c.mark, now.UnixNano(), 1)
		c.used++
	}
	return true
}

// counts reports whether a class counts and items of classes wait.
func (q *memQueue) counts() bool {
	for _, c := range q.class {
		if c.Limit > 0 || c.Rate.PerSecond > 0 {
			return len(q.in(Ready|Retry, func(i *memItem) bool { return i.Class != "" })) > 0
		}
	}
	return false
}

// until is the time until the class has n tokens, in whole microseconds.
func (c *memClass) until(n int, now time.Time) time.Duration {
	at := now.UnixNano()
	if c.Rate.PerSecond == 0 {
		return 0
	}
	d := time.Duration(c.meter.Due(c.mark, int64(n), at) - at)
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// waits are the classes without room of which an item can be claimed otherwise.
func (q *memQueue) waits(now time.Time, can func(*memItem) bool) (waits []ClassWait) {
	for _, name := range slices.Sorted(maps.Keys(q.class)) {
		c := q.class[name]
		if len(q.in(Ready|Retry, func(i *memItem) bool { return i.Class == name && can(i) && !q.hasRoom(i, now) })) == 0 {
			continue
		}
		w := ClassWait{Class: name}
		if !c.full(q) {
			w.Next, w.Half = c.until(1, now), c.until(max(1, c.Rate.Burst/2), now)
		}
		waits = append(waits, w)
	}
	return waits
}

func (q *memQueue) classStats(now time.Time) (all []ClassStats) {
	names := map[string]bool{}
	for name, c := range q.class {
		if c.Limit > 0 || c.Rate.PerSecond > 0 || c.set {
			names[name] = true
		}
	}
	for _, i := range q.in(Ready|Retry|Running, func(i *memItem) bool { return i.Class != "" }) {
		names[i.Class] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, q.statsOf(name, now))
	}
	return all
}

func (q *memQueue) statsOf(class string, now time.Time) ClassStats {
	s := ClassStats{Name: class, Running: q.runs(class), Pending: len(q.in(Ready|Retry, func(i *memItem) bool { return i.Class == class }))}
	if c := q.class[class]; c != nil {
		s.Limit, s.Set = c.Limit, c.set
		s.Calls.PerSecond, s.Calls.Burst, s.Calls.Used = c.Rate.PerSecond, c.Rate.Burst, c.used
		if wait := c.until(1, now); wait > 0 {
			s.Next = now.Add(wait)
		}
	}
	return s
}
