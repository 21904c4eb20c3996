package sched

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/internal/meters"
	"github.com/ephemeralgo/ephemeral/core/internal/schedtest"
)

// placed is an item as the model needs it.
type placed struct {
	Item
	id        int
	key       string
	cost      int64
	suspended bool
}

func (o *placed) Place() (lane, class int, key string, enqueued int64) {
	return int(o.Lane), int(o.Class), o.key, o.Enqueued
}

func (o *placed) Cost() int64 { return o.cost }

// placedOf returns what an item is the first field of, or nil.
func placedOf(item *Item) *placed { return (*placed)(unsafe.Pointer(item)) }

func byNumber(a, b *placed) int { return cmp.Compare(a.id, b.id) }

// The board beside a simple model of it: both get the same random calls and must give the same answers.
func TestBoardModel(t *testing.T) {
	const perSeed = 2500
	for seed := range uint64(long.Often(150, 5)) {
		d := newBoardDriver(t, seed)
		for range perSeed {
			d.step()
		}
		d.finish()
		if t.Failed() {
			return
		}
	}
}

type boardDriver struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	about  string
	log    []boardLog

	b     Board
	model *schedtest.BoardModel[*placed]

	now     int64
	ids     int
	keys    int // the number of different keys
	backlog int // the approximate number of pending operations
	limit   int // how many run
}

func newBoardDriver(t *testing.T, seed uint64) *boardDriver {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &boardDriver{
		t: t, seed: seed, random: r, now: 1,
		keys: 1 + r.IntN(12), backlog: 1 + r.IntN(25), limit: 1 + r.IntN(8),
	}
	config := Config{Lanes: make([]int, max(1, r.IntN(6)))}
	for i := range config.Lanes {
		if r.IntN(2) == 0 {
			config.Lanes[i] = 1 + r.IntN(4)
		}
	}
	if r.IntN(2) == 0 {
		config.Ageing = int64(1 + r.IntN(60))
	}
	classes := []int{0}
	config.Classes = make([]Limits, 1)
	if r.IntN(2) == 0 {
		for i := range 1 + r.IntN(4) {
			classes = append(classes, r.IntN(4))
			config.Classes = append(config.Classes, Limits{classes[i+1], d.someRate(3), d.someRate(3)})
		}
	}
	if r.IntN(2) == 0 {
		config.PerKey, config.KeyRate, config.KeyCostRate = 1+r.IntN(3), d.someRate(4), d.someRate(4)
	}
	d.about = fmt.Sprintf("%+v", config)
	d.model = schedtest.NewBoardModel[*placed](config.Lanes, classes, config.PerKey, config.Ageing)
	for class, c := range config.Classes {
		d.model.SetRates(class, d.now, c.Rate, c.CostRate)
	}
	d.model.SetKeyRates(d.now, config.KeyRate, config.KeyCostRate)
	d.b = New(config, d.now)
	return d
}

// someRate is a rate once in oneIn calls, and otherwise none. Steps of the test take about
// 15 nanoseconds.
func (d *boardDriver) someRate(oneIn int) (r meters.Rate) {
	if d.random.IntN(oneIn) == 0 {
		r = meters.Rate{1e9 / float64(1+d.random.IntN(60)), 1 + d.random.IntN(5)}
	}
	return r
}

// boardLog is a line of the log. It becomes text only if the test fails.
type boardLog struct {
	at     int64
	format string
	args   []any
}

func (d *boardDriver) logf(format string, args ...any) {
	d.log = append(d.log, boardLog{d.now, format, args})
}

func (d *boardDriver) fatalf(format string, args ...any) {
	d.t.Helper()
	var log strings.Builder
	for _, l := range d.log[max(0, len(d.log)-60):] {
		fmt.Fprintf(&log, "\n  at %d: %s", l.at, fmt.Sprintf(l.format, l.args...))
	}
	d.t.Fatalf("seed %d, %s: %s\nafter%v", d.seed, d.about, fmt.Sprintf(format, args...), &log)
}

func (o *placed) String() string {
	if o == nil {
		return "none"
	}
	return fmt.Sprintf("#%d (lane %d, class %d, cost %d, key %q, enqueued at %d)", o.id, o.Lane, o.Class, o.cost, o.key, o.Enqueued)
}

func (d *boardDriver) same(got *Item, want *placed, what string, args ...any) {
	if placedOf(got) != want {
		d.t.Helper()
		d.fatalf("%s: got %s, want %s", fmt.Sprintf(what, args...), placedOf(got), want)
	}
}

