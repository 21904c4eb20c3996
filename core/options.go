package core

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Options configure a coordinator. The zero value is the default for every kind
// of work; for numbers and durations 0 is the stated default and, where it says
// so, a negative value means none. Options are copied and may be shared by
// coordinators of different item types. Patterns are as described at [Match].
type Options struct {
	// Name is the Source of the signals its operations raise; "" means
	// "coordinator", or what else the constructor says. It need not be unique.
	Name string
	// MaxConcurrency is how many operations run at once; 0 means
	// runtime.GOMAXPROCS. See SetMaxConcurrency.
	MaxConcurrency int
	// MaxPerKey is how many operations of one key run at once; 0 means 1, by
	// which they run in the order in which they were enqueued; with lanes, that
	// order holds within a lane, and higher lanes overtake. Items whose key is ""
	// have no limit and no order. Coordinators without keys do not accept it.
	MaxPerKey int
	// Timeout is how long an operation may take, from its start, suspended time
	// included; 0 or negative means no limit. Then its context ends with the cause
	// [ErrTimeout], and if its body returns an error it is failed with one that is
	// both ErrTimeout and [context.DeadlineExceeded].
	Timeout time.Duration
	// MaxQueued is how many items may be pending, once all that can start has been
	// started, before Enqueue waits and TryEnqueue refuses; 0 means 1024, and for
	// ForEach and Map as many as run at once; negative means no queue, so that an
	// item is accepted only if it can start at once.
	MaxQueued int
	// MaxSuspended is how many slots [Operation.Suspend] lends to pending items:
	// while more operations are suspended in it, each further one keeps its slot
	// from them, so that the queue fills up while everything waits. Operations that
	// wait for others of the same coordinator do not count. 0 means as many as
	// MaxQueued, negative none.
	MaxSuspended int
	// DropOldest drops the item that has waited longest, instead of waiting or
	// refusing, when an item comes and the queue is full. Without a queue the item
	// is refused.
	DropOldest bool

	// Lanes, if there are any, are the priorities of items, highest first. When an
	// operation may start, it is one of the highest lane that has one which
	// could; see [Coordinator.Lane] for how items get there. Each lane has a
	// queue of its own, to which MaxQueued and DropOldest apply. There can be
	// 64. ForEach and Map do not accept them.
	Lanes []Lane
	// Classes are kinds of items of which only so many may run at once, over all
	// lanes; see [Coordinator.Class] for how items get there. While a class is at its
	// limit, its items wait and keep their turn, and that of their key, and hold up
	// no others. To choose what starts costs a comparison for each class. There can
	// be 64. ForEach and Map do not accept them.
	Classes []Class
	// Ageing keeps lower lanes from starving: while operations wait that could
	// start and have waited for this long, every fourth start is that of the one
	// that has waited longest; with keys, of those whose turn it is in their
	// lanes. 0 means 10 seconds, negative never.
	Ageing time.Duration

	// MaxTracked is how many finished operations the window shows, besides
	// running, failed and pinned ones; 0 means 200, negative none. As many may be
	// pinned.
	MaxTracked int
	// MaxFailed is how many failed operations the window shows, so that others do
	// not push them out; 0 means 200, or none if MaxTracked is negative; negative
	// means none.
	MaxFailed int
	// MaxAge is how long the window shows a finished operation; 0 means 5
	// minutes, negative no limit.
	MaxAge time.Duration
	// EchoCapacity and EchoAge bound what is remembered of operations that
	// have left the window; 0 means 256 and 1 minute, negative none.
	EchoCapacity int
	EchoAge      time.Duration

	// Sink is where the operations raise their signals, and whose signals count for
	// CancelOn, DeferOn, ResumeOn and DrainOn; nil means a sink of its own.
	Sink *Sink
	// CancelOn keeps items from being accepted ([RefusedError]) and from being
	// started (StatusRefused) while a matching signal is present in the window
	// or on the sink. Of those for which the sink's window has no room it keeps
	// the newest 256, until they are retracted, age or leave with their
	// operation: see [Sink].
	CancelOn string
	// DeferOn keeps items waiting while a matching signal is present, as for
	// CancelOn, unless a signal matching ResumeOn is newer.
	DeferOn, ResumeOn string
	// MaxDefer is how long raised signals defer an item at most, counted from when
	// it was enqueued or the first of them came, whichever is later; then it is run
	// all the same and [SignalForced] is raised. While a matching signal is held
	// ([Sink.Hold]) the item waits however long that takes. 0 means 5 seconds,
	// negative no limit.
	MaxDefer time.Duration
	// DrainOn ends the intake, like Complete, when a matching signal is raised
	// on the sink that has no key, or a key that, as a pattern, matches Name.
	DrainOn string

	// OnDone is called once for every operation that ends, also if it was refused,
	// dropped or cancelled before it ran, with what it was and its item, before Wait,
	// Do, Flush, WaitIdle, Drain and Stop return to their callers. It is called
	// on the goroutine that ends the operation, under no lock, for several operations
	// at once; while it blocks, that worker does not run anything else. What would
	// wait for this coordinator in it returns [ErrWouldDeadlock]. A panic is counted
	// in Stats.
	OnDone func(Snapshot)
	// OnSignal is called for every signal that an operation raises, before the
	// sink's subscribers, on the goroutine that raises it; see
	// [Sink.Subscribe]. Lifecycle signals are raised for subscribers of the
	// sink only.
	OnSignal func(Signal)
	// OnRetract is called for every signal that an operation takes back.
	OnRetract func(Retraction)

	// StopOnError lets ForEach and Map stop at the first error. Coordinators
	// do not accept it.
	StopOnError bool
}

