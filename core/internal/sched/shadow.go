package sched

import (
	"cmp"
	"slices"

	"github.com/ephemeralgo/ephemeral/core/internal/meters"
)

// A Shadow is limits that only count. Without limits there is no shadow.
type Shadow struct {
	Limits
	Room int // how many items may wait; later ones would be refused
}

// ShadowUse is what a shadow has counted since it was set.
type ShadowUse struct {
	Items   uint64 // that have started in reality
	Waited  uint64 // of these, would have started later
	Refused uint64 // of these, would have found no room
	Waiting int    // would still wait
	Longest int64  // how much later an item would have started
}

// shadow is a virtual queue: items come to it when they really start, first come first served, and keep their virtual
// slots for as long as they really run.
//
// An item starts in the shadow when it really starts, or later. So at any time it still runs in the shadow if it runs in
// reality, and all that has happened in the shadow is known. That does not hold for limits that are looser than the real
// ones.
//
// An item that starts at once in the shadow, as nearly all do, costs nothing but counters. One that waits there has a
// record until it has started there, and ended in reality.
type shadow struct {
	Shadow
	meters.Meters
	meters.Buckets
	at      int64   // nothing starts before
	due     int64   // when the first that waits has its tokens; 0: not known
	busy    int     // slots that are taken
	ends    []int64 // latest first: when slots are free again, of items that have ended in reality
	records []record
	first   ticket // of those that wait
	last    ticket
	unused  ticket
	used    int // records
	use     ShadowUse
	told    bool  // what the last signal said: that items wait
	quiet   int64 // no signal before
}

// ticket is the number of a record; 0: the item has started at once.
type ticket uint32

// outside is the ticket of an item that would have been refused.
const outside = ^ticket(0)

type record struct {
	came  int64
	began int64 // in reality
	ran   int64 // in reality; -1: it still runs
	lag   int64 // how much later it has started in the shadow; -1: it waits there
	takes meters.Tokens
	owes  meters.Tokens // was charged while it waits
	next  ticket        // of those that wait, or of those without use
}

// start says that an item has started in reality.
func (s *shadow) start(item *Item, takes meters.Tokens, now int64) ticket {
	s.use.Items++
	if s.first != 0 || len(s.ends) > 0 {
		s.advance(now)
	}
	if s.first == 0 && !s.full() {
		from := item.asOf(now)
		if due := s.Due(&s.Buckets, takes, from); due <= now {
			s.Book(&s.Buckets, takes, from, due)
			s.busy++
			return 0
		}
	}
	if s.use.Waiting >= s.Room {
		s.use.Refused++
		return outside
	}
	p := s.unused
	if p == 0 {
		p = ticket(max(1, len(s.records)))
		s.records = append(s.records, make([]record, int(p)+1-len(s.records))...)
	}
	s.unused = s.records[p].next
	s.records[p] = record{came: item.Enqueued, began: now, ran: -1, lag: -1, takes: takes}
	if s.first == 0 {
		s.first, s.due = p, 0
	} else {
		s.records[s.last].next = p
	}
	s.last = p
	s.used++
	s.use.Waiting++
	return p
}

// again says that an item which was suspended goes on. It takes a slot even if there is none, as it goes before those
// that wait.
func (s *shadow) again(now int64) {
	s.advance(now)
	s.busy++
}

// end says that an item has ended in reality, or is suspended.
func (s *shadow) end(p ticket, now int64) {
	if p == outside || s.Limit == 0 && p == 0 {
		return
	}
	s.advance(now)
	lag := int64(0)
	if p != 0 {
		r := &s.records[p]
		if lag = r.lag; lag < 0 {
			r.ran = now - r.began
			return
		}
		s.forget(p)
	}
	if lag > 0 {
		s.freed(now + lag)
		return
	}
	if s.full() {
		s.due = 0
	}
	s.busy--
	s.at = now
	s.advance(now)
}

