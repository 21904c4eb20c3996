package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func (o *Operation) Place() (lane, class int, key string, enqueued int64) {
	return int(o.lane), int(o.class), o.key, o.enqueued
}

// The board beside a simple model of it: both get the same random calls and must give the same answers.
func TestBoardModel(t *testing.T) {
	const perSeed = 2500
	for seed := range uint64(Often(400, 100)) {
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
	log    []string

	b     board
	model *BoardModel[*Operation]

	now     int64
	ids     OperationID
	keys    int // how many different ones come
	backlog int // about how many are pending
	limit   int // how many run
}

func newBoardDriver(t *testing.T, seed uint64) *boardDriver {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &boardDriver{
		t: t, seed: seed, random: r, now: 1,
		keys: 1 + r.IntN(12), backlog: 1 + r.IntN(25), limit: 1 + r.IntN(8),
	}
	opts := Options{MaxPerKey: 1 + r.IntN(3)}
	lanes := r.IntN(6) // 0: the options have none
	limits := make([]int, max(1, lanes))
	for i := range lanes {
		if r.IntN(2) == 0 {
			limits[i] = 1 + r.IntN(4)
		}
		opts.Lanes = append(opts.Lanes, Lane{Name: fmt.Sprint(i), Limit: limits[i]})
	}
	if r.IntN(2) == 0 {
		opts.Ageing = time.Duration(1 + r.IntN(60))
	}
	if lanes == 0 {
		opts.Lanes = make([]Lane, 1)
	}
	classes, places := []int{0}, make([]Class, 1)
	if r.IntN(2) == 0 {
		for i := range 1 + r.IntN(4) {
			classes = append(classes, r.IntN(4))
			places = append(places, Class{Name: fmt.Sprint(i), Limit: classes[i+1]})
		}
	}
	keyed := r.IntN(2) == 0
	d.about = fmt.Sprintf("keyed %t, options %+v, classes %+v", keyed, opts, places)
	perKey := 0
	if keyed {
		perKey = opts.MaxPerKey
	}
	d.model = NewBoardModel[*Operation](limits, classes, perKey, int64(opts.Ageing))
	d.b = newBoard(opts.Lanes, places, &opts, keyed)
	return d
}

func (d *boardDriver) logf(format string, args ...any) {
	d.log = append(d.log, fmt.Sprintf("at %d: ", d.now)+fmt.Sprintf(format, args...))
}

func (d *boardDriver) fatalf(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("seed %d, %s: %s\nafter\n  %s", d.seed, d.about, fmt.Sprintf(format, args...),
		strings.Join(d.log[max(0, len(d.log)-60):], "\n  "))
}

func described(o *Operation) string {
	if o == nil {
		return "none"
	}
	return fmt.Sprintf("#%d (lane %d, class %d, key %q, enqueued at %d)", o.id, o.lane, o.class, o.key, o.enqueued)
}

func (d *boardDriver) same(what string, got, want *Operation) {
	if got != want {
		d.t.Helper()
		d.fatalf("%s: got %s, want %s", what, described(got), described(want))
	}
}

// someLanes is a random set, mostly empty.
func (d *boardDriver) someLanes() (set laneSet) {
	if d.random.IntN(3) == 0 {
		for lane := range uint8(len(d.model.Limits)) {
			if d.random.IntN(3) == 0 {
				set = set.with(lane)
			}
		}
	}
	return set
}

// next asks both what is next, before and after asking something else.
func (d *boardDriver) next() (o *Operation, aged bool) {
	barred := d.someLanes()
	o, aged = d.model.Next(d.now, func(lane int) bool { return barred.has(uint8(lane)) })
	for range d.random.IntN(3) { // changes nothing
		others := d.someLanes()
		later := d.now + d.random.Int64N(100)
		want, _ := d.model.Next(later, func(lane int) bool { return others.has(uint8(lane)) })
		d.same(fmt.Sprintf("next at %d with lanes %b barred", later, others), d.b.next(later, others), want)
	}
	d.same(fmt.Sprintf("next with lanes %b barred", barred), d.b.next(d.now, barred), o)
	return o, aged
}

func (d *boardDriver) step() {
	r, m := d.random, d.model
	push, start := 40, 30
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
		if o, aged := d.next(); o != nil {
			if r.IntN(5) == 0 { // as for one that has been deferred long enough
				o = m.Earliest(int(o.lane))
				d.same("earliest", d.b.earliest(o.lane), o)
			}
			d.logf("start %s, aged %t", described(o), aged)
			d.b.start(o)
			o.marks, o.status = 0, StatusRunning
			m.Start(o, aged)
		}
	case n < 83:
		if alive := slices.Concat(m.Running, m.Suspended); len(alive) > 0 {
			o := alive[r.IntN(len(alive))]
			d.logf("finish %s", described(o))
			d.b.finish(o)
			o.status = StatusSucceeded
			m.Finish(o)
		}
	case n < 85:
		if len(m.Running) > 0 && len(m.Suspended) < 4 {
			o := m.Running[r.IntN(len(m.Running))]
			d.logf("suspend %s", described(o))
			d.b.suspend(o)
			o.status = StatusSuspended
			m.Suspend(o)
		}
	case n < 87:
		if len(m.Suspended) > 0 {
			o := m.Suspended[r.IntN(len(m.Suspended))]
			d.logf("resume %s", described(o))
			if got, want := d.b.resume(o), m.Fits(o); got != want {
				d.fatalf("resume %s: got %t, want %t", described(o), got, want)
			} else if got {
				o.status = StatusRunning
				m.Resume(o)
			}
		}
	case n < 90:
		if len(m.Pending) > 0 {
			o := m.Pending[r.IntN(len(m.Pending))]
			if r.IntN(2) == 0 {
				o = m.Oldest(int(o.lane), int(o.class))
			}
			d.remove(o)
		}
	case n < 94:
		if len(m.Waiting) > 0 {
			o := m.Waiting[r.IntN(len(m.Waiting))]
			d.remove(o)
			if o.marks = 0; r.IntN(3) > 0 { // there is room
				o.status = StatusPending
				d.logf("let in %s", described(o))
				d.b.push(o)
				m.Push(o)
			}
		}
	default:
		d.now += r.Int64N(30)
	}
	d.compare()
}

