package scheduledtasks

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// onTime is how late a tick may be noticed and still not count as missed. The scheduler
// looks for ticks at least this often.
const onTime = time.Minute

// A hand-over that failed is tried again after a pause, which doubles.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// farAhead: a last tick that is further in the future is reported.
const farAhead = time.Hour

// maxCounted is how many missed ticks are counted at once.
const maxCounted = 10000

// entry is a schedule.
type entry struct {
	def     Definition
	spec    *spec
	opts    Options       // of the scheduler, with those of the definition in their place
	offset  time.Duration // delay from a tick to the time when it is due
	next    time.Time     // the next tick; zero: never
	seen    time.Time     // the newest tick that came due; never goes back
	since   time.Time     // ticks up to then do not count as missed: the schedule had another cron, or was paused
	startup bool          // the newest tick that is due is run, however old it is
	paused  bool
	busy    int       // firings that step has returned and that are not done; the entry waits for them
	last    time.Time // the newest tick that was handed over

	// State of hand-overs that failed and are tried again.
	failed  time.Time // the first tick of the current firings that failed; later ticks are put off
	tries   int       // failures in a row
	err     string    // error of the last failure
	retry   time.Time // not before this time
	round   int       // skip begins a new round; firings of earlier rounds are not tried again
	told    time.Time // the value of seen at the last report of missed ticks, and their number
	toldOf  int
	stalled bool // the last tick is far in the future, and this was reported

	fired []*firing // the last ones, the newest last
}

// firing is a task that is to be handed over.
type firing struct {
	task   Task
	entry  *entry
	opts   Options // of the schedule
	manual bool    // by RunNow

	round   int
	startup bool // it is the newest tick of its step, which is run however old it is

	id    core.OperationID // of the task, once it was handed over
	state string           // what became of it
	err   string
}

func (e *entry) due() time.Time { return later(e.next.Add(e.offset), e.retry) }

func (e *entry) firing(tick time.Time) *firing {
	d := e.def
	return &firing{task: Task{d.Name, d.Signal, d.Key, d.Payload, d.Description, tick.UTC()}, entry: e, opts: e.opts, round: e.round}
}

// within returns a context that ends after Timeout.
func (o Options) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, o.Timeout, core.ErrTimeout)
}

// compile checks definitions and makes entries of them.
func compile(file string, definitions []Definition, opts Options, needsSignal bool) ([]*entry, error) {
	entries, numbers := []*entry(nil), map[string]int{}
	for i, d := range definitions {
		s, err := d.check(needsSignal)
		if n := numbers[d.Name]; n > 0 {
			err = wrong("name", "%q is the name of entry %d", d.Name, n)
		}
		if err != nil {
			return nil, fmt.Errorf("scheduledtasks: %sentry %d, %w", file, i+1, err)
		}
		own := d.options(opts)
		h := fnv.New64a()
		h.Write([]byte(d.Name))
		d.Payload, numbers[d.Name] = bytes.Clone(d.Payload), i+1
		entries = append(entries, &entry{def: d, spec: s, opts: own, offset: time.Duration(h.Sum64() % uint64(max(1, own.Jitter)))})
	}
	return entries, nil
}

// plan decides which ticks are due. It has no goroutine, lock and clock. The ticks of a
// schedule that it returns are strictly ascending, whatever times it is given.
type plan struct {
	latest  time.Time
	entries map[string]*entry
	queue   queue // the schedules that wait for a tick, the next first
}

// put adds a schedule, or changes a known one: it goes on with the new definition.
func (p *plan) put(known, e *entry, now time.Time) {
	if known == nil {
		known = e
		e.begin(now)
	} else if !reflect.DeepEqual(known.def, e.def) {
		known.def, known.spec, known.opts, known.offset = e.def, e.spec, e.opts, e.offset
		known.since = e.since
		known.skip(now)
	}
	p.entries[e.def.Name] = known
}

// begin finds the first tick of a new schedule, after the one that the store remembers.
func (e *entry) begin(now time.Time) {
	if e.skip(now); !e.seen.IsZero() && !e.since.After(now) {
		e.next = e.spec.next(later(e.seen, e.since))
	}
	if e.def.RunOnStartup {
		newest := e.spec.newest(e.seen, now)
		if e.startup = !newest.IsZero(); e.startup && e.next.After(now) {
			e.next = newest
		}
	}
}

// skip goes on with the first tick after now.
func (e *entry) skip(now time.Time) {
	e.next, e.retry, e.failed, e.tries = e.spec.next(later(now, e.seen)), time.Time{}, time.Time{}, 0
	e.round++
}

