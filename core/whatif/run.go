package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/fifo"
	"github.com/ephemeralgo/ephemeral/core/internal/meters"
	"github.com/ephemeralgo/ephemeral/core/internal/sched"
	"github.com/ephemeralgo/ephemeral/core/internal/tape"
)

// Run lets the scheduler decide about the operations of a trace again, as a coordinator with these options would
// have done. Change [Trace.Options] for that: of the other options, only those that decide what starts count.
// Run returns an error if the options are not valid, if they lack a lane or class of the trace (options without
// any take all operations), if they have a gate that the recorded coordinator did not have, and if the operations of the
// trace run for more than 100 years together.
//
// At the beginning, all slots are free, and buckets are full. The trace can be used by several calls at once.
func Run(t *Trace, o core.Options) (Report, error) {
	if t == nil {
		return Report{}, errors.New("whatif: Run needs a trace, not nil")
	}
	total := time.Duration(0)
	for i := range t.operations {
		if total += time.Duration(t.operations[i].Run); total > maxTotal {
			return Report{}, fmt.Errorf("whatif: the operations of the trace run for more than %v together: the times of a simulation would overflow", maxTotal)
		}
	}
	s, err := newSimulation(t, o)
	if err != nil {
		return Report{}, err
	}
	s.run()
	return Report{Trace: t, Options: s.opts, Recorded: t.recorded(), Simulated: s.result()}, nil
}

const never = math.MaxInt64

// maxTotal is how long all operations of a trace may run together.
const maxTotal = 100 * 365 * 24 * time.Hour

// operation is an operation in a simulation.
type operation struct {
	sched.Item // the first field: see operationOf
	event      *tape.Event
	started    int64 // 0: has not
	ended      tape.Kind
	away       bool   // has given up its slot until its end
	number     uint64 // among the accepted; 0: is not
}

// operationOf returns the operation that an item is the first field of, or nil.
func operationOf(item *sched.Item) *operation { return (*operation)(unsafe.Pointer(item)) }

// States of an operation.
const (
	waits uint8 = iota
	runs
	over
)

// gateState is what a gate says at one moment.
type gateState struct {
	shut, held     bool
	since, expires int64
}

// places are the numbers of the gates of a rule; -1: none.
type places struct {
	cancel, deferral, trial int
	maxDefer                int64
}

// simulation does what an engine does, by events. What to start, the board decides, and what follows from slots,
// rooms and deferrals is decided where the engine has it decided.
type simulation struct {
	trace      *Trace
	opts       core.Options // resolved
	shift      int64        // from times of the trace to times of the simulation, which begin at 1
	lanes      []uint8      // of the options, by lane of the trace
	classes    []uint8
	rules      [][]places // everywhere, by lane, by class
	gated      bool
	partRuled  bool // a lane or a class has a rule
	board      sched.Board
	arrived    sched.List // accepted, and not on the board: see collect
	parked     bool       // somebody looks when an item is accepted
	slots      sched.Slots
	rooms      []room // by lane, then by class
	operations []operation
	keys       map[uint64]string
	gates      []gateState
	ends       []timer // a heap
	numbers    uint64  // of timers
	accepted   uint64
	alarm      int64
	now        int64
	forced     int
}

// room is the room for a class in a lane.
type room struct {
	sched.Room
	accepted fifo.Queue[*operation] // only with DropOldest: the oldest first
}

// timer is when something happens to an operation.
type timer struct {
	at     int64
	number uint64
	of     *operation
}

