// This file decides what the options mean.

package core

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a coordinator. For numbers and durations, 0 means the stated default.
// Each field says what a negative value means; MaxConcurrency and MaxPerKey must not be
// negative. Options are copied and may be shared by coordinators of different item types.
// [signals.Match] says what patterns mean. The body is the function that the coordinator runs for
// each item.
type Options struct {
	// Name is the Source of the signals that the operations raise; "" means
	// "coordinator", unless the constructor states another default. Names need not be
	// unique.
	//
	//ephemeral:none
	Name string
	// MaxConcurrency is how many operations run at once; 0 means
	// runtime.GOMAXPROCS. See SetMaxConcurrency.
	MaxConcurrency int
	// MaxPerKey is how many operations of one key run at once; 0 means 1. With 1, the
	// items of a key run in the order in which they were enqueued. With lanes, that order
	// holds within a lane, and items of higher lanes overtake. Items whose key is "" have
	// no limit and no order. Coordinators without keys do not accept MaxPerKey.
	MaxPerKey int
	// Timeout is how long an operation may take, from its start, suspended time
	// included; 0 or negative means no limit. When the time is over, its context ends
	// with the cause [ErrTimeout]. If its body then returns an error, the operation is
	// failed, and its error matches both ErrTimeout and [context.DeadlineExceeded]. If the
	// body returns nil, the operation has succeeded.
	Timeout time.Duration
	// StuckAfter is how long a body may run, from its start or from the end of its last
	// [Operation.Suspend]. StuckAfterCancel is how long it may go on after its context has
	// ended, by Cancel, Close or Timeout. After that, the operation is stuck: it raises
	// [SignalStuck] once, with the stack of its body, and Explain and Stats show it. It is not
	// stopped. For the stack, the program stands still while the runtime writes the stacks of
	// all goroutines; some 10,000 of them take tens of milliseconds. 0 or negative means no limit. With
	// either limit, each operation costs a lock and an entry of a map more, and a coordinator that is
	// dropped without Close stays in memory until the limit of its last operation has passed.
	StuckAfter, StuckAfterCancel time.Duration

	// MaxQueued is how many items may be pending before Enqueue waits and TryEnqueue
	// returns [ErrFull]. Items that can start at once do not count. 0 means 1024, and for
	// ForEach and Map as many as run at once. Negative means no queue: an item is accepted
	// only if it can start at once.
	//
	// Each lane has its own queue. In each lane, each class has its own queue, and so have
	// items without a class. Together they bound the memory: with 3 lanes and 2 classes, at
	// most 3 * (2 + 1) * MaxQueued items are pending, besides those in Stats.Overflow. See
	// [Lane] and [Class] for other numbers.
	MaxQueued int
	// MaxSuspended is how many operations may give up their slots at the same time by
	// [Operation.Suspend]. Further operations that suspend keep their slots. So when all
	// operations wait, no new one starts, and the queue fills up. Operations that wait for
	// others of the same coordinator give up their slots without a limit; see [Coordinator.Do]. 0 means 1024,
	// negative none.
	MaxSuspended int
	// DropOldest: when an item comes and its queue is full, the item that has waited
	// longest in that queue is dropped, and Enqueue does not wait. Without a queue, Enqueue
	// returns ErrFull.
	DropOldest bool

	// Lanes, if there are any, are the priorities of items, highest first. When a slot is
	// free, the next operation comes from the highest lane with an operation that can
	// start. [Coordinator.Lane] puts items into a lane. There can be at most 64 lanes.
	// ForEach and Map do not accept them.
	Lanes []Lane
	// Classes are kinds of items that share what is scarce, over all lanes: how many run at
	// once, how many start each second, what they cost each second, and a service that may
	// be down. [Coordinator.Class] puts items into a class. While a class is at its limit or
	// has no tokens, its items wait. They keep their turn. Later items with the same key and
	// in the same lane wait for them; no other items do. Each start costs some nanoseconds
	// for each class with waiting items. There can be at most 64 classes. ForEach and Map do
	// not accept them.
	Classes []Class
	// KeyRate is how many operations of each key start each second, and KeyCostRate how much
	// they may cost each second; see [Class]. The zero Rate means no limit. Items of a key
	// that has no tokens wait, and delay no other key. Within a key, while an item of a
	// higher lane lacks tokens, items of lower lanes wait, whatever Ageing is. Items whose
	// key is "" have no limit. Nothing is kept for keys whose buckets are full again.
	// Coordinators without keys do not accept these rates.
	KeyRate, KeyCostRate Rate
	// Ageing keeps lower lanes from starving. When an operation that could start has waited for this long,
	// every fourth start goes to the operation that has waited longest. Of each class with a rate, every
	// fourth start does so, too, even if the operation still lacks tokens. A suspended operation that has
	// waited for its slot for this long goes before higher lanes in the same way. With keys, Ageing looks in
	// each lane only at the operation whose turn is next. 0 means 10 seconds, negative never. Without Lanes,
	// it is an error.
	Ageing time.Duration

	// Shadow is a stricter limit, and rates, for all operations that only count: they say what would happen if they
	// were in force. See [Limits], and [Control.SetShadow] for changes. Nil means none. ForEach and Map do not accept
	// it.
	Shadow *Limits

	// MaxTracked is how many finished operations the window shows, besides
	// running, failed and pinned ones; 0 means 200, negative none. It is also how many
	// operations may be pinned.
	MaxTracked int
	// MaxFailed is how many failed operations the window shows. Successful ones do not
	// push them out. 0 means 200, or none if MaxTracked is negative; negative means none.
	MaxFailed int
	// MaxAge is how long the window shows a finished operation; 0 means 5
	// minutes, negative no limit.
	MaxAge time.Duration
	// EchoCapacity and EchoAge bound the number and the age of echoes; 0 means 256 and 1
	// minute, negative none.
	EchoCapacity int
	EchoAge      time.Duration

	// Sink is where the operations raise their signals. CancelOn, DeferOn, ResumeOn and
	// DrainOn look at its signals. Nil means a new sink.
	Sink *signals.Sink
	// CancelOn is a gate. While a matching signal is present on the sink or in this
	// coordinator, new items are not accepted ([RefusedError]). When the signal comes, what waits
	// is refused at once: an Enqueue that waits for room returns a RefusedError, and pending items
	// end with StatusRefused. Running operations go on. While the coordinator is paused, pending items stay, and are refused
	// by Resume if the signal is still present. How long a signal is present: see "Signals" in the package
	// documentation. Signals of [ForEach] and [Map] count only until these return.
	//
	//ephemeral:pattern
	CancelOn string
	// DeferOn is a gate, too. While a matching signal is present, items wait, unless a
	// newer signal that matches ResumeOn is present as well.
	//
	//ephemeral:pattern
	DeferOn, ResumeOn string
	// MaxDefer is the longest time that raised signals defer an item. The time begins
	// when the item is enqueued or when the first of the signals comes, whichever is
	// later. After it, the item runs although the signals are present, and [SignalForced]
	// is raised. A held signal ([signals.Sink.Hold]) defers items until it is released. 0 means 5
	// seconds, negative no limit.
	MaxDefer time.Duration
	// DrainOn ends the intake, like Complete, when a matching signal is raised on the
	// sink. A signal without a key is for all coordinators. If the signal has a key, the key
	// is a pattern, such as "mail*": the signal is for the coordinators whose Name matches it.
	//
	//ephemeral:pattern
	DrainOn string

	// OnDone is called once for every operation that ends, even if it was refused, dropped or
	// cancelled before it ran. The snapshot shows the last state, with the item. Calls that
	// wait for the operation return after OnDone: Wait, Do, Flush, WaitIdle,
	// Drain, Stop and Close. OnDone is called on the goroutine that ends the operation, with
	// no lock held, for several operations at once. While OnDone blocks, that goroutine runs
	// nothing else. Inside OnDone, a call that would wait for this coordinator returns
	// [ErrWouldDeadlock]. Enqueue does not wait there: as in a body, it accepts items beyond
	// MaxQueued. A panic is counted in Stats.
	OnDone func(Snapshot)
	// OnSignal is called for every signal that an operation raises, before the
	// sink's subscribers, on the goroutine that raises it; see
	// [signals.Sink.Subscribe]. It gets [signals.SignalStarted] and [signals.SignalStopped] only if the sink has a
	// handler, a forward or a monitor for them.
	OnSignal func(signals.Signal)
	// OnRetract is called for every signal that an operation takes back.
	OnRetract func(signals.Retraction)

	// StopOnError lets ForEach and Map stop at the first error. Coordinators
	// do not accept it.
	StopOnError bool
}

