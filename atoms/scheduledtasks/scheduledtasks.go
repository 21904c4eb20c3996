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
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ErrUnknown is returned if the scheduler has no schedule of that name.
var ErrUnknown = errors.New("scheduledtasks: there is no such schedule")

// ErrOverlap is returned by [Scheduler.RunNow], with [SkipOverlap], while the last task
// of the schedule is not finished. If a [TargetFunc] returns it, the tick is skipped.
var ErrOverlap = errors.New("scheduledtasks: the last task of the schedule is not finished")

// A Scheduler hands tasks to a [Target] when they are due. Make one with [Load] or [New],
// and close it: until then its timer keeps it alive. All methods are safe for concurrent
// use, from targets and handlers too.
//
// Each hand-over is an operation. Its key is the name of the schedule. The [core.Control] of
// the scheduler controls these operations only; Complete, Drain, Stop and Close also end the
// scheduling. Tasks that were handed over belong to the target. Use core.InOrder to end both.
//
// A scheduler owns no goroutine while nothing is due. Its timer fires when a tick is due, and
// at least once a minute, to notice changes of the clock.
type Scheduler struct {
	core.Control
	handovers *core.Coordinator[*firing]
	opts      Options
	target    Target
	signals   bool   // each definition must have a Signal
	path      string // file that was given to Load

	mu     sync.Mutex
	plan   plan
	handed map[core.OperationID]*firing // tasks in the window of the target, by id; nil if it does not tell when they leave
	tasks  map[string]core.OperationID  // if the target is a tracker: the newest task of each schedule by name; removed schedules stay until their task is finished
	timer  *time.Timer
	ended  bool

	skipped, missed, scans uint64
}

var _ core.Lifecycle = (*Scheduler)(nil)
var _ inspect.Schedules = (*Scheduler)(nil)
var _ inspect.Firings = (*Scheduler)(nil)

// Load makes a scheduler of the definitions in a file: see [Parse] and [New].
//
//ephemeral:raises *
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

// New makes a scheduler. With [Options.Store], it reads the last ticks of the schedules, for a
// minute at most. Definitions may be empty: see [Scheduler.Add]. New returns an error if a
// definition or an option is wrong, or if the store cannot be read.
func New(definitions []Definition, target Target, opts Options) (*Scheduler, error) {
	opts, err := opts.resolved(target)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{opts: opts, target: target, plan: plan{entries: map[string]*entry{}}, tasks: map[string]core.OperationID{}}
	s.handovers = core.Must(core.NewKeyedCoordinator(func(f *firing) string { return f.task.Name }, s.hand, core.Options{
		Name: opts.Name, Sink: opts.Sink,
		MaxConcurrency: math.MaxInt32, MaxQueued: math.MaxInt32, // a schedule hands over one task at a time; at most Options.Missed wait
		OnDone: func(o core.Snapshot) { s.done(o.Item.(*firing), o.Err) },
	}))
	s.Control = s.handovers.Control
	_, calls := target.(TargetFunc)
	s.signals, s.timer = !calls, time.AfterFunc(onTime, s.scan)
	s.OnClosed(s.end)
	if t, ok := target.(interface {
		OnFinalized(func(core.Snapshot)) func()
	}); ok {
		s.handed = map[core.OperationID]*firing{}
		s.OnClosed(t.OnFinalized(s.finalized))
	}
	if err := s.put(context.Background(), definitions, true); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Reload reads the file of [Load] again. If a definition is unchanged, its schedule goes on
// undisturbed. If a definition has changed, its schedule keeps its last tick, stays paused if
// it was paused, and goes on with its next tick from now. Other schedules are added or
// removed. After an error, nothing has changed. For a scheduler that New has made, Reload
// returns an error.
func (s *Scheduler) Reload(ctx context.Context) error {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return fmt.Errorf("scheduledtasks: %w", err)
	}
	definitions, err := parse(s.path+": ", data, s.signals)
	if err != nil {
		return err
	}
	return s.put(ctx, definitions, true)
}

