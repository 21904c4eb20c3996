package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// condition is what a job awaits: a signal that matches a pattern.
type condition struct {
	pattern string
	sameKey bool // as that which set off the run
}

// awaited is a condition with the runs that await it.
type awaited struct {
	condition
	byKey map[string][]*wait // guarded by Runner.mu; without sameKey, all are under ""
}

// wait is a run that has been accepted and is not in the coordinator yet. Guarded by Runner.mu.
type wait struct {
	run      Run
	number   uint64 // in the order of acceptance
	since    time.Time
	missing  []*awaited
	timer    *time.Timer // nil: no timeout
	entering bool
	entered  chan struct{} // closed when it is in the coordinator, or cancelled
}

// line is the runs of a lane that are about to enter the coordinator, in order. It is empty
// unless runs have just got their signals, or wait for room. Guarded by Runner.mu.
type line struct {
	queue   []entry
	pumped  bool // a goroutine lets them in
	blocked bool // it waits for room
	busy    atomic.Bool
}

type entry struct {
	run  Run
	wait *wait // nil: it did not await anything
}

var errAwaitFull = fmt.Errorf("jobs: as many runs as Options.MaxSuspended await signals: %w", core.ErrFull)

// An Awaiting is a run that awaits signals.
type Awaiting struct {
	Run     Run
	Since   time.Time
	Until   time.Time // when it fails; zero: there is no timeout
	Missing []string  // patterns; none: it waits for room in the queue
}

// Awaiting walks the runs that await signals, in the order in which they were accepted, as of
// the start of the loop.
func (r *Runner) Awaiting() iter.Seq[Awaiting] {
	return func(yield func(Awaiting) bool) {
		r.mu.Lock()
		var all []Awaiting
		for _, w := range r.inOrder() {
			a := Awaiting{Run: w.run, Since: w.since, Missing: w.patterns()}
			if w.timer != nil {
				a.Until = w.since.Add(w.run.job.AwaitTimeout)
			}
			all = append(all, a)
		}
		r.mu.Unlock()
		slices.Values(all)(yield)
	}
}

// inOrder lists the runs that wait. mu is held.
func (r *Runner) inOrder() []*wait {
	return slices.SortedFunc(maps.Keys(r.waiting), byNumber)
}

func byNumber(a, b *wait) int { return cmp.Compare(a.number, b.number) }

func (w *wait) patterns() (patterns []string) {
	for _, a := range w.missing {
		patterns = append(patterns, a.pattern)
	}
	return patterns
}

// await accepts a run that awaits signals.
func (r *Runner) await(run Run) {
	j := run.job
	r.mu.Lock()
	if len(r.waiting) >= r.capacity {
		r.mu.Unlock()
		r.reject(run, errAwaitFull)
		return
	}
	r.number++
	w := &wait{run: run, number: r.number, since: time.Now(), missing: slices.Clone(j.awaits), entered: make(chan struct{})}
	r.waiting[w] = struct{}{}
	for _, a := range j.awaits {
		key := a.key(run.Signal.Key)
		a.byKey[key] = append(a.byKey[key], w)
	}
	if j.AwaitTimeout > 0 {
		w.timer = time.AfterFunc(j.AwaitTimeout, func() { r.timedOut(w) })
	}
	r.mu.Unlock()
	for _, a := range j.awaits { // what comes from now on is heard
		if a.present(r.Sink(), run.Signal.Key) {
			r.arrived(a, run.Signal.Key)
		}
	}
}

func (c condition) key(key string) string {
	if c.sameKey {
		return key
	}
	return ""
}

// present reports whether there is a signal now for a run that a signal with this key has set
// off.
func (c condition) present(sink *core.Sink, key string) bool {
	if !c.sameKey {
		return sink.Has(c.pattern)
	}
	for s := range sink.Sense(core.Query{Pattern: c.pattern, Key: key}) {
		if s.Key == key {
			return true
		}
	}
	return false
}

// arrived lets the runs go on that await nothing but a signal with this key.
func (r *Runner) arrived(a *awaited, key string) {
	key = a.key(key)
	r.mu.Lock()
	waiting := a.byKey[key]
	delete(a.byKey, key)
	var ready []*wait
	for _, w := range waiting {
		if w.missing = slices.DeleteFunc(w.missing, func(other *awaited) bool { return other == a }); len(w.missing) == 0 {
			ready = append(ready, w)
		}
	}
	for _, w := range ready {
		r.ready(w)
	}
	r.mu.Unlock()
	for _, w := range ready {
		r.pump(w.run.job.line, false)
	}
}