// resolved returns the options with defaults in place of zeroes and 0 in place of "none",
// or an error.
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
	orNone(&o.MaxSuspended, 1024)
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
	var errKeyRate, errKeyCostRate error
	o.KeyRate, errKeyRate = rateOf(o.KeyRate, "Options.KeyRate")
	o.KeyCostRate, errKeyCostRate = rateOf(o.KeyCostRate, "Options.KeyCostRate")
	errs = append(errs, errKeyRate, errKeyCostRate)
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
	for i := range o.Classes {
		c := &o.Classes[i]
		defers = defers || c.DeferOn != ""
		resolved, err := c.resolved(fmt.Sprintf("class %d of Options.Classes", i+1), o.MaxDefer)
		*c, errs = resolved, append(errs, err)
	}
	var errShadow error
	o.Shadow, errShadow = o.Shadow.stricter("Options", Limits{Limit: o.MaxConcurrency})
	errs = append(errs, errShadow)
	if o.ResumeOn != "" && !defers {
		errs = append(errs, fmt.Errorf("core: Options.ResumeOn is %q, but there is no DeferOn to resume from", o.ResumeOn))
	}
	return o, errors.Join(errs...)
}

// checked is resolved for a coordinator with keys or without.
func (o Options) checked(keyed bool) (Options, error) {
	resolved, err := o.resolved()
	switch {
	case err != nil || keyed:
	case o.MaxPerKey != 0:
		err = fmt.Errorf("core: Options.MaxPerKey is %d, but this is without keys", o.MaxPerKey)
	case resolved.KeyRate.Burst+resolved.KeyCostRate.Burst > 0:
		err = errors.New("core: Options has KeyRate or KeyCostRate, but this is without keys")
	}
	return resolved, err
}

// parts are the lanes and the classes of resolved options. Without lanes, there is one. The first class is for
// items without a class.
func (o *Options) parts() ([]Lane, []Class) {
	lanes := o.Lanes
	if len(lanes) == 0 {
		lanes = []Lane{{Depth: o.MaxQueued}}
	}
	return lanes, append([]Class{{Shadow: o.Shadow}}, o.Classes...)
}