func newSimulation(t *Trace, o core.Options) (*simulation, error) {
	resolved, board, err := tape.Resolve(o, t.keyed)
	if err != nil {
		return nil, err
	}
	s := &simulation{trace: t, opts: resolved.(core.Options), board: sched.New(board, 1), alarm: never, parked: true, keys: map[uint64]string{0: ""}}
	o = s.opts
	s.slots = sched.Slots{Limit: o.MaxConcurrency, MaxSuspended: o.MaxSuspended}
	var errs [3]error
	names := func(lanes []core.Lane) (list []string) {
		for _, l := range lanes {
			list = append(list, l.Name)
		}
		return list
	}
	s.lanes, errs[0] = mapped("lane", names(t.Options.Lanes), names(o.Lanes))
	classNames := func(classes []core.Class) []string {
		list := []string{""}
		for _, c := range classes {
			list = append(list, c.Name)
		}
		return list
	}
	s.classes, errs[1] = mapped("class", classNames(t.Options.Classes), classNames(o.Classes))
	errs[2] = s.findGates()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	lanes, classes := max(1, len(o.Lanes)), 1+len(o.Classes)
	s.rooms = make([]room, lanes*classes)
	for i := range s.rooms {
		depth := o.MaxQueued
		if len(o.Lanes) > 0 {
			depth = o.Lanes[i/classes].Depth
		}
		if i%classes > 0 {
			depth = cmp.Or(o.Classes[i%classes-1].Depth, depth)
		}
		s.rooms[i].Limit = uint64(max(0, depth))
	}
	if len(t.operations) > 0 {
		s.shift = 1 - t.operations[0].At
	}
	if len(t.gates) > 0 {
		s.shift = max(s.shift, 1-t.gates[0].At)
	}
	return s, nil
}

// mapped returns the number of each recorded lane or class among those of the options.
func mapped(kind string, recorded, now []string) (numbers []uint8, err error) {
	if kind == "lane" && len(recorded) == 0 { // as of code without lanes
		if i := slices.Index(now, "normal"); i >= 0 {
			return []uint8{uint8(i)}, nil
		}
		return []uint8{uint8(max(0, len(now)-1))}, nil
	}
	for _, name := range recorded {
		i := slices.Index(now, name)
		switch {
		case i >= 0:
		case len(now) == 0 || kind == "class" && len(now) == 1:
			i = 0
		default:
			return nil, fmt.Errorf("whatif: the trace has operations of %s %q, but the options have no such %s", kind, name, kind)
		}
		numbers = append(numbers, uint8(i))
	}
	return numbers, nil
}

// findGates finds the recorded gates with the patterns of the options. The first recorded gate is for pauses.
func (s *simulation) findGates() error {
	patterns := [3]map[string]int{{}, {}, {}} // of CancelOn, DeferOn and TrialOn
	n := 1
	add := func(all ...string) {
		for kind, pattern := range all {
			if _, known := patterns[kind][pattern]; !known {
				patterns[kind][pattern] = n + kind
			}
		}
		n += 3
	}
	was := &s.trace.Options
	add(was.CancelOn, was.DeferOn, "")
	for _, l := range was.Lanes {
		add(l.CancelOn, l.DeferOn, "")
	}
	for _, c := range was.Classes {
		add(c.CancelOn, c.DeferOn, c.TrialOn)
	}
	s.gates = make([]gateState, n)
	var missing error
	find := func(maxDefer int64, all ...string) places {
		numbers := [3]int{-1, -1, -1}
		for kind, pattern := range all {
			if pattern == "" {
				continue
			}
			i, known := patterns[kind][pattern]
			if !known || kind == 1 && s.opts.ResumeOn != was.ResumeOn {
				missing = fmt.Errorf("whatif: a gate of the options is for %q, with ResumeOn %q, but the recorded coordinator had no such gate", pattern, s.opts.ResumeOn)
				continue
			}
			numbers[kind], s.gated = i, true
		}
		return places{numbers[0], numbers[1], numbers[2], maxDefer}
	}
	o := &s.opts
	s.rules = [][]places{{find(int64(o.MaxDefer), o.CancelOn, o.DeferOn)}, nil, {find(0)}}
	for _, l := range o.Lanes {
		s.rules[1] = append(s.rules[1], find(int64(l.MaxDefer), l.CancelOn, l.DeferOn))
	}
	if len(o.Lanes) == 0 {
		s.rules[1] = append(s.rules[1], find(0))
	}
	for _, c := range o.Classes {
		s.rules[2] = append(s.rules[2], find(int64(c.MaxDefer), c.CancelOn, c.DeferOn, c.TrialOn))
	}
	for _, r := range slices.Concat(s.rules[1], s.rules[2]) {
		s.partRuled = s.partRuled || r.cancel >= 0 || r.deferral >= 0
	}
	return missing
}

