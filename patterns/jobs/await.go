package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// waiting is a run that awaits signals, or its turn to enter the coordinator. Until it is
// released, antechamber.mu guards it.
type waiting struct {
	Run
	id      core.OperationID // ids follow the order of acceptance
	ready   chan struct{}    // closed when the run is released
	before  chan struct{}    // nil until then; closed when the run ahead in its line has entered
	entered chan struct{}    // closed when the run has entered
}

// bucket returns the key of the bucket for this run. Runs that await signals with any key
// are in bucket "".
func (w *waiting) bucket() string {
	if w.job.AwaitSameKey {
		return "=" + w.Signal.Key
	}
	return ""
}

// line has the runs of a lane that are ready. They enter the coordinator one after the other.
type line struct {
	last chan struct{} // closed when the last of them has entered
	runs atomic.Int64
}

// antechamber has the runs that are not in the Runner's coordinator yet. Until it enters that
// coordinator, a run is an operation of the coordinator here.
type antechamber struct {
	*core.Coordinator[*waiting]
	mu      sync.Mutex
	buckets map[string]map[*waiting]bool
}

// await accepts a run that awaits signals, or that must enter behind such runs.
func (r *Runner) await(run Run) error {
	w := &waiting{Run: run, ready: make(chan struct{}), entered: make(chan struct{})}
	w.lacks = slices.Clone(run.job.Await)
	a, err := &r.before, error(nil)
	if w.id, err = a.TryEnqueue(context.Background(), w); err != nil {
		return err
	}
	a.mu.Lock()
	if b := w.bucket(); w.before == nil { // the run was not cancelled
		if a.buckets[b] == nil {
			a.buckets[b] = make(map[*waiting]bool)
		}
		a.buckets[b][w] = true
	}
	a.mu.Unlock() // from now on, arrived finds the run
	present := slices.DeleteFunc(slices.Clone(run.job.Await), func(p string) bool { return !run.present(r.Sink(), p) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(map[*waiting]bool{w: true}, func(p string) bool { return slices.Contains(present, p) })
	return nil
}

// present reports whether the sink now has a signal for a pattern that the run awaits.
func (run *Run) present(sink *signals.Sink, pattern string) bool {
	if !run.job.AwaitSameKey {
		return sink.Has(pattern)
	}
	for s := range sink.Sense(signals.Query{Pattern: pattern, Key: run.Signal.Key}) {
		if s.Key == run.Signal.Key {
			return true
		}
	}
	return false
}

// arrived handles a signal: it releases the runs that await no other signals.
func (a *antechamber) arrived(s signals.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.note(a.buckets[""], s.Matches)
	a.note(a.buckets["="+s.Key], s.Matches)
}

// note removes the matched patterns from the runs. It releases the runs that have no
// pattern left. mu is held.
func (a *antechamber) note(runs map[*waiting]bool, found func(pattern string) bool) {
	var ready []*waiting
	for w := range runs {
		if w.before != nil {
			continue
		}
		if w.lacks = slices.DeleteFunc(w.lacks, found); len(w.lacks) == 0 {
			ready = append(ready, w)
		}
	}
	slices.SortFunc(ready, func(x, y *waiting) int { return cmp.Compare(x.id, y.id) })
	for _, w := range ready {
		a.release(w)
	}
}

// release puts a run at the end of its line, unless it is released already. mu is held.
func (a *antechamber) release(w *waiting) {
	if w.before != nil {
		return
	}
	l, b := w.job.line, a.buckets[w.bucket()]
	delete(b, w)
	if len(b) == 0 {
		delete(a.buckets, w.bucket())
	}
	w.before, l.last = l.last, w.entered
	l.runs.Add(1)
	close(w.ready)
}

// enter is the body of the operations of the antechamber.
func (r *Runner) enter(ctx context.Context, w *waiting) error {
	j, op := w.job, core.OperationFrom(ctx)
	op.SetKey(w.key)
	var until time.Time
	var timeout <-chan time.Time
	if j.AwaitTimeout > 0 {
		until, timeout = time.Now().Add(j.AwaitTimeout), time.After(j.AwaitTimeout)
	}
	arrived := op.WaitsFor(fmt.Sprintf("signals %q", j.Await), until)
	select {
	case <-w.ready:
	case <-timeout:
	case <-ctx.Done():
	}
	arrived()
	r.before.mu.Lock()
	r.before.release(w)
	r.before.mu.Unlock()
	<-w.before
	defer close(w.entered)
	defer j.line.runs.Add(-1)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := j.to.Enqueue(signals.CausedBy(ctx, w.Signal), w.Run)
	if err != nil && ctx.Err() == nil {
		r.reject(w.Run, err)
	}
	return err
}