// timedOut lets a run go on, to fail.
func (r *Runner) timedOut(w *wait) {
	r.mu.Lock()
	if _, waits := r.waiting[w]; !waits || len(w.missing) == 0 {
		r.mu.Unlock()
		return
	}
	j := w.run.job
	w.run.err = &TimeoutError{Job: j.Name, After: j.AwaitTimeout, Missing: w.patterns()}
	r.forget(w)
	r.ready(w)
	r.mu.Unlock()
	r.pump(j.line, false)
}

// forget lets a run await nothing any more. mu is held.
func (r *Runner) forget(w *wait) {
	for _, a := range w.missing {
		key := a.key(w.run.Signal.Key)
		rest := slices.DeleteFunc(a.byKey[key], func(other *wait) bool { return other == w })
		if a.byKey[key] = rest; len(rest) == 0 {
			delete(a.byKey, key)
		}
	}
	w.missing = nil
}

// ready puts a run that awaits nothing any more into its line. mu is held.
func (r *Runner) ready(w *wait) {
	if w.timer != nil {
		w.timer.Stop()
	}
	l := w.run.job.line
	l.queue = append(l.queue, entry{w.run, w})
	l.busy.Store(true)
}

// queue puts a run that awaits nothing behind those that have got their signals before, unless
// these wait for room.
func (r *Runner) queue(run Run) {
	l := run.job.line
	r.mu.Lock()
	blocked := l.blocked
	if !blocked {
		l.queue = append(l.queue, entry{run: run})
		l.busy.Store(true)
	}
	r.mu.Unlock()
	if blocked {
		r.reject(run, fmt.Errorf("jobs: runs that were accepted before wait for room: %w", core.ErrFull))
		return
	}
	r.pump(l, false)
}

// pump lets the runs of a line enter the coordinator, one after the other, unless another
// goroutine does. If one has to wait for room, a goroutine goes on.
func (r *Runner) pump(l *line, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.pumped && !waits {
		return
	}
	l.pumped = true
	for len(l.queue) > 0 {
		e := l.queue[0]
		if e.wait != nil {
			if _, waiting := r.waiting[e.wait]; !waiting { // it was cancelled
				l.queue = l.queue[1:]
				continue
			}
			e.wait.entering = true
		}
		r.mu.Unlock()
		full := r.enter(e, waits)
		r.mu.Lock()
		if full {
			l.blocked = true
			go r.pump(l, true)
			return
		}
		l.queue = l.queue[1:]
	}
	l.queue, l.pumped, l.blocked = nil, false, false
	l.busy.Store(false)
}

// enter puts a run into the coordinator. It reports true, and does nothing, if it would have to
// wait and must not.
func (r *Runner) enter(e entry, waits bool) (full bool) {
	if e.wait == nil {
		r.admit(e.run)
		return false
	}
	_, err := e.run.job.to.TryEnqueue(e.run.context(), e.run)
	if errors.Is(err, core.ErrFull) {
		if !waits {
			return true
		}
		_, err = e.run.job.to.Enqueue(e.run.context(), e.run)
	}
	r.mu.Lock()
	r.left(e.wait, err)
	return false
}

// left ends the wait of a run that has entered the coordinator or, if cause is not nil, is
// cancelled. mu is held, and left releases it.
func (r *Runner) left(w *wait, cause error) {
	delete(r.waiting, w)
	last := r.completed && len(r.waiting) == 0
	if cause != nil {
		r.cancelled++
	}
	r.mu.Unlock()
	if last {
		r.Control.Complete()
	}
	if cause != nil && r.told != nil {
		r.told(core.Snapshot{Key: w.run.key, Lane: w.run.job.Lane, Status: core.StatusCancelled, Err: cause, Item: w.run,
			Enqueued: w.since, Finished: time.Now()})
	}
	close(w.entered)
}

// cancelWaiting cancels the runs that await signals.
func (r *Runner) cancelWaiting(cause error) {
	r.mu.Lock()
	all := r.inOrder()
	r.mu.Unlock()
	for _, w := range all {
		r.mu.Lock()
		if _, waits := r.waiting[w]; !waits || w.entering {
			r.mu.Unlock()
			continue
		}
		r.forget(w)
		if w.timer != nil {
			w.timer.Stop()
		}
		r.left(w, cause)
	}
}

// entered waits until all runs that wait now have entered the coordinator.
func (r *Runner) entered(ctx context.Context) error {
	r.mu.Lock()
	all := slices.Collect(maps.Keys(r.waiting))
	r.mu.Unlock()
	for _, w := range all {
		select {
		case <-w.entered:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