// rulesOf are the rules for an item.
func (s *simulation) rulesOf(item *sched.Item) [3]*places {
	return [...]*places{&s.rules[0][0], &s.rules[1][item.Lane], &s.rules[2][item.Class]}
}

// shut is the state of a gate now.
func (s *simulation) shut(gate int) (gateState, bool) {
	if gate < 0 {
		return gateState{}, false
	}
	g := s.gates[gate]
	return g, g.shut && s.now < g.expires
}

func (s *simulation) refused(item *sched.Item) bool {
	for _, r := range s.rulesOf(item) {
		if _, shut := s.shut(r.cancel); shut {
			return true
		}
	}
	return false
}

func (s *simulation) defers(item *sched.Item) bool {
	for of := sched.Everywhere; of <= sched.InClass; of++ {
		if s.Deferral(item, of).Holds {
			return true
		}
	}
	return false
}

// Deferral is for the board.
func (s *simulation) Deferral(item *sched.Item, of sched.Place) sched.Deferral {
	r := s.rulesOf(item)[of]
	g, shut := s.shut(r.deferral)
	return sched.Deferral{Holds: shut, Held: g.held, Since: g.since, Expires: g.expires, Most: r.maxDefer}
}

// run lets everything happen, in the order of time. At one moment, operations end, then gates move, then
// operations come.
func (s *simulation) run() {
	s.operations = make([]operation, len(s.trace.operations))
	wakes := false // a gate has moved
	for come, moved := 0, 0; ; {
		arrives, moves, ends := int64(never), int64(never), int64(never)
		if come < len(s.operations) {
			arrives = s.trace.operations[come].At + s.shift
		}
		if moved < len(s.trace.gates) {
			moves = s.trace.gates[moved].At + s.shift
		}
		if len(s.ends) > 0 {
			ends = s.ends[0].at
		}
		s.now = min(arrives, moves, ends, s.alarm)
		switch {
		case s.now == never:
			return
		case s.now == ends:
			s.happen(s.pop().of)
		case s.now == moves && (moves < arrives || before(&s.trace.gates[moved], &s.trace.operations[come])):
			wakes = s.move(&s.trace.gates[moved]) || wakes
			moved++
			if all := s.trace.gates; wakes && (moved == len(all) || all[moved].At+s.shift != moves || all[moved].ID != all[moved-1].ID) {
				wakes = false
				s.wake() // now that all gates have moved that one signal moves
			}
		case s.now == arrives:
			s.arrive(&s.operations[come], &s.trace.operations[come])
			come++
		default:
			s.alarm = never
			s.wake()
		}
	}
}

// before reports whether a gate moved before an operation came, at the same moment.
func before(gate, o *tape.Event) bool {
	return gate.ID < o.ID || gate.ID == o.ID && (o.Kind == tape.Rejected || o.Kind == tape.Refused) && gate.Order < o.Order
}

func (s *simulation) room(o *operation) *room {
	return &s.rooms[int(o.Lane)*(1+len(s.opts.Classes))+int(o.Class)]
}

// arrive is Enqueue.
func (s *simulation) arrive(o *operation, e *tape.Event) {
	o.event, o.Enqueued, o.Value, o.Lane, o.Class = e, s.now, e.Cost, s.lanes[e.Lane], s.classes[e.Class]
	if s.gated && s.refused(&o.Item) {
		s.collect()
		o.State, o.ended = over, tape.Refused
		return
	}
	r := s.room(o)
	if !r.Full() {
		s.accept(o, r)
	} else {
		r.Wait(&o.Item)
		s.board.Push(&o.Item, s.key(e.Key))
		s.start(true)
		if brief := e.Brief || s.opts.DropOldest; brief && o.Flags&sched.Roomless != 0 {
			s.giveUp(o, r)
			s.squeeze(o, r)
		}
	}
	if s.parked {
		s.start(true)
	}
	if o.State == waits && !e.Started && (e.Kind == tape.Cancelled || e.Kind == tape.Rejected && !e.Brief) {
		s.push(s.now+e.Wait, o) // its caller does not wait longer
	}
}

