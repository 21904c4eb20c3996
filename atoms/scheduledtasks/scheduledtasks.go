package scheduledtasks

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// ErrUnknown is returned for a schedule that is not there.
var ErrUnknown = errors.New("scheduledtasks: there is no such schedule")

// ErrOverlap is returned by RunNow, with [Options.SkipOverlap], while the last task is not finished.
var ErrOverlap = errors.New("scheduledtasks: the last task of the schedule is not finished")

// A Scheduler hands tasks to a [Target] when they are due. Make one with [Load] or [New],
// and close it: until then its timer keeps it alive. All methods are safe for concurrent
// use, from targets and handlers too.
//
// Its [core.Control] is that of the operations that hand tasks over, whose key is the name
// of the schedule. Complete, Drain, Stop and Close end the scheduling and are about these
// operations; what was handed over is the target's. Use core.InOrder to end both.
//
// It owns no goroutine while nothing is due. A timer wakes it when something is due, and
// once a minute, so that it notices when the clock was changed. To look costs nothing for
// schedules that are not due.
type Scheduler struct {
	core.Control
	handovers *core.Coordinator[*firing]
	opts      Options
	target    Target
	path      string // of the file

	mu    sync.Mutex
	plan  plan
	timer *time.Timer
	ended bool

	skipped, missed, scans uint64
}

var _ core.Lifecycle = (*Scheduler)(nil)
var _ core.Schedules = (*Scheduler)(nil)

// Load makes a scheduler of the definitions in a file: see [Parse] and [New].
func Load(path string, target Target, opts Options) (*Scheduler, error) {
	s, err := New(nil, target, opts)
	if err != nil {
		return nil, err
	}
	s.path = path
	if err := s.Reload(context.Background()); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// New makes a scheduler, and reads the last ticks of the schedules from the store, if there
// is one, for a minute at most. There may be no definitions yet: see [Scheduler.Add]. The
// error says what is wrong with definitions and options, or that the store cannot be read.
func New(definitions []Definition, target Target, opts Options) (*Scheduler, error) {
	opts, err := opts.resolved(target)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{opts: opts, target: target, plan: plan{missed: opts.Missed, entries: map[string]*entry{}}}
	s.handovers = core.Must(core.NewKeyedCoordinator(func(f *firing) string { return f.task.Name }, s.hand, core.Options{
		Name: opts.Name, Sink: opts.Sink, Timeout: opts.Timeout,
		MaxConcurrency: math.MaxInt32, MaxQueued: math.MaxInt32, // a schedule hands over one at a time, and has as many as Missed says
		OnDone: func(o core.Snapshot) { s.done(o.Item.(*firing), o.Err) },
	}))
	s.Control = s.handovers.Control
	s.timer = time.AfterFunc(onTime, s.scan)
	s.OnClosed(s.end)
	if err := s.put(context.Background(), definitions, true); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Reload reads the file again that the scheduler was loaded from. A schedule whose
// definition is as before goes on undisturbed. One whose definition has changed keeps its last
// tick, stays paused if it is, and goes on with the next tick from now. Others are added, or
// removed. If there is an error, nothing changes; so it is for a scheduler that New has made.
func (s *Scheduler) Reload(ctx context.Context) error {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("scheduledtasks: %w", err)
	}
	definitions, err := parse(s.path+": ", data)
	if err != nil {
		return err
	}
	return s.put(ctx, definitions, true)
}

// Add adds a schedule, or changes the one of that name as [Scheduler.Reload] does.
func (s *Scheduler) Add(ctx context.Context, definition Definition) error {
	return s.put(ctx, []Definition{definition}, false)
}

// put adds schedules or changes them, and removes others if these are all.
func (s *Scheduler) put(ctx context.Context, definitions []Definition, all bool) error {
	entries, err := compile("", definitions, s.opts.Jitter)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := 0; s.opts.Store != nil && i < len(entries); i++ {
		e := entries[i]
		if e.seen, err = s.opts.Store.LastTick(ctx, e.def.Name); err != nil {
			return fmt.Errorf("scheduledtasks: last tick of %q: %w", e.def.Name, err)
		}
		e.last = e.seen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return fmt.Errorf("scheduledtasks: %w", core.ErrClosed)
	}
	known := s.plan.entries
	if all {
		s.plan.entries = map[string]*entry{}
	}
	for _, e := range entries {
		s.plan.put(known[e.def.Name], e, now())
	}
	s.arm(true)
	return nil
}

// Remove removes a schedule, and reports whether it was there. A task that is being handed
// over is not taken back.
func (s *Scheduler) Remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.plan.entries[name]
	delete(s.plan.entries, name)
	s.arm(true)
	return there
}