func (d *boardDriver) push() {
	d.ids++
	o := &Operation{
		id: d.ids, status: StatusPending, enqueued: d.now,
		lane: uint8(d.random.IntN(len(d.model.Limits))), class: uint8(d.random.IntN(len(d.model.Classes))),
	}
	if d.model.PerKey > 0 && d.random.IntN(4) > 0 {
		o.key = fmt.Sprint(d.random.IntN(1 + d.random.IntN(d.keys))) // some are hot, and "0" the hottest
	}
	if d.random.IntN(4) == 0 { // has waited for room, or was overtaken on its way in
		o.enqueued = max(1, o.enqueued-d.random.Int64N(20))
	}
	push := d.model.Push
	if d.random.IntN(3) == 0 {
		o.marks, o.status, push = roomless, 0, d.model.Wait
	}
	d.logf("push %s, without room %t", described(o), o.status == 0)
	d.b.push(o)
	push(o)
}

func (d *boardDriver) remove(o *Operation) {
	d.logf("remove %s", described(o))
	d.b.remove(o)
	o.status = StatusCancelled
	d.model.Remove(o)
}

func (d *boardDriver) compare() {
	m := d.model
	if got := d.b.pending(); got != len(m.Pending) {
		d.fatalf("pending: got %d, want %d", got, len(m.Pending))
	}
	lane := uint8(d.random.IntN(len(m.Limits)))
	d.same("earliest", d.b.earliest(lane), m.Earliest(int(lane)))
	if d.random.IntN(8) == 0 {
		all := d.b.all()
		slices.SortFunc(all, byID)
		want := slices.SortedFunc(slices.Values(d.waitingToo()), byID)
		if !slices.Equal(all, want) {
			d.fatalf("all: got %d operations, want the %d that have not started", len(all), len(want))
		}
	}
	for i := range d.b.lanes {
		l := &d.b.lanes[i]
		if pending, running := m.InLane(d.waitingToo(), i), m.InLane(m.Running, i); l.n != pending || l.running != running {
			d.fatalf("lane %d: got %d pending and %d running, want %d and %d", i, l.n, l.running, pending, running)
		}
	}
	for i, c := range d.b.classes {
		if pending, running := m.InClass(d.waitingToo(), i), m.InClass(m.Running, i); c.n != pending || c.running != running {
			d.fatalf("class %d: got %d pending and %d running, want %d and %d", i, c.n, c.running, pending, running)
		}
	}
	d.compareKeys()
}

// waitingToo are those that are pending, and those that wait for room.
func (d *boardDriver) waitingToo() []*Operation {
	return slices.Concat(d.model.Pending, d.model.Waiting)
}

// compareKeys checks that the keys of pending and running operations are known, and
// no others.
func (d *boardDriver) compareKeys() {
	if !d.b.keyed {
		if d.b.keys.live != nil {
			d.fatalf("keys are kept without there being keys")
		}
		return
	}
	known := count(d.waitingToo(), func(o *Operation) bool { return o.key == "" })
	for text, k := range d.b.keys.live {
		running, pending := 0, k.pending
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

// finish lets all end, one way or another, after which nothing is left.
func (d *boardDriver) finish() {
	m := d.model
	for len(d.waitingToo())+len(m.Running)+len(m.Suspended) > 0 {
		for _, o := range slices.Concat(m.Running, m.Suspended) {
			d.b.finish(o)
			o.status = StatusSucceeded
			m.Finish(o)
		}
		o, aged := m.Next(d.now, func(int) bool { return false })
		if d.same("next of those that are left", d.b.next(d.now, 0), o); o == nil {
			break
		}
		d.b.start(o)
		o.marks, o.status = 0, StatusRunning
		m.Start(o, aged)
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
	for lane := range uint8(len(d.model.Limits)) {
		if o := d.b.earliest(lane); o != nil {
			d.fatalf("earliest of nothing: got %s", described(o))
		}
	}
	if all := d.b.all(); len(all) > 0 || d.b.next(d.now, 0) != nil {
		d.fatalf("all: got %d operations, want none", len(all))
	}
	if n := len(d.b.keys.live); n > 0 {
		d.fatalf("%d idle keys are kept", n)
	}
	for i := range d.b.lanes {
		l := &d.b.lanes[i]
		for _, of := range l.lines {
			if of != (line{}) || l.bound != (bound{limit: l.limit}) {
				d.fatalf("lane %d: got %+v, want it to be empty", i, *l)
			}
		}
	}
}