func (s *simulation) key(hash uint64) string {
	text, known := s.keys[hash]
	if !known {
		text = string([]byte{byte(hash), byte(hash >> 8), byte(hash >> 16), byte(hash >> 24), byte(hash >> 32), byte(hash >> 40), byte(hash >> 48), byte(hash >> 56)})
		s.keys[hash] = text
	}
	return text
}

func (s *simulation) accept(o *operation, r *room) {
	r.Accepted++
	s.accepted++
	o.number = s.accepted
	s.arrived.Push(&o.Item)
	if s.opts.DropOldest {
		*r.accepted.Push() = o
	}
}

// collect moves what was accepted to the board. An item that waits for room is there at once. So the moments at which
// an engine collects decide about the turns.
func (s *simulation) collect() {
	arrived := s.arrived
	s.arrived = sched.List{}
	for item := arrived.First(); item != nil; {
		next := item.Next()
		s.board.Push(item, s.key(operationOf(item).event.Key))
		item = next
	}
}

func (s *simulation) giveUp(o *operation, r *room) {
	s.board.Remove(&o.Item, s.now)
	r.End(&o.Item)
}

// squeeze refuses an operation, or drops the oldest one for it.
func (s *simulation) squeeze(o *operation, r *room) {
	if s.opts.DropOldest {
		s.collect()
	}
	for r.accepted.N > 0 {
		oldest := *r.accepted.Get(0)
		r.accepted.Drop()
		if oldest.State == waits {
			s.accept(o, r)
			s.withdraw(oldest, tape.Dropped)
			return
		}
	}
	o.State, o.ended = over, tape.Rejected
}

// withdraw ends an operation that does not start.
func (s *simulation) withdraw(o *operation, as tape.Kind) {
	o.State, o.ended = over, as
	r := s.room(o)
	if o.Flags&sched.Roomless != 0 {
		s.giveUp(o, r)
		return
	}
	s.collect()
	s.board.Remove(&o.Item, s.now)
	s.leave(o, r)
}

// leave gives the room of an operation to others.
func (s *simulation) leave(o *operation, r *room) {
	r.Left++
	r.Known = r.Left
	if o.Flags&sched.Roomless != 0 {
		r.End(&o.Item)
	}
	for item := r.Take(); item != nil; item = r.Take() {
		s.giveUp(operationOf(item), r)
		s.accept(operationOf(item), r)
	}
}

// move is what a gate does. It wakes an engine if it shuts or opens, but not if it stays shut for longer.
func (s *simulation) move(e *tape.Event) (wakes bool) {
	if int(e.Gate) >= len(s.gates) {
		return false
	}
	g := gateState{e.Shut, e.Held, e.Since + s.shift, never}
	if e.Expires != never {
		g.expires = e.Expires + s.shift
	}
	was := s.gates[e.Gate]
	s.gates[e.Gate] = g
	_, s.slots.Paused = s.shut(0)
	for i, c := range s.opts.Classes {
		_, trial := s.shut(s.rules[2][1+i].trial)
		s.board.Try(uint8(1+i), c.Limit, trial, c.Trials)
	}
	return !was.shut || !g.shut || was.expires <= s.now
}

// wake is what an engine does when a gate has moved, and when its alarm rings.
func (s *simulation) wake() {
	if s.refusing() {
		s.collect()
		waiting := s.board.All()
		slices.SortFunc(waiting, func(a, b *sched.Item) int { return cmp.Compare(operationOf(a).number, operationOf(b).number) })
		for _, item := range waiting {
			if (!s.slots.Paused || item.Flags&sched.Roomless != 0) && s.refused(item) {
				s.withdraw(operationOf(item), tape.Refused)
			}
		}
	}
	s.start(true)
}

// refusing reports whether items of some lane or class are refused.
func (s *simulation) refusing() bool {
	for _, rules := range s.rules {
		for i := range rules {
			if _, shut := s.shut(rules[i].cancel); shut {
				return true
			}
		}
	}
	return false
}