// resolved returns the options with defaults in place of zeroes and 0 in place of
// "none", or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	var errs []error
	positive := func(field string, value *int, normally int) {
		if *value = cmp.Or(*value, normally); *value < 1 {
			errs = append(errs, fmt.Errorf("core: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	positive("MaxConcurrency", &o.MaxConcurrency, runtime.GOMAXPROCS(0))
	positive("MaxPerKey", &o.MaxPerKey, 1)
	o.MaxQueued = cmp.Or(o.MaxQueued, 1024)
	orNone(&o.MaxSuspended, max(0, o.MaxQueued))
	if o.MaxFailed == 0 && o.MaxTracked < 0 {
		o.MaxFailed = -1
	}
	orNone(&o.MaxTracked, 200)
	orNone(&o.MaxFailed, 200)
	orNone(&o.MaxAge, 5*time.Minute)
	orNone(&o.EchoCapacity, 256)
	if o.EchoAge < 0 {
		o.EchoCapacity = 0
	}
	orNone(&o.EchoAge, time.Minute)
	o.MaxDefer = max(-1, cmp.Or(o.MaxDefer, 5*time.Second))
	o.Timeout = max(0, o.Timeout)
	o.Name = cmp.Or(o.Name, "coordinator")
	if o.Ageing != 0 && len(o.Lanes) == 0 {
		errs = append(errs, fmt.Errorf("core: Options.Ageing is %v, but there are no lanes that could starve", o.Ageing))
	}
	orNone(&o.Ageing, 10*time.Second)
	errs = append(errs, checkNames("lane", o.Lanes, "Options.Lanes")...)
	errs = append(errs, checkNames("class", o.Classes, "Options.Classes")...)
	o.Lanes, o.Classes = slices.Clone(o.Lanes), slices.Clone(o.Classes)
	defers := o.DeferOn != ""
	for i := range o.Lanes {
		l := &o.Lanes[i]
		defers = defers || l.DeferOn != ""
		if l.MaxDefer != 0 && l.DeferOn == "" {
			errs = append(errs, fmt.Errorf("core: lane %d of Options.Lanes: MaxDefer is %v, but there is no DeferOn that it would bound", i+1, l.MaxDefer))
		}
		l.Depth, l.MaxDefer = cmp.Or(l.Depth, o.MaxQueued), cmp.Or(l.MaxDefer, o.MaxDefer)
	}
	if o.ResumeOn != "" && !defers {
		errs = append(errs, fmt.Errorf("core: Options.ResumeOn is %q, but there is no DeferOn to resume from", o.ResumeOn))
	}
	return o, errors.Join(errs...)
}

// orNone puts the default in place of 0, and 0 in place of a negative value.
func orNone[N int | time.Duration](value *N, normally N) { *value = max(0, cmp.Or(*value, normally)) }
