package progress

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Reporter]. The zero value reports every step.
type Options struct {
	// Every is the number of steps between reports: 5 reports each fifth step, and the
	// end. 0 means 1; negative means that only the end is reported.
	Every int
	// MinInterval is the least time between two reports. A report that would come sooner is
	// left out, unless it is the last. 0 means no limit.
	MinInterval time.Duration
}

// resolved returns the options with defaults, or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	o.Every = cmp.Or(o.Every, 1)
	return o, check.NotNegative("progress: Options.MinInterval", o.MinInterval)
}

// A Reporter counts the steps of one piece of work and reports on it. Make one with
// [New] for each run, and call Done at its end, so that its last report says so. It
// owns no goroutine.
//
// All methods are safe for concurrent use. Reports are raised one at a time, on the
// goroutine of the due step, and their numbers never go back. A step that is due while
// another goroutine raises a report does not wait; the newest report is raised after it.
// So a slow handler slows down one goroutine at a time, and makes reports rarer.
type Reporter struct {
	on   signals.Raiser
	name string

	mu      sync.Mutex
	meter   meter
	due     bool // a report is to be raised
	raising bool // a goroutine raises a report, and checks due again afterwards
}

// New makes a reporter of work with that name and total. It raises its signals on a sink
// or an operation; with core.OperationFrom(ctx) outside of an operation, it raises no
// signals. A total of 0 means that it is not known.
//
//ephemeral:none
func New(on signals.Raiser, name string, total int64, opts Options) (*Reporter, error) {
	opts, err := opts.resolved()
	err = errors.Join(
		check.Error(on == nil || on == signals.Raiser((*signals.Sink)(nil)),
			"progress: the raiser is nil, but reports are signals of a sink or an operation"),
		check.Error(name == "", `progress: the name is "", but it tells reports apart`),
		check.Error(total < 0, "progress: the total is %d, but must not be negative; 0 means unknown", total),
		err,
	)
	if err != nil {
		return nil, err
	}
	return &Reporter{on: on, name: name, meter: meter{Options: opts, report: Report{Total: total}}}, nil
}

// Add says that n more units are done. Each call is a step. A step that would go back, or
// comes after the end, changes nothing. A step beyond the total ends at the total.
func (r *Reporter) Add(n int64) {
	r.step(func(now time.Time) bool { return r.meter.add(n, now) })
}

// Set says that n units are done in all. Each call is a step, as in Add.
func (r *Reporter) Set(n int64) {
	r.step(func(now time.Time) bool { return r.meter.set(n, now) })
}

// Done says that no more steps will come, whether the total was reached or not, and
// reports it. It may be called many times; the end is reported once. Reaching the total
// is an end, too.
func (r *Reporter) Done() {
	r.step(func(time.Time) bool { return r.meter.end() })
}

// Report returns the present progress, reported or not.
func (r *Reporter) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meter.report
}

func (r *Reporter) step(step func(now time.Time) (due bool)) {
	r.mu.Lock()
	r.due = step(time.Now()) || r.due
	r.mu.Unlock()
	for raised := 0; r.raise(raised); raised++ {
	}
}

// maxRaises is how many reports one step raises, including reports that become due
// meanwhile. The next report is left to the next step. It bounds the work that one
// goroutine does for others, and ends the loop of a handler that takes a step for every
// report. The last report is never left to a later step.
const maxRaises = 16

// raise raises a report if one is due and no other goroutine raises one. Raised is how many
// reports this step has raised already.
func (r *Reporter) raise(raised int) bool {
	r.mu.Lock()
	report := r.meter.report
	if !r.due || r.raising || raised >= maxRaises && !report.Done {
		r.mu.Unlock()
		return false
	}
	r.due, r.raising = false, true
	r.mu.Unlock()
	defer func() { // even when a handler ends the goroutine
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raising = false
	}()
	Reports.Raise(r.on, r.name, report)
	return true
}