// Pause pauses the schedules whose names match the pattern, "*" for all, and returns how
// many were not paused before. Ticks that come meanwhile are neither run nor missed. It
// lasts until Resume, not across restarts.
func (s *Scheduler) Pause(pattern string) int { return s.setPaused(pattern, true) }

// Resume lets paused schedules go on with their next tick from now, and returns how many.
func (s *Scheduler) Resume(pattern string) int { return s.setPaused(pattern, false) }

func (s *Scheduler) setPaused(pattern string, paused bool) (changed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.plan.entries {
		if e.paused != paused && core.Match(pattern, name) {
			e.paused = paused
			e.skip(now())
			changed++
		}
	}
	s.arm(true)
	return changed
}

// RunNow hands over a task of the schedule now, paused or not, and returns the error of
// that. Its ScheduledAt is the present time. The ticks of the schedule stay as they are.
func (s *Scheduler) RunNow(ctx context.Context, name string) error {
	s.mu.Lock()
	e := s.plan.entries[name]
	if e == nil {
		s.mu.Unlock()
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	f := e.firing(now())
	s.mu.Unlock()
	f.manual = true
	return s.handovers.Do(ctx, f)
}

// A Schedule shows a schedule.
type Schedule struct {
	Definition Definition `json:"definition"`
	Last       time.Time  `json:"last,omitzero"` // the newest tick that was handed over, and marked
	Next       time.Time  `json:"next,omitzero"` // the next tick, paused or not
	Paused     bool       `json:"paused"`
}

// Schedules lists the schedules by name.
func (s *Scheduler) Schedules() []Schedule {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Schedule{}
	for _, name := range slices.Sorted(maps.Keys(s.plan.entries)) {
		e := s.plan.entries[name]
		all = append(all, Schedule{e.def, e.last, e.next, e.paused})
	}
	return all
}

// Status lists the schedules by name, for a status page: When is the cron expression, with the
// time zone behind it if there is one.
func (s *Scheduler) Status() (all []core.ScheduleStatus) {
	for _, x := range s.Schedules() {
		when := strings.TrimSpace(x.Definition.Cron + " " + x.Definition.TimeZone)
		all = append(all, core.ScheduleStatus{Name: x.Definition.Name, When: when, Last: x.Last, Next: x.Next, Paused: x.Paused})
	}
	return all
}

// Preview walks the next n tasks of all schedules that are not paused, with ticks after the
// given time, in their order. It shows what the definitions say: a tick may be missed or
// skipped all the same.
func (s *Scheduler) Preview(after time.Time, n int) iter.Seq[Task] {
	return func(yield func(Task) bool) {
		p := plan{entries: map[string]*entry{}}
		s.mu.Lock()
		for name, e := range s.plan.entries {
			p.entries[name] = &entry{def: e.def, spec: e.spec, paused: e.paused, next: e.spec.next(after)}
		}
		s.mu.Unlock()
		for p.requeue(); n > 0 && len(p.queue) > 0; n-- {
			e := heap.Pop(&p.queue).(*entry)
			if !yield(e.firing(e.next).task) {
				return
			}
			e.skip(e.next)
			p.push(e)
		}
	}
}

// Stats are the counters of a scheduler. Those of core.Stats are about the operations that
// hand tasks over, one for each tick that is run, and for each RunNow. They are read at one
// moment, at which
//
//	Enqueued = Pending + Running + Suspended + Succeeded + Failed + Cancelled
//
// Succeeded tasks were handed over, and their ticks are marked. Each tick that has come is
// in Enqueued, Rejected or Missed, unless its schedule was paused.
type Stats struct {
	core.Stats
	Schedules int    `json:"schedules"`
	Skipped   uint64 `json:"skipped"` // of Failed: the last task of the schedule was not finished
	Missed    uint64 `json:"missed"`  // ticks that were noticed too late and are not run; of more than 10,000 at once, 10,000 are counted
	Scans     uint64 `json:"scans"`   // how often the scheduler has looked for ticks
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{s.Control.Stats(), len(s.plan.entries), s.skipped, s.missed, s.scans}
}

// WaitIdle waits until no task is being handed over and, if the target has a method
// WaitIdle, until all that were handed over are finished. The scheduler goes on. When ctx
// ends first it returns its cause. Called by an operation that it would wait for it returns
// [core.ErrWouldDeadlock].
func (s *Scheduler) WaitIdle(ctx context.Context) error {
	err := s.Control.WaitIdle(ctx)
	if t, ok := s.target.(interface{ WaitIdle(context.Context) error }); ok && err == nil {
		err = t.WaitIdle(ctx)
	}
	return err
}

// now is the time of the wall clock, which may be set back.
func now() time.Time { return time.Now().Round(0) }

// arm sets the timer for the next tick. Changed says that schedules have changed. mu is held.
func (s *Scheduler) arm(changed bool) {
	if changed {
		s.plan.requeue()
	}
	if s.ended || len(s.plan.queue) == 0 {
		s.timer.Stop()
		return
	}
	s.timer.Reset(max(0, min(onTime, s.plan.queue[0].due().Sub(now()))))
}

// end stops the scheduling.
func (s *Scheduler) end() {
	s.mu.Lock()
	s.ended = true
	s.plan.queue = nil
	s.arm(false)
	s.mu.Unlock()
}

// scan hands over what is due. It does not wait for that.
func (s *Scheduler) scan() {
	s.mu.Lock()
	due, late := s.plan.step(now())
	s.scans++
	for _, m := range late {
		s.missed += uint64(m.Count - m.Run)
	}
	s.arm(false)
	s.mu.Unlock()

	for _, m := range late {
		Missed.Raise(s.Sink(), m.Name, m)
	}
	for _, f := range due {
		if _, err := s.handovers.TryEnqueue(context.Background(), f); err != nil { // it is closed
			s.end()
			s.done(f, err)
		}
	}
}

// hand hands a task over; of each schedule, one at a time. Only then it marks the tick, so a
// crash in between makes the task be handed over again rather than lost.
func (s *Scheduler) hand(ctx context.Context, f *firing) error {
	if s.opts.SkipOverlap {
		if o, ok := s.target.(tracker).Lookup(f.entry.task); ok && o.Status&core.StatusAlive != 0 {
			return ErrOverlap
		}
	}
	id, err := s.target.Enqueue(ctx, f.task)
	if err != nil {
		return err
	}
	f.entry.task = id
	Fired.Raise(s.Sink(), f.task.Name, f.task)
	if f.manual || s.opts.Store == nil {
		return nil
	}
	return s.opts.Store.MarkTick(ctx, f.task.Name, f.task.ScheduledAt)
}

// done is called when a firing has ended.
func (s *Scheduler) done(f *firing, err error) {
	skipped := errors.Is(err, ErrOverlap)
	s.mu.Lock()
	if skipped {
		s.skipped++
	}
	if !f.manual {
		s.plan.done(f, err == nil)
		s.arm(false)
	}
	s.mu.Unlock()
	if skipped {
		Skipped.Raise(s.Sink(), f.task.Name, f.task)
	} else if err != nil {
		Failed.Raise(s.Sink(), f.task.Name, Failure{f.task, err})
	}
}