// someBars is a random set of barred lanes, mostly empty.
func (d *boardDriver) someBars() *Bars {
	if d.random.IntN(3) > 0 {
		return nil
	}
	set := new(Bars)
	for lane := range uint8(len(d.model.Limits)) {
		if d.random.IntN(3) == 0 {
			set.Lane(lane)
		}
		for class := 1; class < len(d.model.Classes); class++ {
			if d.random.IntN(4) == 0 {
				set.Class(lane, uint8(class))
			}
		}
	}
	return set
}

// isBarred is the same set for the model.
func (s *Bars) isBarred(lane, class int) bool {
	return s.has(lane) || s.in(lane)&setOf(uint8(class)) != 0
}

// next asks the board and the model for the next operation, before and after another
// question.
func (d *boardDriver) next() (o *placed, aged bool, barred *Bars) {
	barred = d.someBars()
	d.advance()
	o, _ = d.model.Next(d.now, barred.isBarred)
	for range d.random.IntN(3) { // changes nothing
		others := d.someBars()
		later := d.now + d.random.Int64N(100)
		want, _ := d.model.Next(later, others.isBarred)
		d.same(d.b.next(later, others), want, "next at %d with %+v barred", later, others)
	}
	again, aged := d.model.Next(d.now, barred.isBarred)
	if again != o {
		d.fatalf("the model's second answer: got %s, want %s", again, o)
	}
	d.same(d.b.Next(d.now, barred), o, "next with %+v barred", barred)
	if soonest := d.b.asked.soonest; o == nil && soonest <= d.now {
		d.fatalf("nothing can start, but tokens come at %d", soonest)
	}
	return o, aged, barred
}

// advance tells the board and the model the time.
func (d *boardDriver) advance() {
	d.b.advance(d.now)
	d.model.Advance(d.now)
}

func (d *boardDriver) step() {
	r, m := d.random, d.model
	push, start := 38, 30
	switch n := len(m.Pending); {
	case n > 2*d.backlog:
		push = 5
	case n > d.backlog:
		push = 25
	}
	if len(m.Running) >= d.limit {
		start = 0
	}
	switch n := r.IntN(100); {
	case n < push:
		d.push()
	case n < push+start:
		if o, aged, barred := d.next(); o != nil {
			if r.IntN(5) == 0 { // as for one that has been deferred long enough
				next, sameClass := o, r.IntN(2) == 0
				o = m.Earliest(next, sameClass, d.now, barred.isBarred)
				d.same(d.b.Earliest(&next.Item, sameClass), o, "earliest")
			}
			d.start(o, aged)
		}
	case n < 75:
		if alive := slices.Concat(m.Running, m.Suspended); len(alive) > 0 {
			o, n := alive[r.IntN(len(alive))], meters.Tokens{r.Int64N(7) - 3, r.Int64N(21) - 10}
			d.logf("charge %s %v", o, n)
			d.b.Charge(&o.Item, o.suspended, n, d.now)
			m.Charge(o, n, d.now)
		}
	case n < 76:
		class := r.IntN(len(m.Classes))
		if r.IntN(2) == 0 {
			d.setShadow(uint8(class), Shadow{Limits{r.IntN(4), d.someRate(2), d.someRate(2)}, r.IntN(10)})
		} else if class > 0 {
			c := Limits{m.Classes[class], d.someRate(2), d.someRate(2)}
			d.logf("set class %d to %+v", class, c)
			d.b.SetClass(uint8(class), c, d.now)
			m.SetRates(class, d.now, c.Rate, c.CostRate)
		}
	case n < 85:
		if alive := slices.Concat(m.Running, m.Suspended); len(alive) > 0 {
			o := alive[r.IntN(len(alive))]
			d.finishOne(o)
		}
	case n < 86:
		if len(m.Running) > 0 && len(m.Suspended) < 4 {
			o := m.Running[r.IntN(len(m.Running))]
			d.logf("suspend %s", o)
			d.b.Suspend(&o.Item, d.now)
			o.suspended = true
			m.Suspend(o)
		}
	case n < 88:
		if len(m.Suspended) > 0 {
			if o := m.Suspended[r.IntN(len(m.Suspended))]; !slices.Contains(m.Back, o) {
				d.logf("%s wants to go on", o)
				d.b.Want(&o.Item, d.now)
				m.Want(o, d.now)
			}
		}
		d.goOn()
	case n < 91:
		if len(m.Pending) > 0 {
			o := m.Pending[r.IntN(len(m.Pending))]
			if r.IntN(2) == 0 {
				o = m.Oldest(int(o.Lane), int(o.Class))
			}
			d.remove(o)
		}
	case n < 94:
		if len(m.Waiting) > 0 {
			o := m.Waiting[r.IntN(len(m.Waiting))]
			d.remove(o)
			if o.Flags = 0; r.IntN(3) > 0 { // there is room
				d.logf("let in %s", o)
				d.b.Push(&o.Item, o.key)
				m.Push(o)
			}
		}
	default:
		d.now += r.Int64N(30)
	}
	d.compare()
}

