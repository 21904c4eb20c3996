package batching

import (
	"container/heap"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// builder decides which items make a batch, and when. It has no goroutine, lock or
// clock: now is a parameter and does not decrease.
//
// An open lot is sealed, which is final, when it is full, when everything is to be
// flushed, or when it is due and could be flushed at once; while it could not, it
// goes on to be filled.
type builder[V any] struct {
	maxSize, maxBytes         int
	maxQueued, maxQueuedBytes int
	delay                     time.Duration
	limit                     int // how many lots are flushed at once
	perKey                    int // and of one key
	keyed, dropOldest         bool

	pending  list[V] // accepted, and not being flushed
	waiting  list[V] // for room
	bytes    int     // of pending
	agenda   agenda[V]
	only     group[V]             // without keys
	groups   map[string]*group[V] // of keys that have lots
	opened   uint64
	claims   int  // how many slots the lots use that are on their way
	dropping bool // the last item that came made another one go
	closed   bool
	margin   margin
	stats    Stats
	spare    []*entry[V] // memory for the next lot

	// What the last steps entail, for the shell to do and to forget.
	sealed   []*lot[V]   // to be flushed, in this order
	emptied  []*lot[V]   // sealed ones that are not to be flushed any more
	admitted []*entry[V] // waited for room, and have it
	dropped  []*entry[V]
	floods   bool // items are dropped, from now on
}

// accept takes an item in, or returns an error that tells why not.
func (b *builder[V]) accept(e *entry[V], now time.Duration) error {
	if b.closed {
		return core.ErrClosed
	}
	if b.waiting.n > 0 || !b.fits(e) {
		if !b.dropOldest {
			b.press(now)
			return core.ErrFull
		}
		for !b.fits(e) {
			b.drop(b.pending.head)
		}
	}
	b.floods = len(b.dropped) > 0 && !b.dropping
	b.dropping = len(b.dropped) > 0
	b.admit(e, now)
	b.step(now)
	return nil
}

func (b *builder[V]) fits(e *entry[V]) bool {
	return b.pending.n < b.maxQueued && e.size <= b.maxQueuedBytes-b.bytes
}

// wait lets an item wait for room.
func (b *builder[V]) wait(e *entry[V]) {
	e.stage = stageWaiting
	b.waiting.push(e)
}

// admit puts an item into the lot of its key.
func (b *builder[V]) admit(e *entry[V], now time.Duration) {
	g := b.group(e.key)
	if g.open != nil && e.size > b.maxBytes-g.open.bytes {
		b.seal(g.open, ReasonBytes)
	}
	l := g.open
	if l == nil {
		b.opened++
		l = &lot[V]{number: b.opened, group: g, due: never, pressed: never, entries: b.spare}
		if b.spare = nil; l.entries == nil {
			l.entries = make([]*entry[V], 0, min(b.maxSize, 32))
		}
		g.open = l
		heap.Push(&b.agenda, l)
	}
	e.stage, e.at, e.latest = stagePending, now, b.margin.latest(now, e.latest)
	l.add(e)
	b.pending.push(e)
	b.bytes += e.size
	b.stats.Enqueued++
	b.expect(l, min(later(now, b.delay), e.latest))
	switch {
	case l.n == b.maxSize:
		b.seal(l, ReasonSize)
	case l.bytes >= b.maxBytes:
		b.seal(l, ReasonBytes)
	}
}

// expect lets an open lot be looked at by then.
func (b *builder[V]) expect(l *lot[V], due time.Duration) {
	if due < l.due {
		l.due = due
		if l.slot >= 0 {
			heap.Fix(&b.agenda, l.slot)
		}
	}
}

// press is called when an item finds no room. If the oldest of those that have it
// waits in an open lot, nothing else may ever make some.
func (b *builder[V]) press(now time.Duration) {
	if l := b.pending.head.lot; l.state == lotOpen && l.pressed == never {
		l.pressed = now
		b.expect(l, now)
	}
	b.step(now)
}

// step seals the lots that are due, as far as they could be flushed at once.
func (b *builder[V]) step(now time.Duration) {
	for b.claims < b.limit && len(b.agenda) > 0 {
		l := b.agenda[0]
		if l.due > now {
			return
		}
		due, reason := l.when(b.delay)
		switch {
		case due > l.due: // the item it was due for has left
			l.due = due
			heap.Fix(&b.agenda, 0)
		case l.group.flying >= b.perKey:
			heap.Pop(&b.agenda)
		default:
			b.seal(l, reason)
		}
	}
}

// next is when step has something to do if nothing else happens before.
func (b *builder[V]) next() time.Duration {
	if b.claims >= b.limit || len(b.agenda) == 0 {
		return never
	}
	return b.agenda[0].due
}

// flush seals everything.
func (b *builder[V]) flush() {
	for e := b.pending.head; e != nil; e = e.next {
		if e.lot.state == lotOpen {
			b.seal(e.lot, ReasonFlush)
		}
	}
}

func (b *builder[V]) seal(l *lot[V], r Reason) {
	b.leaveAgenda(l)
	l.state, l.reason = lotSealed, r
	l.group.open = nil
	if l.group.flying++; l.group.flying <= b.perKey {
		b.claims++
	}
	b.sealed = append(b.sealed, l)
}

func (b *builder[V]) leaveAgenda(l *lot[V]) {
	if l.slot >= 0 {
		heap.Remove(&b.agenda, l.slot)
	}
}

// start begins to flush a sealed lot. It returns false if there is nothing to flush
// any more.
func (b *builder[V]) start(l *lot[V], now time.Duration) bool {
	if l.state != lotSealed {
		return false
	}
	l.state = lotRunning
	l.compact()
	for _, e := range l.entries {
		b.pending.remove(e)
		e.stage = stageRunning
	}
	b.bytes -= l.bytes
	b.stats.Running += l.n
	b.stats.count(l.reason)
	b.refill(now)
	return true
}

// settle records the outcome of one item of a running lot.
func (b *builder[V]) settle(e *entry[V], counter *uint64) {
	e.stage = stageDone
	b.stats.Running--
	*counter++
	e.lot.unwant(e)
}

// end is called when a running lot is done with.
func (b *builder[V]) end(l *lot[V], now time.Duration) {
	l.state = lotGone
	clear(l.entries)
	b.spare, l.entries = l.entries[:0], nil
	b.land(l.group)
	b.step(now)
}

// land counts that a lot of g is not on its way any more.
func (b *builder[V]) land(g *group[V]) {
	if g.flying--; g.flying < b.perKey {
		b.claims--
		if g.open != nil && g.open.slot < 0 {
			heap.Push(&b.agenda, g.open)
		}
	}
	b.tidy(g)
}

// leave is called when who waits for an item does not any more. It reports whether
// that leaves nobody who wants the rest of a lot that is running.
func (b *builder[V]) leave(e *entry[V], now time.Duration) (abandoned bool) {
	switch e.stage {
	case stageWaiting:
		b.waiting.remove(e)
		e.stage = stageDone
		b.refill(now)
	case stagePending:
		b.withdraw(e, &b.stats.Cancelled)
		b.refill(now)
	case stageRunning:
		e.lot.unwant(e)
		return e.lot.wanted == 0
	}
	return false
}

// drop makes an item go for a newer one.
func (b *builder[V]) drop(e *entry[V]) {
	b.withdraw(e, &b.stats.Dropped)
	b.dropped = append(b.dropped, e)
}

// withdraw takes a pending item out of its lot.
func (b *builder[V]) withdraw(e *entry[V], counter *uint64) {
	b.pending.remove(e)
	b.bytes -= e.size
	*counter++
	e.stage = stageDone
	l := e.lot
	l.remove(e)
	if l.n > 0 {
		return
	}
	if l.state == lotOpen {
		b.leaveAgenda(l)
		l.group.open = nil
		b.tidy(l.group)
	} else {
		b.emptied = append(b.emptied, l)
		b.land(l.group)
	}
	l.state = lotGone
}

// cancel withdraws all items of a sealed lot and returns them.
func (b *builder[V]) cancel(l *lot[V], now time.Duration) []*entry[V] {
	l.compact()
	entries := slices.Clone(l.entries)
	for _, e := range entries {
		b.withdraw(e, &b.stats.Cancelled)
	}
	b.refill(now)
	return entries
}

// complete ends the intake and returns the items that wait for room.
func (b *builder[V]) complete() (turnedAway []*entry[V]) {
	b.closed = true
	for b.waiting.n > 0 {
		e := b.waiting.head
		b.waiting.remove(e)
		e.stage = stageDone
		b.stats.Rejected++
		turnedAway = append(turnedAway, e)
	}
	return turnedAway
}

// close withdraws all items that are not being flushed, and returns them.
func (b *builder[V]) close() (withdrawn []*entry[V]) {
	for b.pending.n > 0 {
		e := b.pending.head
		b.withdraw(e, &b.stats.Cancelled)
		withdrawn = append(withdrawn, e)
	}
	return withdrawn
}

// refill lets those in who wait for room, first come first served.
func (b *builder[V]) refill(now time.Duration) {
	for b.waiting.n > 0 {
		e := b.waiting.head
		if !b.fits(e) {
			b.press(now)
			return
		}
		b.waiting.remove(e)
		b.admit(e, now)
		b.admitted = append(b.admitted, e)
	}
	b.step(now)
}

// group returns the group of a key.
func (b *builder[V]) group(key string) *group[V] {
	if !b.keyed {
		return &b.only
	}
	g := b.groups[key]
	if g == nil {
		if b.groups == nil {
			b.groups = make(map[string]*group[V])
		}
		g = &group[V]{key: key}
		b.groups[key] = g
	}
	return g
}

// tidy forgets a group that has nothing.
func (b *builder[V]) tidy(g *group[V]) {
	if !b.keyed || g.open != nil || g.flying > 0 {
		return
	}
	delete(b.groups, g.key)
	if len(b.groups) == 0 {
		b.groups = nil // a Go map never shrinks
	}
}

// counters returns the counters as of now.
func (b *builder[V]) counters() Stats {
	s := b.stats
	s.Pending, s.PendingBytes, s.Closed = b.pending.n, b.bytes, b.closed
	switch m := &b.margin; {
	case m.fixed > 0:
		s.Margin = m.fixed
	case m.fixed == 0 && m.measured:
		s.Margin = m.estimate()
	}
	return s
}