// charge takes more tokens for an item, or gives some back.
func (s *shadow) charge(p ticket, n meters.Tokens, now int64) {
	if p == outside {
		return
	}
	s.advance(now)
	if p != 0 && s.records[p].lag < 0 {
		s.records[p].owes[0] += n[0]
		s.records[p].owes[1] += n[1]
		return
	}
	s.Charge(&s.Buckets, n, now)
	s.due = 0
}

// advance lets happen what has happened in the shadow by now.
func (s *shadow) advance(now int64) {
	for s.first != 0 && s.step(now) {
	}
	for n := len(s.ends); n > 0 && s.ends[n-1] <= now; n-- {
		s.pop()
	}
}

// step starts the first of those that wait, or frees a slot for it. It reports whether one of these has happened by now.
func (s *shadow) step(now int64) bool {
	if s.full() {
		if n := len(s.ends); n == 0 || s.ends[n-1] > now {
			return false
		}
		s.at = max(s.at, s.pop())
		s.due = 0
		return true
	}
	p := s.first
	r := &s.records[p]
	slot := max(s.at, r.began)
	from := max(slot-maxLate, r.came)
	if s.due == 0 {
		s.due = s.Due(&s.Buckets, r.takes, from)
	}
	if s.due > now {
		return false
	}
	s.Book(&s.Buckets, r.takes, from, s.due)
	s.at = max(slot, s.due)
	s.Charge(&s.Buckets, r.owes, s.at)
	r.lag = s.at - r.began
	s.first, s.due, r.next = r.next, 0, 0
	s.busy++
	s.use.Waiting--
	if r.lag > 0 {
		s.use.Waited++
		s.use.Longest = max(s.use.Longest, r.lag)
	}
	if r.ran >= 0 {
		s.freed(s.at + r.ran)
		s.forget(p)
	}
	return true
}

func (s *shadow) full() bool { return s.Limit > 0 && s.busy >= s.Limit }

// freed frees a slot at that time.
func (s *shadow) freed(at int64) {
	if s.Limit > 0 {
		i, _ := slices.BinarySearchFunc(s.ends, at, func(end, at int64) int { return cmp.Compare(at, end) })
		s.ends = slices.Insert(s.ends, i, at)
	}
}

// pop frees the slot that is free first.
func (s *shadow) pop() (at int64) {
	n := len(s.ends) - 1
	at, s.ends = s.ends[n], s.ends[:n]
	s.busy--
	return at
}

// forget drops a record.
func (s *shadow) forget(p ticket) {
	s.records[p].next, s.unused = s.unused, p
	if s.used--; s.used == 0 && len(s.records) > 256 {
		s.records, s.unused = nil, 0
	}
}

// dueOf is when an item starts in the shadow, at the earliest: what runs in reality may end at once. 0: it does not wait
// there.
func (s *shadow) dueOf(p ticket, now int64) int64 {
	s.advance(now)
	if p == 0 || p == outside || s.records[p].lag >= 0 {
		return 0
	}
	ahead := *s
	ahead.records, ahead.ends = slices.Clone(s.records), slices.Clone(s.ends)
	for s.Limit > 0 && len(ahead.ends) < s.busy {
		ahead.freed(now)
	}
	for i := range ahead.records {
		if r := &ahead.records[i]; r.ran < 0 {
			r.ran = now - r.began
		}
	}
	for ahead.first != 0 {
		started := ahead.first
		if !ahead.step(never - 1) {
			break
		}
		if started == p && ahead.first != p {
			return ahead.at
		}
	}
	return never
}

// shadows are what counts the items of a class: the shadow of the class, and the one of all items. An item that runs has
// its tickets of them in its Value.
type shadows [2]*shadow

func (item *Item) ticket(i int) ticket { return ticket(uint64(item.Value) >> (32 * i)) }