// start starts what can start, as workers do. After the end of an operation its worker looks, and after all else one
// that searches: this decides whether an engine looks when the next item is accepted.
func (s *simulation) start(searches bool) {
	for !s.slots.Stopped() {
		item, blocked := s.next()
		if item == nil {
			s.parked = !blocked || !searches && s.parked
			return
		}
		o := operationOf(item)
		r := s.room(o)
		if item.Flags&sched.Roomless != 0 {
			r.Accepted++
		}
		s.board.Start(item, s.now)
		s.leave(o, r)
		o.State, o.started = runs, s.now
		s.slots.Running.Push(item)
		s.push(s.now+o.event.Run-o.event.Away, o)
		if !searches && (!s.parked || s.arrived.Len() == 0) && !s.slots.Full() && s.ask(nil) == nil {
			return
		}
		searches = true
	}
	s.parked = false
}

// ask returns what is next, and sets the alarm.
func (s *simulation) ask(bars *sched.Bars) *sched.Item {
	item := s.board.Next(s.now, bars)
	if item == nil {
		s.alarm = min(s.alarm, s.board.Soonest())
	}
	return item
}

// next returns the item that is to start now, or nil. Blocked says that items which are accepted do not help.
func (s *simulation) next() (item *sched.Item, blocked bool) {
	var bars *sched.Bars
	for {
		s.collect()
		item := s.ask(bars)
		if item == nil {
			return nil, bars != nil && !s.partRuled && !s.board.RatesKeys()
		}
		if !s.gated {
			return item, false
		}
		if s.refused(item) {
			s.withdraw(operationOf(item), tape.Refused)
			continue
		}
		if !s.defers(item) {
			return item, false
		}
		if bars == nil {
			bars = new(sched.Bars)
		}
		next, overdue, again := s.board.Undeferred(item, s, bars, s.now)
		s.alarm = min(s.alarm, again)
		if next != nil {
			if overdue {
				s.forced++
			}
			return next, false
		}
	}
}

// happen is the end of an operation, or of its slot, or of the patience of its caller.
func (s *simulation) happen(o *operation) {
	switch {
	case o.State == over:
	case o.State == waits:
		looks := s.parked || s.partRuled || o.Class > 0 || o.Flags&sched.Roomless != 0 || s.board.RatesKeys()
		if s.withdraw(o, o.event.Kind); looks {
			s.start(true)
		}
	case s.now < o.started+o.event.Run-o.event.Away: // it has started: nobody's patience matters
	case o.event.Away > 0 && !o.away:
		o.away = true
		s.slots.Running.Remove(&o.Item)
		s.slots.Lent++
		s.board.Suspend(&o.Item, s.now)
		s.push(o.started+o.event.Run, o)
		s.start(true)
	case s.now >= o.started+o.event.Run:
		s.collect()
		if o.away {
			s.slots.Lent--
		} else {
			s.slots.Running.Remove(&o.Item)
		}
		if e := o.event; e.Calls != 0 || e.More != 0 {
			s.board.Charge(&o.Item, o.away, meters.Tokens{e.Calls, e.More}, s.now)
		}
		s.board.Finish(&o.Item, o.away, s.now)
		o.State, o.ended = over, tape.Succeeded
		s.start(false)
	}
}

// push sets a timer.
func (s *simulation) push(at int64, of *operation) {
	s.numbers++
	s.ends = append(s.ends, timer{at, s.numbers, of})
	for i := len(s.ends) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.ends[i].before(&s.ends[up]) {
			return
		}
		s.ends[i], s.ends[up] = s.ends[up], s.ends[i]
		i = up
	}
}

func (t *timer) before(other *timer) bool {
	return t.at < other.at || t.at == other.at && t.number < other.number
}

// pop returns the earliest timer.
func (s *simulation) pop() timer {
	first, end := s.ends[0], len(s.ends)-1
	s.ends[0] = s.ends[end]
	s.ends = s.ends[:end]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < end; child++ {
			if s.ends[child].before(&s.ends[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		s.ends[i], s.ends[least] = s.ends[least], s.ends[i]
		i = least
	}
}
