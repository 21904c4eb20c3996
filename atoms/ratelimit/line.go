package ratelimit

// A bucket is what one limit is about: a meter and a mark, see [meter].
type bucket struct {
	meter *meter
	mark  amount
}

// due is when somebody who is the first in line since from can have n tokens, if nobody
// else takes any. Who asked for more than the burst, which was lowered since, has them
// when the bucket is full, and the rest is owed.
func (b *bucket) due(n, from int64) int64 {
	return b.meter.when(b.mark.max(b.meter.floor).plus(min(n, b.meter.burst)), from)
}

// take takes n tokens that are due at a time. Where they became due in that very
// nanosecond, what came in beyond them has not overflowed.
func (b *bucket) take(n, from, at int64) {
	m := b.meter
	if m.rate == Unlimited {
		return
	}
	mark := b.mark.max(m.floor)
	if at == from || !m.at(at-1).less(mark.plus(min(n, m.burst))) {
		mark = mark.max(m.fill(at))
	}
	b.mark = mark.plus(n)
}

// fill fills the bucket. If others go by the same meter, they are filled as well.
func (b *bucket) fill(now int64) {
	b.meter.floor = lowest
	b.mark = b.meter.fill(now)
}

// standing is where somebody stands.
type standing int

const (
	aside   standing = iota // has not come yet
	inLine                  // holds nothing
	granted                 // has what it asked for
	left                    // gave it back or gave up
)

// A place is what one caller asked for, and how far it is.
type place struct {
	costs    []int64 // tokens of each bucket
	free     uint64  // the buckets that took nothing, because they are unlimited
	standing standing
	ready    chan struct{} // closed when it is granted or ended; nil: nobody waits
	err      error         // why it was ended

	ahead, behind *place
	cost          [1]int64 // what costs is of, if there is one bucket
}

// maxBuckets is how many buckets a line may have: as many as fit [place.free].
const maxBuckets = 64

// A line is a first come, first served queue in front of buckets, all of which a
// place needs tokens of, at the same time. Who waits holds nothing: the first in line
// takes from all buckets at the moment at which all have enough, and nobody before it.
//
// Grants have the time at which they were due, not the time at which somebody looked,
// so that they do not depend on when that is. A line is not safe for concurrent use,
// and does not look at the clock.
type line struct {
	first, last *place
	buckets     []bucket
	length      int
	owed        int64 // what all in line asked of the first bucket
	from        int64 // when the first became the first, at least

	end tail
}

// tail is what the buckets will be like when the last in line has been granted: for
// lines with more than one bucket, where that depends on the order of things.
type tail struct {
	known   bool
	buckets []bucket
	at      int64
}

// places is a list, linked by behind, of those who have left a line.
type places struct{ first, last *place }

func (l *places) add(p *place) { l.join(places{p, p}) }

func (l *places) join(more places) {
	switch {
	case l.first == nil:
		*l = more
	case more.first != nil:
		l.last.behind, l.last = more.first, more.last
	}
}

// settle grants all that is due, and returns them.
func (l *line) settle(now int64) (done places) {
	for p := l.first; p != nil; p = l.first {
		at := l.dueFirst()
		if at > now {
			break
		}
		for i := range l.buckets {
			if l.buckets[i].meter.rate == Unlimited {
				p.free |= 1 << i
			}
			l.buckets[i].take(p.costs[i], l.from, at)
		}
		known := l.end.known // it is as it was foreseen
		l.remove(p)
		l.end.known = known
		l.from = at
		p.standing = granted
		done.add(p)
	}
	return done
}

// changed is called after settle and before anything in the buckets changes otherwise
// than by grants: what is due from here on is not due before now.
func (l *line) changed(now int64) {
	l.from = max(l.from, now)
	l.end.known = false
}

// dueFirst is when the first in line is due; never, if there is nobody.
func (l *line) dueFirst() int64 {
	if l.first == nil {
		return never
	}
	return dueAt(l.buckets, l.first.costs, l.from)
}