// goOn asks the board and the model which suspended operation gets its slots back before a
// pending operation of a lane starts.
func (d *boardDriver) goOn() {
	before := d.random.IntN(len(d.model.Limits) + 1)
	o, aged := d.model.First(d.now, before)
	got, gotAged := d.b.Back(d.now, uint8(before))
	d.same(got, o, "back before lane %d", before)
	if aged != gotAged {
		d.fatalf("back before lane %d: got aged %t, want %t", before, gotAged, aged)
	}
	if o == nil {
		return
	}
	d.logf("%s goes on, aged %t", o, aged)
	d.b.Unwant(&o.Item)
	d.b.Resume(&o.Item, aged, d.now)
	o.suspended = false
	d.model.Resume(o, aged)
}

func (d *boardDriver) finishOne(o *placed) {
	d.logf("finish %s", o)
	if slices.Contains(d.model.Back, o) {
		d.b.Unwant(&o.Item)
	}
	d.b.Finish(&o.Item, o.suspended, d.now)
	d.model.Finish(o, d.now)
}

func (d *boardDriver) push() {
	d.ids++
	o := &placed{id: d.ids, cost: max(0, d.random.Int64N(12)-4)} // some cost more than any burst
	o.Enqueued, o.Value = d.now, o.cost
	o.Lane, o.Class = uint8(d.random.IntN(len(d.model.Limits))), uint8(d.random.IntN(len(d.model.Classes)))
	if d.model.PerKey > 0 && d.random.IntN(4) > 0 {
		o.key = fmt.Sprint(d.random.IntN(1 + d.random.IntN(d.keys))) // some keys are hot, and "0" is the hottest
	}
	if d.random.IntN(4) == 0 { // it has waited for room, or another operation came first
		o.Enqueued = max(1, o.Enqueued-d.random.Int64N(20))
	}
	push := d.model.Push
	if d.random.IntN(3) == 0 {
		o.Flags, push = Roomless, d.model.Wait
	}
	d.logf("push %s, without room %t", o, o.Flags&Roomless != 0)
	d.b.Push(&o.Item, o.key)
	push(o)
}

func (d *boardDriver) start(o *placed, aged bool) {
	d.logf("start %s, aged %t", o, aged)
	d.b.Start(&o.Item, d.now)
	o.Flags = 0
	d.model.Start(o, aged, d.now)
}

func (d *boardDriver) remove(o *placed) {
	d.logf("remove %s", o)
	d.b.Remove(&o.Item, d.now)
	d.model.Remove(o, d.now)
}

func (d *boardDriver) compare() {
	m := d.model
	if got := d.b.Pending(); got != len(m.Pending) {
		d.fatalf("pending: got %d, want %d", got, len(m.Pending))
	}
	if d.random.IntN(8) == 0 {
		var all []*placed
		for _, item := range d.b.All() {
			all = append(all, placedOf(item))
		}
		slices.SortFunc(all, byNumber)
		want := slices.SortedFunc(slices.Values(d.waitingToo()), byNumber)
		if !slices.Equal(all, want) {
			d.fatalf("all: got %d operations, want the %d that have not started", len(all), len(want))
		}
	}
	for i := range d.b.lanes {
		l := &d.b.lanes[i]
		if pending, running := m.InLane(d.waitingToo(), i), m.InLane(m.Running, i); l.n != pending || l.Running != running {
			d.fatalf("lane %d: got %d pending and %d running, want %d and %d", i, l.n, l.Running, pending, running)
		}
	}
	for i, c := range d.b.classes {
		if pending, running := m.InClass(d.waitingToo(), i), m.InClass(m.Running, i); c.n != pending || c.Running != running {
			d.fatalf("class %d: got %d pending and %d running, want %d and %d", i, c.n, c.Running, pending, running)
		}
	}
	for i, c := range d.b.classes {
		if got, want := c.rates, d.model.Rates[i]; got != nil && got.Buckets != want.Buckets {
			d.fatalf("class %d: got buckets %v, want %v", i, got.Buckets, want.Buckets)
		}
	}
	d.compareKeys()
	d.checkShadows()
}

// setShadow sets or removes a shadow. Nothing else depends on shadows.
func (d *boardDriver) setShadow(class uint8, to Shadow) {
	d.logf("set shadow of class %d to %+v", class, to)
	var running List
	for _, o := range d.model.Running {
		running.Push(&o.Item)
	}
	d.b.SetShadow(class, to, &running, d.now)
	for running.Len() > 0 {
		running.Remove(running.First())
	}
}

