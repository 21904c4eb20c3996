package scheduledtasks

import (
	"bytes"
	"container/heap"
	"fmt"
	"hash/fnv"
	"reflect"
	"time"
)

// onTime is how late a tick may be noticed that is not missed. The scheduler looks for ticks
// at least as often.
const onTime = time.Minute

// maxCounted is how many missed ticks are counted at once.
const maxCounted = 10000

// entry is a schedule.
type entry struct {
	def     Definition
	spec    *spec
	offset  time.Duration // from a tick to when it is due
	next    time.Time     // the next tick; zero: never
	seen    time.Time     // the newest tick that came due; never goes back
	startup bool          // the newest tick that is due is run, however old it is
	paused  bool
	busy    int       // firings that step has returned and done not; it waits for them
	last    time.Time // the newest tick that was handed over
}

// firing is a task that is to be handed over.
type firing struct {
	task   Task
	entry  *entry
	manual bool // by RunNow
}

func (e *entry) due() time.Time { return e.next.Add(e.offset) }

func (e *entry) firing(tick time.Time) *firing {
	d := e.def
	return &firing{task: Task{d.Name, d.Signal, d.Key, d.Payload, d.Description, tick.UTC()}, entry: e}
}

// compile checks definitions and makes entries of them.
func compile(file string, definitions []Definition, jitter time.Duration, needsSignal bool) ([]*entry, error) {
	entries, numbers := []*entry(nil), map[string]int{}
	for i, d := range definitions {
		s, err := d.check(needsSignal)
		if n := numbers[d.Name]; n > 0 {
			err = wrong("name", "%q is the name of entry %d", d.Name, n)
		}
		if err != nil {
			return nil, fmt.Errorf("scheduledtasks: %sentry %d, %w", file, i+1, err)
		}
		h := fnv.New64a()
		h.Write([]byte(d.Name))
		d.Payload, numbers[d.Name] = bytes.Clone(d.Payload), i+1
		entries = append(entries, &entry{def: d, spec: s, offset: time.Duration(h.Sum64() % uint64(max(1, jitter)))})
	}
	return entries, nil
}

// plan decides which ticks are due. It has no goroutine, lock and clock. The ticks of a
// schedule that it returns are strictly ascending, whatever times it is given.
type plan struct {
	missed  int // [Options.Missed]
	entries map[string]*entry
	queue   queue // the schedules that wait for a tick, the next first
}

// put adds a schedule. If it was known, it goes on, with the new definition if that is
// different.
func (p *plan) put(known, e *entry, now time.Time) {
	if known == nil {
		known = e
		e.begin(now)
	} else if !reflect.DeepEqual(known.def, e.def) {
		known.def, known.spec = e.def, e.spec
		known.skip(now)
	}
	p.entries[e.def.Name] = known
}

// begin finds the first tick of a new schedule, after the one that the store remembers.
func (e *entry) begin(now time.Time) {
	if e.skip(now); !e.seen.IsZero() {
		e.next = e.spec.next(e.seen)
	}
	if e.def.RunOnStartup {
		newest := e.spec.newest(e.seen, now)
		if e.startup = !newest.IsZero(); e.startup && e.seen.IsZero() {
			e.next = newest
		}
	}
}

// skip goes on with the first tick after now.
func (e *entry) skip(now time.Time) { e.next = e.spec.next(later(now, e.seen)) }

// requeue makes the queue again, after schedules have changed.
func (p *plan) requeue() {
	p.queue = p.queue[:0]
	for _, e := range p.entries {
		p.push(e)
	}
}

// push puts an entry that is not in the queue into it, if it waits for a tick.
func (p *plan) push(e *entry) {
	if p.entries[e.def.Name] == e && !e.paused && !e.next.IsZero() && e.busy == 0 {
		heap.Push(&p.queue, e)
	}
}

// step returns what is due now. The schedules of the firings wait until done is called for
// each of them, so one that is handed over slowly has missed ticks rather than a queue.
func (p *plan) step(now time.Time) (due []*firing, late []MissedTicks) {
	for len(p.queue) > 0 && !p.queue[0].due().After(now) {
		e := heap.Pop(&p.queue).(*entry)
		ticks, missed := e.take(now.Add(-e.offset), p.missed)
		for _, tick := range ticks {
			due = append(due, e.firing(tick))
			e.busy++
		}
		if missed.Count > 0 {
			missed.Reason = fmt.Sprintf("the first of them was noticed %v late", now.Sub(missed.First.Add(e.offset)))
			late = append(late, missed)
		}
		p.push(e)
	}
	return due, late
}

// done says that a firing of step has ended, and whether it was handed over.
func (p *plan) done(f *firing, handed bool) {
	if handed {
		f.entry.last = f.task.ScheduledAt
	}
	if f.entry.busy--; f.entry.busy == 0 {
		p.push(f.entry)
	}
}

// take returns the ticks up to now that are run, and goes on to the next one. Of several
// ticks only the newest can be in time.
func (e *entry) take(now time.Time, run int) (ticks []time.Time, missed MissedTicks) {
	first, count, inTime := e.next, 1, 0
	e.seen, e.next = first, e.spec.next(first)
	if !e.next.IsZero() && !e.next.After(now) {
		e.seen = e.spec.newest(first, now)
		e.next = e.spec.next(e.seen)
		for t := first; t.Before(e.seen) && count < maxCounted; count++ {
			t = e.spec.next(t)
		}
	}
	if e.startup || now.Sub(e.seen) <= onTime {
		inTime, e.startup = 1, false
	}
	ticks = make([]time.Time, min(count, max(run, inTime)))
	for i, t := len(ticks)-1, e.seen; i >= 0; i-- {
		ticks[i], t = t, e.spec.newest(first.Add(-time.Second), t.Add(-time.Second))
	}
	return ticks, MissedTicks{Name: e.def.Name, First: first, Count: count - inTime, Run: len(ticks) - inTime}
}

// queue is a heap of entries by when they are due.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due().Before(q[j].due()) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(e any)        { *q = append(*q, e.(*entry)) }
func (q *queue) Pop() any          { e := (*q)[len(*q)-1]; *q = (*q)[:len(*q)-1]; return e }
