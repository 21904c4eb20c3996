package molecules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Runner]. The zero value is the default.
type Options struct {
	// Name is the Source of the signals that the runs raise. "" means "molecules".
	//
	//ephemeral:none
	Name string
	// Order says which runs must not overlap; 0 is [OrderNone].
	Order Order
	// MaxConcurrency is how many runs of all blueprints run at once, including those
	// that wait for a signal; 0 means 16. With [OrderSerial] it must be 0 or 1, and means 1.
	MaxConcurrency int
	// MaxQueued is how many runs may wait for a slot; 0 means 1024, negative none. If
	// the queue is full, a signal starts no run: it is counted as Rejected, and
	// [SignalDropped] is raised.
	MaxQueued int
	// CompensateTimeout is how long each Compensate may take before its context ends; 0
	// means 30 seconds, negative no limit.
	CompensateTimeout time.Duration
}

// TriggerOptions configure a [Trigger]. The zero value is the default.
type TriggerOptions struct {
	// Name is the Source of the signals that the calls raise. "" means "trigger".
	//
	//ephemeral:none
	Name string
	// Order says which calls must not overlap; 0 is [OrderNone].
	Order Order
	// MaxConcurrency is how many calls run at once; 0 means 16. With [OrderSerial] it
	// must be 0 or 1, and means 1.
	MaxConcurrency int
	// MaxQueued is how many signals may wait for their call; 0 means 1024, negative
	// none. If the queue is full, a signal is dropped: it is counted as Rejected, and
	// [TriggerDropped] is raised.
	MaxQueued int
}

// An Order says which runs of a [Runner], or calls of a [Trigger], must not overlap.
type Order int

const (
	// OrderNone: up to MaxConcurrency runs or calls overlap. Keys take turns in the queue, so a
	// key with many signals does not delay the others.
	OrderNone Order = iota
	// OrderPerKey: runs or calls of one key do not overlap. They begin in the order of the
	// signals. Signals without a key have no order.
	OrderPerKey
	// OrderSerial: no runs or calls overlap. They begin in the order of the signals.
	OrderSerial
)

func (o Order) String() string {
	if names := []string{"none", "per key", "serial"}; o >= 0 && int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Order(%d)", int(o))
}

// resolved returns the options with defaults in place of zeros, or says what is wrong
// with them.
func (o Options) resolved() (Options, error) {
	o.Name = cmp.Or(o.Name, "molecules")
	o.CompensateTimeout = cmp.Or(o.CompensateTimeout, 30*time.Second)
	switch {
	case isBlank(o.Name):
		return o, fmt.Errorf("molecules: Options.Name is %q, it must not be blank", o.Name)
	case o.Order < OrderNone || o.Order > OrderSerial:
		return o, fmt.Errorf("molecules: Options.Order of %q is %v, it must be one of the constants", o.Name, o.Order)
	case o.MaxConcurrency < 0:
		return o, fmt.Errorf("molecules: Options.MaxConcurrency of %q is %d, it must not be negative", o.Name, o.MaxConcurrency)
	case o.Order == OrderSerial && o.MaxConcurrency > 1:
		return o, fmt.Errorf("molecules: Options.MaxConcurrency of %q is %d, with OrderSerial it must be 1", o.Name, o.MaxConcurrency)
	}
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 16)
	return o, nil
}

// resolved returns the options that a Runner has too, with defaults in place of zeros, or says
// what is wrong with them.
func (o TriggerOptions) resolved() (Options, error) {
	return Options{
		Name: cmp.Or(o.Name, "trigger"), Order: o.Order, MaxConcurrency: o.MaxConcurrency,
		MaxQueued: o.MaxQueued,
	}.resolved()
}

// coordinator returns the options of the coordinator. The order is kept by keys, so that
// SetMaxConcurrency does not change it.
func (o Options) coordinator(sink *signals.Sink) core.Options {
	c := core.Options{
		Name: o.Name, Sink: sink, MaxConcurrency: o.MaxConcurrency,
		MaxQueued: o.MaxQueued,
	}
	switch o.Order {
	case OrderNone:
		c.MaxPerKey = c.MaxConcurrency
	case OrderSerial:
		c.MaxConcurrency = 1
	}
	return c
}

// key returns the key for the coordinator of the run or call that s starts. With OrderSerial all
// have the same key. So they do not overlap, even if SetMaxConcurrency raises the limit.
func (o Options) key(s signals.Signal) string {
	if o.Order == OrderSerial {
		return "serial"
	}
	return s.Key
}