// checkShadows checks that each record of a shadow is of an item that waits there or runs, and that each slot is taken by
// an item that runs, or is free at a known time.
func (d *boardDriver) checkShadows() {
	for class := range d.b.classes {
		s, i := d.b.shadowOf(uint8(class)), 0
		if s == nil {
			continue
		}
		s.advance(d.now)
		if class == 0 {
			i = 1
		}
		used, busy := 0, len(s.ends)
		for p := s.first; p != 0; p = s.records[p].next {
			used++
		}
		if used != s.use.Waiting || used > s.Room {
			d.fatalf("shadow of class %d: %d wait, want %d and at most %d", class, used, s.use.Waiting, s.Room)
		}
		for _, o := range d.model.Running {
			if class != 0 && int(o.Class) != class {
				continue
			}
			switch p := o.ticket(i); {
			case p == 0:
				busy++
			case p == outside || s.records[p].lag < 0:
			default:
				busy++
				used++
			}
		}
		if used != s.used || s.Limit > 0 && busy != s.busy {
			d.fatalf("shadow of class %d has %d records and %d slots taken, want %d and %d", class, s.used, s.busy, used, busy)
		}
		for _, o := range d.model.Running {
			if due := d.b.ShadowDue(&o.Item, d.now)[i]; (class == 0 || int(o.Class) == class) && due != 0 && due < d.now {
				d.fatalf("%s would start at %d", o, due)
			}
		}
	}
}

// waitingToo are the pending operations, and the operations that wait for room.
func (d *boardDriver) waitingToo() []*placed {
	return slices.Concat(d.model.Pending, d.model.Waiting)
}

// compareKeys checks that the keys of pending and running operations are known, and
// no others.
func (d *boardDriver) compareKeys() {
	if d.b.perKey == 0 {
		if d.b.keys.chains != nil {
			d.fatalf("keys are kept without there being keys")
		}
		return
	}
	known := 0
	for _, o := range d.waitingToo() {
		if o.key == "" {
			known++
		}
	}
	for k := range d.b.keys.all() {
		text, running, pending := k.text, 0, k.pending
		for _, o := range slices.Concat(d.model.Running, d.model.Suspended) {
			if o.key == text {
				running++
			}
		}
		if k.running != running || pending+running == 0 {
			d.fatalf("key %q: %d pending and %d running, want %d running and some of either", text, pending, k.running, running)
		}
		known += pending
	}
	if want := len(d.waitingToo()); known != want {
		d.fatalf("the known keys have %d operations that have not started, want %d", known, want)
	}
}

// finish ends all operations in random ways. After that nothing is left.
func (d *boardDriver) finish() {
	m := d.model
	for len(d.waitingToo())+len(m.Running)+len(m.Suspended) > 0 {
		for _, o := range slices.Concat(m.Running, m.Suspended) {
			d.finishOne(o)
		}
		d.advance()
		o, aged := m.Next(d.now, new(Bars).isBarred)
		d.same(d.b.next(d.now, nil), o, "next of those that are left")
		if soonest := d.b.asked.soonest; o == nil && soonest < never {
			d.now = soonest
			continue
		}
		if o == nil {
			break
		}
		d.start(o, aged)
		if d.random.IntN(3) == 0 && len(m.Pending) > 0 {
			d.remove(m.Pending[0])
		}
		d.compare()
	}
	if n := d.b.n + len(d.waitingToo()); n > 0 {
		d.fatalf("%d operations wait for ever", n)
	}
	d.checkEmpty()
}

// checkEmpty checks that nothing remembers any operation or key.
func (d *boardDriver) checkEmpty() {
	if all := d.b.All(); len(all) > 0 || d.b.next(d.now, nil) != nil {
		d.fatalf("all: got %d operations, want none", len(all))
	}
	if r := d.b.rated; r != nil {
		for d.now += 1e12; r.nextSweep() < never; d.now += sweepEvery {
			d.b.advance(d.now)
		}
		if n := len(r.known) + len(r.parked.keys) + len(r.idle.keys) + len(r.fresh); n > 0 {
			d.fatalf("%d keys with full buckets are kept", n)
		}
	}
	if n := d.b.keys.n; n > 0 {
		d.fatalf("%d idle keys are kept", n)
	}
	for i := range d.b.lanes {
		l := &d.b.lanes[i]
		for _, of := range l.lines {
			if of.List != (List{}) || of.waits != nil || l.Bound != (Bound{Limit: l.Limit}) || l.wanting.n+d.b.wanting > 0 {
				d.fatalf("lane %d: got %+v, want it to be empty", i, *l)
			}
		}
	}
}