func dueAt(buckets []bucket, costs []int64, from int64) int64 {
	for i := range buckets {
		from = max(from, buckets[i].due(costs[i], from))
	}
	return from
}

// dueNext is when somebody who came now, after settle, would be due.
func (l *line) dueNext(costs []int64, now int64) int64 {
	if len(l.buckets) == 1 {
		return l.dueBehind(l.owed, costs[0], now)
	}
	l.foresee(now)
	return dueAt(l.end.buckets, costs, l.end.at)
}

// dueOf is when a place in line is due, after settle.
func (l *line) dueOf(p *place, now int64) int64 {
	if len(l.buckets) == 1 {
		owed := l.owed
		for other := l.last; other != p; other = other.ahead {
			owed -= other.costs[0]
		}
		return l.dueBehind(owed-p.costs[0], p.costs[0], now)
	}
	t := tail{buckets: append([]bucket(nil), l.buckets...), at: l.start(now)}
	for other := l.first; other != p; other = other.behind {
		t.add(other)
	}
	return dueAt(t.buckets, p.costs, t.at)
}

// dueBehind is when somebody is due who wants n of the only bucket, behind others in
// line, maybe none, who want so much of it. When the first of them is granted, the
// bucket may overflow, if it was paused; after that it is no fuller than the next in
// line needs.
func (l *line) dueBehind(others, n, now int64) int64 {
	b, from := l.buckets[0], l.start(now)
	if first := l.first; first != nil && others > 0 {
		at := dueAt(l.buckets, first.costs, from)
		if at == never {
			return never
		}
		b.take(first.costs[0], from, at)
		b.mark = b.mark.plus(others - first.costs[0])
		from = at
	}
	return b.due(n, from)
}

func (l *line) start(now int64) int64 {
	if l.first == nil {
		return now
	}
	return l.from
}

// foresee makes end known.
func (l *line) foresee(now int64) {
	if l.first == nil {
		l.end.known = false
	}
	if l.end.known {
		return
	}
	l.end = tail{true, append(l.end.buckets[:0], l.buckets...), l.start(now)}
	for p := l.first; p != nil; p = p.behind {
		l.end.add(p)
	}
}

// add grants p.
func (t *tail) add(p *place) {
	from := t.at
	if t.at = dueAt(t.buckets, p.costs, from); t.at == never {
		return
	}
	for i := range t.buckets {
		t.buckets[i].take(p.costs[i], from, t.at)
	}
}

// push puts somebody at the end of the line, after settle.
func (l *line) push(p *place, now int64) {
	if l.first == nil {
		l.first, l.from = p, now
		l.end.known = false
	} else {
		l.last.behind, p.ahead = p, l.last
	}
	l.last = p
	l.length++
	l.owed += p.costs[0]
	p.standing = inLine
	if l.end.known {
		l.end.add(p)
	}
}

// remove takes somebody out of the line.
func (l *line) remove(p *place) {
	if p.ahead == nil {
		l.first = p.behind
	} else {
		p.ahead.behind = p.behind
	}
	if p.behind == nil {
		l.last = p.ahead
	} else {
		p.behind.ahead = p.ahead
	}
	p.ahead, p.behind = nil, nil
	l.length--
	l.owed -= p.costs[0]
	l.end.known = false
}

// adjust makes a granted place cost what it really cost.
func (l *line) adjust(p *place, costs []int64) {
	for i := range l.buckets {
		if b := &l.buckets[i]; p.free>>i&1 == 0 {
			b.mark = b.mark.max(b.meter.floor).plus(costs[i] - p.costs[i])
			b.mark.whole = min(b.mark.whole, forward/2)
		}
		p.costs[i] = costs[i]
	}
}

// fill fills the buckets.
func (l *line) fill(now int64) {
	for i := range l.buckets {
		l.buckets[i].fill(now)
	}
}
