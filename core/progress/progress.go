package progress

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Reporter]. The zero value reports every step.
type Options struct {
	// Every is how many steps there are to a report: 5 reports each fifth step,
	// and the end. 0 means 1, negative that only the end is reported.
	Every int
	// MinInterval leaves out a report, other than the last, that would come
	// sooner than this after the one before; 0 means none is left out.
	MinInterval time.Duration
}

// A Reporter counts the steps of one piece of work and reports on it. Make one with
// [New] for each run, and call Done at its end, so that its last report says so. It
// owns no goroutine.
//
// All methods are safe for concurrent use. Reports are raised on the goroutine of
// the step that is due to be reported, one at a time, and never go back: while one
// is being delivered to its handlers, those that fall due elsewhere, or in the
// handlers, do not wait, and the newest of them is raised after it. So a slow
// handler slows down one of the goroutines that work, and makes reports rarer.
type Reporter struct {
	on   core.Raiser
	name string

	mu      sync.Mutex
	meter   meter
	due     bool // something is to be reported
	raising bool // by somebody who looks again afterwards
}

// New makes a reporter of something with that name and so many steps, which raises
// its signals on a sink or an operation; with core.OperationFrom(ctx) outside of an
// operation it reports to nobody. A total of 0 means that it is not known.
func New(on core.Raiser, name string, total int64, opts Options) (*Reporter, error) {
	var errs []error
	if sink, ok := on.(*core.Sink); on == nil || ok && sink == nil {
		errs = append(errs, errors.New("progress: the raiser is nil, but reports are signals of a sink or an operation"))
	}
	if name == "" {
		errs = append(errs, errors.New(`progress: the name is "", but reports are told apart by it`))
	}
	if total < 0 {
		errs = append(errs, fmt.Errorf("progress: the total is %d, but must not be negative; 0 means unknown", total))
	}
	if opts.MinInterval < 0 {
		errs = append(errs, fmt.Errorf("progress: Options.MinInterval is %v, but must not be negative", opts.MinInterval))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if opts.Every == 0 {
		opts.Every = 1
	}
	return &Reporter{on: on, name: name, meter: meter{
		every:       opts.Every,
		minInterval: opts.MinInterval,
		report:      Report{Total: total},
	}}, nil
}

// Add says that n more is done: a step. What would go back, or comes after the end,
// is no step and changes nothing; what goes beyond the total ends there.
func (r *Reporter) Add(n int64) {
	r.step(func(now time.Time) bool { return r.meter.add(n, now) })
}

// Set says that n is done in all: a step, as for Add.
func (r *Reporter) Set(n int64) {
	r.step(func(now time.Time) bool { return r.meter.set(n, now) })
}

// Done says that nothing more will come, whether the total was reached or not, and
// reports it. It may be called many times; the end is reported once. That the total
// was reached is the end, too.
func (r *Reporter) Done() {
	r.step(func(time.Time) bool { return r.meter.end() })
}

// Report is how far the work is, reported or not.
func (r *Reporter) Report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meter.report
}

func (r *Reporter) step(step func(now time.Time) (due bool)) {
	r.mu.Lock()
	if step(time.Now()) {
		r.due = true
	}
	r.mu.Unlock()
	for raised := 0; ; raised++ {
		report, ok := r.next(raised)
		if !ok {
			return
		}
		r.raise(report)
	}
}

// enough is how many reports one step raises, its own and those that fall due
// meanwhile, before it leaves the next to the next step. So nobody is kept from its
// work by the steps of others, and a handler that takes a step for every report does
// not go on for ever. The end is not left to anybody.
const enough = 16

// next is what a step that has raised so many reports has to raise, if there is
// something and nobody else is about to.
func (r *Reporter) next(raised int) (Report, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.due || r.raising || raised >= enough && !r.meter.report.Done {
		return Report{}, false
	}
	r.due, r.raising = false, true
	return r.meter.report, true
}

func (r *Reporter) raise(report Report) {
	defer func() { // also when a handler ends the goroutine
		r.mu.Lock()
		defer r.mu.Unlock()
		r.raising = false
	}()
	Reports.Raise(r.on, r.name, report)
}
