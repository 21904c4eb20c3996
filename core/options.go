package core

import (
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
	// order holds within a lane, and higher lanes overtake. Coordinators without
	// keys do not accept it.
	MaxPerKey int
	// MaxQueued is how many items may wait to run before Enqueue waits and
	// TryEnqueue refuses; 0 means 1024, and for ForEach and Map as many as
	// run at once.
	MaxQueued int
	// DropOldest drops the item that has waited longest, instead of waiting or
	// refusing, when an item comes and the queue is full.
	DropOldest bool

	// Lanes, if there are any, are the classes of items, highest first. When an
	// operation may start, it is one of the highest lane that has one which
	// could; see [Coordinator.Lane] for how items get there. Each lane has a
	// queue of its own, to which MaxQueued and DropOldest apply. There can be
	// 64. ForEach and Map do not accept them.
	Lanes []Lane
	// Ageing keeps lower lanes from starving: while operations wait that could
	// start and have waited for this long, every fourth start is that of the one
	// that has waited longest; with keys, of those whose turn it is in their
	// lanes. 0 means 10 seconds, negative never.
	Ageing time.Duration

	// MaxTracked is how many finished operations the window shows, besides
	// running and pinned ones; 0 means 200, negative none. As many may be
	// pinned.
	MaxTracked int
	// MaxAge is how long the window shows a finished operation; 0 means 5
	// minutes, negative no limit.
	MaxAge time.Duration
	// EchoCapacity and EchoAge bound what is remembered of operations that
	// have left the window; 0 means 256 and 1 minute, negative none.
	EchoCapacity int
	EchoAge      time.Duration

	// Sink is where the operations raise their signals, and where signals of
	// others are heeded; nil means one of its own.
	Sink *Sink
	// CancelOn keeps items from being accepted ([RefusedError]) and from being
	// started (StatusRefused) while a matching signal is present in the window
	// or on the sink. A signal that newer ones have pushed out of the sink
	// still counts, until it is retracted, ages or leaves with its operation;
	// of these the newest 256 are remembered, and any number of held ones.
	CancelOn string
	// DeferOn keeps items waiting while a matching signal is present, as for
	// CancelOn, unless a signal matching ResumeOn is newer.
	DeferOn, ResumeOn string
	// MaxDefer is how long an item is deferred at most, counted from when it
	// was enqueued or the deferral began, whichever is later; then it is run
	// all the same and [SignalForced] is raised. 0 means 5 seconds, negative
	// no limit.
	MaxDefer time.Duration
	// DrainOn ends the intake, like Complete, when a matching signal is raised
	// on the sink that has no key, or a key that, as a pattern, matches Name.
	DrainOn string

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

const (
	defaultMaxQueued    = 1024
	defaultMaxTracked   = 200
	defaultMaxAge       = 5 * time.Minute
	defaultEchoCapacity = 256
	defaultEchoAge      = time.Minute
	defaultMaxDefer     = 5 * time.Second
	defaultAgeing       = 10 * time.Second
	defaultName         = "coordinator"
)

// resolved returns the options with defaults in place of zeroes and 0 in place of
// "none", or says what is wrong with them.
func (o Options) resolved() (Options, error) {
	var errs []error
	atLeast := func(field string, value *int, least, normally int) {
		if *value == 0 {
			*value = normally
		}
		if *value < least {
			errs = append(errs, fmt.Errorf("core: Options.%s is %d, but must not be negative", field, *value))
		}
	}
	orNone := func(value *int, normally int) {
		switch {
		case *value == 0:
			*value = normally
		case *value < 0:
			*value = 0
		}
	}
	spanOrNone := func(value *time.Duration, normally time.Duration) {
		switch {
		case *value == 0:
			*value = normally
		case *value < 0:
			*value = 0
		}
	}
	atLeast("MaxConcurrency", &o.MaxConcurrency, 1, runtime.GOMAXPROCS(0))
	atLeast("MaxPerKey", &o.MaxPerKey, 1, 1)
	atLeast("MaxQueued", &o.MaxQueued, 1, defaultMaxQueued)
	orNone(&o.MaxTracked, defaultMaxTracked)
	spanOrNone(&o.MaxAge, defaultMaxAge)
	orNone(&o.EchoCapacity, defaultEchoCapacity)
	if o.EchoAge < 0 {
		o.EchoCapacity = 0
	}
	spanOrNone(&o.EchoAge, defaultEchoAge)
	if o.MaxDefer < 0 {
		o.MaxDefer = -1
	} else {
		spanOrNone(&o.MaxDefer, defaultMaxDefer)
	}
	if o.Name == "" {
		o.Name = defaultName
	}
	if o.Ageing != 0 && len(o.Lanes) == 0 {
		errs = append(errs, fmt.Errorf("core: Options.Ageing is %v, but there are no lanes that could starve", o.Ageing))
	}
	spanOrNone(&o.Ageing, defaultAgeing)
	errs = append(errs, checkLanes(o.Lanes, "Options.Lanes")...)
	o.Lanes = slices.Clone(o.Lanes)
	defers := o.DeferOn != ""
	for i := range o.Lanes {
		l := &o.Lanes[i]
		defers = defers || l.DeferOn != ""
		if l.Depth == 0 {
			l.Depth = o.MaxQueued
		}
		if l.MaxDefer == 0 {
			l.MaxDefer = o.MaxDefer
		}
	}
	if o.ResumeOn != "" && !defers {
		errs = append(errs, fmt.Errorf("core: Options.ResumeOn is %q, but there is no DeferOn to resume from", o.ResumeOn))
	}
	return o, errors.Join(errs...)
}