// another is a time to store in place of since: now, in whole seconds, because a store may round.
func (e *entry) another(now time.Time) time.Time {
	if now = now.UTC().Truncate(time.Second); now.Equal(e.since) {
		now = now.Add(time.Second)
	}
	return now
}

// requeue makes the queue again, after schedules have changed.
func (p *plan) requeue() {
	p.queue = p.queue[:0]
	for _, e := range p.entries {
		p.push(e)
	}
}

// push puts an entry into the queue if it waits for a tick. The entry must not be in the
// queue.
func (p *plan) push(e *entry) {
	if p.entries[e.def.Name] == e && !e.paused && !e.next.IsZero() && e.busy == 0 {
		heap.Push(&p.queue, e)
	}
}

// step returns the firings that are due now. A schedule waits until done was called for each of
// its firings. So with slow hand-overs, a schedule misses ticks and builds up no queue. After a
// failure, step returns only one tick; the others follow it.
func (p *plan) step(now time.Time) (due []*firing, late []MissedTicks) {
	for len(p.queue) > 0 && !p.queue[0].due().After(now) {
		e := heap.Pop(&p.queue).(*entry)
		startup, why := e.startup, fmt.Sprintf("the first of them was noticed %v late", now.Sub(e.next.Add(e.offset)))
		if e.tries > 0 {
			why = fmt.Sprintf("the first of them could not be handed over for %v: %v", now.Sub(e.next.Add(e.offset)), e.err)
		}
		ticks, missed := e.take(now.Add(-e.offset), e.opts.Missed)
		if e.tries > 0 && len(ticks) > 1 {
			ticks, e.next, e.startup = ticks[:1], ticks[1], startup
		}
		for _, tick := range ticks {
			f := e.firing(tick)
			f.startup = startup
			due = append(due, f)
			e.busy++
		}
		if missed.Count > missed.Run || missed.Count > 0 && (!e.told.Equal(e.seen) || missed.Count > e.toldOf) {
			missed.Reason = why
			late = append(late, missed)
			e.told, e.toldOf = e.seen, missed.Count
		}
		p.push(e)
	}
	return due, late
}

// fail says that the hand-over of a firing failed and is to be tried again. It is called before
// done.
func (f *firing) fail(err string) {
	if e := f.entry; f.round == e.round {
		e.failed, e.err = f.task.ScheduledAt, err
	}
}

// putOff reports whether a firing has to wait, because an earlier one of its schedule failed.
func (f *firing) putOff() bool { return f.round == f.entry.round && !f.entry.failed.IsZero() }

// done says that a firing of step has ended, and whether it was handed over.
func (p *plan) done(f *firing, handed bool, now time.Time) {
	e := f.entry
	if handed {
		e.last, e.tries, e.retry = f.task.ScheduledAt, 0, time.Time{}
	}
	if e.busy--; e.busy > 0 {
		return
	}
	if f.putOff() {
		e.next, e.startup, e.failed = e.failed, e.startup || f.startup, time.Time{}
		e.retry = now.Add(min(firstPause<<min(e.tries, 10), maxPause))
		e.tries++
	}
	p.push(e)
}

// stalled returns the schedules that wait for long because their last tick is in the future, each
// once. It looks at all schedules only after the clock was set back.
func (p *plan) stalled(now time.Time) (all []StalledSchedule) {
	if !now.Before(p.latest.Add(-farAhead)) {
		p.latest = later(p.latest, now)
		return nil
	}
	p.latest = now
	for _, name := range slices.Sorted(maps.Keys(p.entries)) {
		if e := p.entries[name]; !e.stalled && e.waits(now) {
			e.stalled = true
			all = append(all, StalledSchedule{name, e.seen, e.next, e.why(now)})
		}
	}
	return all
}

// waits reports whether the last tick is far in the future, so that the schedule cannot run earlier
// ticks.
func (e *entry) waits(now time.Time) bool {
	return e.seen.After(now.Add(farAhead)) && e.spec.next(now).Before(e.next)
}

// why says what the schedule waits for.
func (e *entry) why(now time.Time) string {
	switch at := e.next.UTC().Format(time.RFC3339); {
	case e.paused:
		return "it is paused"
	case e.busy > 0:
		return fmt.Sprintf("%d tasks are being handed over", e.busy)
	case e.next.IsZero():
		return "it has no next tick"
	case e.waits(now):
		return fmt.Sprintf("it waits for %s, because its last tick is %v in the future; Reset lets it go on now", at, e.seen.Sub(now).Round(time.Second))
	case e.tries > 0:
		return fmt.Sprintf("the hand-over of the tick %s failed %d times; the next try is at %s: %v", at, e.tries, e.due().UTC().Format(time.RFC3339), e.err)
	default:
		return "it waits for " + at
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