// SetShadow sets or removes the shadow of a class; class 0: of all items. Running are the items that have slots. A new
// shadow begins with them, and has counted nothing. It reports whether a signal has said that items wait in the old one.
func (b *Board) SetShadow(class uint8, to Shadow, running *List, now int64) (told bool) {
	i, from, end := 0, int(class), int(class)+1
	if class == 0 {
		i, end = 1, len(b.classes)
	}
	var made *shadow
	if to.Limits != (Limits{}) {
		made = &shadow{Shadow: to, Meters: meters.Start(now, to.Rate, to.CostRate)}
	}
	for item := running.First(); item != nil; item = item.Next() {
		if c := int(item.Class); from <= c && c < end {
			if b.classes[c].shadows == nil {
				item.Value = 0
			}
			item.Value &^= 0xffffffff << (32 * i)
			if made != nil {
				made.busy++
			}
		}
	}
	for c := from; c < end; c++ {
		var both shadows
		if before := b.classes[c].shadows; before != nil {
			both = *before
			told = both[i] != nil && both[i].told
		}
		both[i] = made
		if b.classes[c].shadows = nil; both != (shadows{}) {
			b.classes[c].shadows = &both
		}
	}
	return told
}

// shadowOf is the shadow of a class, or of all items; nil: none.
func (b *Board) shadowOf(class uint8) *shadow {
	both := b.classes[class].shadows
	switch {
	case both == nil:
		return nil
	case class == 0:
		return both[1]
	}
	return both[0]
}

// Shadowed reports whether a shadow counts an item.
func (b *Board) Shadowed(item *Item) bool { return b.classes[item.Class].shadows != nil }

// start says that an item has started. It reports whether it waits in a shadow, and a signal is to say so.
func (both *shadows) start(item *Item, now int64) (waits bool) {
	takes, tickets := item.takes(), uint64(0)
	for i, s := range both {
		if s != nil {
			p := s.start(item, takes, now)
			tickets |= uint64(p) << (32 * i)
			waits = waits || p != 0 && !s.told && now >= s.quiet
		}
	}
	item.Value = int64(tickets)
	return waits
}

func (both *shadows) end(item *Item, now int64) {
	for i, s := range both {
		if s != nil {
			s.end(item.ticket(i), now)
		}
	}
}

func (both *shadows) again(item *Item, now int64) {
	item.Value = 0
	for _, s := range both {
		if s != nil {
			s.again(now)
		}
	}
}

func (both *shadows) charge(item *Item, suspended bool, n meters.Tokens, now int64) {
	for i, s := range both {
		switch {
		case s == nil:
		case suspended: // its Value is something else
			s.charge(0, n, now)
		default:
			s.charge(item.ticket(i), n, now)
		}
	}
}

// Shadow is what the shadow of a class, or of all items, has counted; false: there is none.
func (b *Board) Shadow(class uint8, now int64) (use ShadowUse, ok bool) {
	s := b.shadowOf(class)
	if s == nil {
		return use, false
	}
	s.advance(now)
	use = s.use
	if s.first != 0 {
		use.Waited += uint64(use.Waiting)
		use.Longest = max(use.Longest, now-s.records[s.first].began)
	}
	return use, true
}

// tellEvery is the time between two signals of a shadow.
const tellEvery = int64(1e9)

// TellShadow returns how many items wait in the shadow of a class, or of all items, whether a signal is to say that some
// do, or that none does any more, and when to ask again.
func (b *Board) TellShadow(class uint8, now int64) (waiting int, news bool, again int64) {
	use, _ := b.Shadow(class, now)
	s := b.shadowOf(class)
	if s == nil {
		return 0, false, never
	}
	if s.told != (use.Waiting > 0) && now >= s.quiet {
		s.told, s.quiet, news = !s.told, now+tellEvery, true
	}
	switch {
	case now < s.quiet:
		return use.Waiting, news, s.quiet
	case s.told:
		return use.Waiting, news, now + tellEvery
	}
	return use.Waiting, news, never
}

// ShadowDue is when an item that runs would start at the earliest, because of the shadow of its class, and because of the
// one of all items. 0: it would have started.
func (b *Board) ShadowDue(item *Item, now int64) (due [2]int64) {
	if both := b.classes[item.Class].shadows; both != nil {
		for i, s := range both {
			if s != nil {
				due[i] = s.dueOf(item.ticket(i), now)
			}
		}
	}
	return due
}
