package core

// board is the scheduler of coordinators with lanes, with keys, or with both.
// Higher lanes go first; within a lane the keys take turns; within a key, or a
// lane without keys, items start in order of arrival. An operation can start when its
// lane runs less than the lane's limit and its key less than perKey.
//
// So that lower lanes do not starve, of the operations whose turn it is in their
// lanes and that have waited for the time of ageing the one that has waited longest
// goes first, whatever its lane, but only every agedTurn-th time: else a backlog,
// once aged, would take the higher lanes' priority away.
type board struct {
	lanes   []lane
	n       int
	perKey  int
	keys    keyTable
	keyed   bool
	ordered bool  // oldest is asked for
	ageing  int64 // 0: never

	aged     bool // next, when last asked, favoured a lane for the age of its first
	sinceAge int  // starts since that was followed
}

// agedTurn is the share of starts that ageing may take: one in so many.
const agedTurn = 4

// lane is what the board knows of a lane.
type lane struct {
	limit   int // 0: none
	running int
	n       int    // pending
	queue   opList // with keys: one for each key of which one may start, in the order in which it is their turn
	arrived arrivals
}

func newBoard(opts *Options, keyed bool) *board {
	b := &board{
		lanes:   make([]lane, max(1, len(opts.Lanes))),
		perKey:  opts.MaxPerKey,
		keyed:   keyed,
		ordered: keyed && opts.DropOldest,
		ageing:  int64(opts.Ageing),

		sinceAge: agedTurn,
	}
	for i := range opts.Lanes {
		b.lanes[i].limit = opts.Lanes[i].Limit
	}
	return b
}

func (b *board) push(o *Operation) {
	l := &b.lanes[o.lane]
	l.n++
	b.n++
	if b.ordered {
		l.arrived.add(o)
	}
	if !b.keyed {
		l.queue.push(o)
		return
	}
	k := b.keys.obtain(o.key, len(b.lanes))
	k.pending++
	o.turn = &k.turns[o.lane]
	o.turn.queue.push(o)
	if k.running < b.perKey && o.turn.up == nil {
		l.take(o.turn)
	}
}

// take queues the first operation of a key in the lane.
func (l *lane) take(t *turn) {
	if t.up = t.queue.head; t.up != nil {
		t.queue.remove(t.up)
		l.queue.push(t.up)
	}
}

// put undoes take.
func (l *lane) put(t *turn) {
	if t.up != nil {
		l.queue.remove(t.up)
		t.queue.insert(t.up, t.queue.head)
		t.up = nil
	}
}

func (b *board) next(now int64, barred laneSet) *Operation {
	var first, aged *Operation
	b.aged = false
	for i := range b.lanes {
		l := &b.lanes[i]
		if l.n == 0 || l.limit > 0 && l.running >= l.limit || barred.has(uint8(i)) {
			continue
		}
		o := l.queue.head
		switch {
		case o == nil:
		case first == nil:
			if b.ageing == 0 || b.sinceAge < agedTurn-1 || b.n == l.n {
				return o
			}
			first, aged = o, o
		case now-o.enqueued >= b.ageing && o.enqueued < aged.enqueued:
			aged = o
		}
	}
	b.aged = aged != first
	return aged
}

func (b *board) admits(o *Operation) bool {
	if l := &b.lanes[o.lane]; l.limit > 0 && l.running >= l.limit {
		return false
	}
	k := b.keys.live[o.key]
	return !b.keyed || k == nil || k.running < b.perKey
}

func (b *board) earliest(lane uint8) *Operation {
	first := b.lanes[lane].queue.head
	if !b.keyed {
		return first
	}
	for o := first; o != nil; o = o.next {
		if o.enqueued < first.enqueued {
			first = o
		}
	}
	return first
}

func (b *board) start(o *Operation) {
	if b.aged {
		b.sinceAge = 0
	} else if b.sinceAge < agedTurn {
		b.sinceAge++
	}
	l := b.leave(o)
	l.running++
	l.queue.remove(o)
	if !b.keyed {
		return
	}
	k := o.turn.key
	k.pending--
	o.turn.up = nil
	if k.running++; k.running < b.perKey {
		l.take(o.turn) // after the others' turn
		return
	}
	for i := range k.turns {
		b.lanes[i].put(&k.turns[i])
	}
}

func (b *board) remove(o *Operation) {
	l, t := b.leave(o), o.turn
	if !b.keyed {
		l.queue.remove(o)
		return
	}
	if t.up != o {
		t.queue.remove(o)
	} else {
		if t.up = t.queue.head; t.up != nil { // it is still the key's turn
			t.queue.remove(t.up)
			l.queue.insert(t.up, o)
		}
		l.queue.remove(o)
	}
	t.key.pending--
	b.keys.release(t.key)
	o.turn = nil
}

// leave counts that o is not pending any more, in its lane.
func (b *board) leave(o *Operation) *lane {
	l := &b.lanes[o.lane]
	l.n--
	b.n--
	if b.ordered {
		l.arrived.trim(l.n)
	}
	return l
}

func (b *board) finish(o *Operation) {
	if o.status != StatusSuspended {
		b.suspend(o)
	}
	if !b.keyed {
		return
	}
	k := o.turn.key
	if k.running == b.perKey {
		for i := range k.turns {
			b.lanes[i].take(&k.turns[i])
		}
	}
	k.running--
	b.keys.release(k)
	o.turn = nil
}

func (b *board) suspend(o *Operation) { b.lanes[o.lane].running-- }

func (b *board) resume(o *Operation) bool {
	l := &b.lanes[o.lane]
	if l.limit > 0 && l.running >= l.limit {
		return false
	}
	l.running++
	return true
}

func (b *board) oldest(lane uint8) *Operation {
	if b.ordered {
		return b.lanes[lane].arrived.oldest()
	}
	return b.lanes[lane].queue.head
}

func (b *board) all() []*Operation {
	var all []*Operation
	for i := range b.lanes {
		all = b.lanes[i].queue.appendTo(all)
	}
	for _, k := range b.keys.live {
		for i := range k.turns {
			all = k.turns[i].queue.appendTo(all)
		}
	}
	return all
}

func (b *board) pending() int { return b.n }

// arrivals remembers pending operations in the order of their arrival, and some
// that are not pending any more, but never many more of these than of the others.
type arrivals struct{ operations []*Operation }

func (a *arrivals) add(o *Operation) { a.operations = append(a.operations, o) }

// trim forgets those that are not pending any more if there are too many of them.
func (a *arrivals) trim(pending int) {
	switch {
	case pending == 0:
		a.operations = nil
	case len(a.operations) > 2*pending+16:
		kept := make([]*Operation, 0, pending+1) // a new slice, because slices do not shrink; o itself still counts
		for _, o := range a.operations {
			if o.status == StatusPending {
				kept = append(kept, o)
			}
		}
		a.operations = kept
	}
}

func (a *arrivals) oldest() *Operation {
	for i, o := range a.operations {
		if o.status == StatusPending {
			clear(a.operations[:i])
			a.operations = a.operations[i:]
			return o
		}
	}
	a.operations = nil
	return nil
}