// Add adds a schedule. If there is a schedule of that name, Add changes it, like
// [Scheduler.Reload].
func (s *Scheduler) Add(ctx context.Context, definition Definition) error {
	return s.put(ctx, []Definition{definition}, false)
}

// put adds or changes schedules. If all is true, it removes the other schedules.
func (s *Scheduler) put(ctx context.Context, definitions []Definition, all bool) error {
	entries, err := compile("", definitions, s.opts, s.signals)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := e.opts.Overlap.check(s.target, fmt.Sprintf("schedule %q: ", e.def.Name)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := 0; s.opts.Store != nil && i < len(entries); i++ {
		if err := s.recall(ctx, entries[i]); err != nil {
			return fmt.Errorf("scheduledtasks: last tick of %q: %w", entries[i].def.Name, err)
		}
	}
	defer s.forget()
	var stalled []StalledSchedule
	defer func() { s.tellStalled(stalled) }()
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
		s.plan.latest = later(s.plan.latest, e.seen)
	}
	stalled = s.plan.stalled(now())
	s.arm(true)
	return nil
}

// recall reads what the store knows of a schedule. Beside the last tick, the store has since when the cron is in force, under two
// names; the second one has the cron. If the two times differ, the schedule had another cron since then, or it was paused.
func (s *Scheduler) recall(ctx context.Context, e *entry) error {
	var times [3]time.Time
	for i, name := range e.def.stored() {
		var err error
		if times[i], err = s.opts.Store.LastTick(ctx, name); err != nil {
			return err
		}
	}
	e.seen, e.last, e.since = times[0], times[0], times[1]
	s.mu.Lock()
	known := s.plan.entries[e.def.Name]
	paused := known != nil && known.paused
	s.mu.Unlock()
	switch {
	case paused || !e.since.IsZero() && e.since.Equal(times[2]):
		return nil
	case e.since.IsZero() && !e.seen.IsZero(): // an older program has stored the tick
		return s.store(ctx, e.def, e.seen.Truncate(time.Second), true)
	}
	e.since = e.another(now())
	return s.store(ctx, e.def, e.since, true)
}

// store stores since when a schedule is in force, or, for a pause, is not.
func (s *Scheduler) store(ctx context.Context, d Definition, since time.Time, inForce bool) error {
	names := d.stored()
	if inForce { // first: a process that reads between the two does not take an older time of the schedule for another cron
		if err := s.opts.Store.ResetTick(ctx, names[2], since); err != nil {
			return err
		}
	}
	return s.opts.Store.ResetTick(ctx, names[1], since)
}

// Remove removes a schedule, and reports whether there was one. A hand-over that has begun
// goes on.
func (s *Scheduler) Remove(name string) bool {
	defer s.forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.plan.entries[name]
	delete(s.plan.entries, name)
	s.arm(true)
	return there
}

// forget forgets the finished tasks of removed schedules.
func (s *Scheduler) forget() {
	s.mu.Lock()
	removed := maps.Clone(s.tasks)
	maps.DeleteFunc(removed, func(name string, _ core.OperationID) bool { return s.plan.entries[name] != nil })
	s.mu.Unlock()
	for name, id := range removed {
		if s.unfinished(id) {
			delete(removed, name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.tasks, func(name string, id core.OperationID) bool { return removed[name] == id })
}

// unfinished reports whether a task is pending or runs in the target, which is a tracker.
func (s *Scheduler) unfinished(id core.OperationID) bool {
	o, ok := s.target.(tracker).Lookup(id)
	return ok && o.Status&core.StatusAlive != 0
}

// Pause pauses the schedules whose names match the pattern, "*" for all. It returns how many
// were not paused before. The ticks of a paused schedule are not run and do not count as
// missed, also after a restart. A pause lasts until Resume, or until a restart.
//
// With [Options.Store], Pause and Resume wait for the store, for Options.Timeout at most for each schedule. If that
// fails, they raise [Failed], and a restart may run ticks of the pause as missed ones.
//
//ephemeral:none
func (s *Scheduler) Pause(pattern string) int { return s.setPaused(pattern, true) }

// Resume ends the pause of the schedules whose names match the pattern, and returns how many
// were paused. They go on with their next tick from now.
//
//ephemeral:none
func (s *Scheduler) Resume(pattern string) int { return s.setPaused(pattern, false) }

func (s *Scheduler) setPaused(pattern string, paused bool) int {
	var changed []entry
	s.mu.Lock()
	for name, e := range s.plan.entries {
		if e.paused != paused && signals.Match(pattern, name) {
			e.paused, e.since = paused, e.another(now())
			e.skip(now())
			changed = append(changed, *e)
		}
	}
	s.arm(true)
	s.mu.Unlock()
	for _, e := range changed {
		if s.opts.Store == nil {
			break
		}
		ctx, cancel := e.opts.within(context.Background())
		err := s.store(ctx, e.def, e.since, !paused)
		if cancel(); err != nil {
			Failed.Raise(s.Sink(), e.def.Name, Failure{Task: e.firing(e.since).task, Err: fmt.Errorf("scheduledtasks: store the pause of %q: %w", e.def.Name, err)})
		}
	}
	return len(changed)
}

// RunNow hands over a task of the schedule now, even if the schedule is paused. It waits until
// the target has accepted the task, and returns an error if it has not. ScheduledAt of the task
// is the present time. The ticks of the schedule do not change.
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

// Reset lets a schedule go on with its next tick from now, as if its last tick were now;
// [Options.Store] is changed, too. Use it if the last tick is in the future because the clock was
// wrong; see [Stalled]. Other processes that run the schedule have to call it, too, or to be
// restarted.
func (s *Scheduler) Reset(ctx context.Context, name string) error {
	s.mu.Lock()
	_, there := s.plan.entries[name]
	s.mu.Unlock()
	if !there {
		return fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	to := now()
	if s.opts.Store != nil {
		if err := s.opts.Store.ResetTick(ctx, name, to); err != nil {
			return fmt.Errorf("scheduledtasks: reset the last tick of %q: %w", name, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.plan.entries[name]; e != nil {
		e.seen, e.last, e.stalled = to, time.Time{}, false
		e.skip(to)
	}
	s.arm(true)
	return nil
}

// Explain says in one line what a schedule waits for.
func (s *Scheduler) Explain(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.plan.entries[name]
	if e == nil {
		return "", fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	return e.why(now()), nil
}

// A Schedule is the state of a schedule.
type Schedule struct {
	Definition Definition `json:"definition"`
	Last       time.Time  `json:"last,omitzero"` // the newest tick whose task was handed over; with a store, the tick is marked
	Next       time.Time  `json:"next,omitzero"` // the next tick, even if the schedule is paused; or a tick whose hand-over is tried again
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

// Status lists the schedules by name, for a status page. When is the cron expression, followed
// by the time zone if the definition has one.
func (s *Scheduler) Status() (all []inspect.ScheduleStatus) {
	for _, x := range s.Schedules() {
		when := strings.TrimSpace(x.Definition.Cron + " " + x.Definition.TimeZone)
		all = append(all, inspect.ScheduleStatus{Name: x.Definition.Name, When: when, Last: x.Last, Next: x.Next, Paused: x.Paused, Description: x.Definition.Description})
	}
	return all
}

// Preview walks the next n tasks of all schedules that are not paused, in the order of their
// ticks, from the first tick after the given time. It looks at the definitions only: a tick
// that it shows may still be missed or skipped.
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

// Stats are the counters of a scheduler. The counters of core.Stats count hand-overs: one for
// each try of a tick, and one for each RunNow. They are read at one moment, at which
//
//	Enqueued = Pending + Running + Suspended + Succeeded + Failed + Cancelled
//
// Succeeded counts tasks that were handed over and whose tick is marked. Each tick that came while its
// schedule was not paused is counted once: in Enqueued, in Missed, or, if the scheduler was closed, in
// Rejected (of core.Stats). A tick whose hand-over failed is counted again when it is tried again, or
// is missed.
type Stats struct {
	core.Stats
	Schedules int    `json:"schedules"`
	Skipped   uint64 `json:"skipped"` // part of Failed: the last task of the schedule was not finished
	Missed    uint64 `json:"missed"`  // ticks that were noticed too late and are not run; each event of missed ticks adds at most 10,000
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// Stats returns the counters.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{s.Control.Stats(), len(s.plan.entries), s.skipped, s.missed}
}

// WaitIdle waits until no task is being handed over. If the target has a method WaitIdle, such
// as a coordinator, it then waits until the target is idle. The scheduler goes on meanwhile.
// If ctx ends first, WaitIdle returns the cause. If it is called by an operation that it would
// wait for, it returns [core.ErrWouldDeadlock].
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

// scan starts the hand-overs of the tasks that are due. It does not wait for them.
func (s *Scheduler) scan() {
	s.mu.Lock()
	at := now()
	stalled := s.plan.stalled(at)
	due, late := s.plan.step(at)
	s.scans++
	for _, m := range late {
		s.missed += uint64(m.Count - m.Run)
		s.plan.entries[m.Name].keepMissed(m)
	}
	s.arm(false)
	s.mu.Unlock()

	s.tellStalled(stalled)
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

func (s *Scheduler) tellStalled(all []StalledSchedule) {
	for _, a := range all {
		Stalled.Raise(s.Sink(), a.Name, a)
	}
}

// errPutOff ends a hand-over that is tried again, after an earlier one that failed.
var errPutOff = errors.New("scheduledtasks: an earlier tick of the schedule has to be handed over first")

type permanently interface{ Permanent() bool }

// final reports whether another try of a hand-over would be useless.
func final(err error) bool {
	permanent, _ := guard.Ask(err, permanently.Permanent)
	_, refused := guard.As[*core.RefusedError](err)
	_, panicked := guard.As[*core.PanicError](err)
	return permanent || refused || panicked || guard.Is(err, ErrOverlap) || guard.Is(err, core.ErrClosed) || guard.Is(err, core.ErrCancelled)
}

// hand hands over a task, and then marks its tick. So a crash between the two does not lose
// the task. It runs once at a time for each schedule.
func (s *Scheduler) hand(ctx context.Context, f *firing) error {
	s.mu.Lock()
	last, wait := s.tasks[f.task.Name], !f.manual && f.putOff()
	s.mu.Unlock()
	switch {
	case wait:
		return errPutOff
	case f.opts.Overlap == SkipOverlap && s.unfinished(last):
		return ErrOverlap
	}
	ctx, cancel := f.opts.within(ctx)
	defer cancel()
	id, err := s.target.Enqueue(ctx, f.task)
	if err != nil {
		if text := guard.Text(err); !f.manual && !final(err) {
			s.mu.Lock()
			f.fail(text)
			s.mu.Unlock()
		}
		return err
	}
	s.mu.Lock()
	if _, tracks := s.target.(tracker); tracks { // also without SkipOverlap, which may be set while the task runs
		s.tasks[f.task.Name] = id
	}
	if f.id, f.state = id, handedOver; s.handed != nil {
		s.handed[id] = f
	}
	s.mu.Unlock()
	Fired.Raise(s.Sink(), f.task.Name, f.task)
	if f.manual || s.opts.Store == nil {
		return nil
	}
	return s.opts.Store.MarkTick(ctx, f.task.Name, f.task.ScheduledAt)
}

// done is called when a firing has ended.
func (s *Scheduler) done(f *firing, err error) {
	text, skipped, putOff, again := guard.Text(err), guard.Is(err, ErrOverlap), guard.Is(err, errPutOff), false
	s.mu.Lock()
	if err != nil {
		f.state, f.err = "failed", text
	}
	if skipped {
		f.state = "skipped"
		s.skipped++
	}
	if !putOff { // else it waits for an earlier one
		f.entry.keep(f)
	}
	if !f.manual {
		again = err != nil && f.putOff() && !s.ended
		s.plan.done(f, err == nil, now())
		s.arm(false)
	}
	s.mu.Unlock()
	switch {
	case skipped:
		Skipped.Raise(s.Sink(), f.task.Name, f.task)
	case err != nil && !putOff:
		Failed.Raise(s.Sink(), f.task.Name, Failure{f.task, again, err})
	}
}
