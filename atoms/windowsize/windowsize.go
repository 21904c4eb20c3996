package windowsize

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Resizer]. The zero value is the default. The bounds apply to changes by
// this Resizer. They do not apply to the options of the sink and to other calls of
// [signals.Sink.Resize].
type Options struct {
	// Name is the key of the signals of the Resizer, and of commands for this Resizer only.
	// "" means "windowsize".
	//
	//ephemeral:none
	Name string
	// MinCapacity and MaxCapacity are the bounds of the number of signals. 0 means 16 and
	// 50,000. Negative means the bounds of every sink, 1 and [signals.MaxSinkCapacity].
	MinCapacity, MaxCapacity int
	// MinAge and MaxAge are the bounds of the time for which the sink remembers a signal. 0
	// means 5 seconds and 1 hour. Negative means no bound.
	MinAge, MaxAge time.Duration
}

// Commands for a [Resizer]. After each there is a colon, and a number of signals or a duration.
const (
	CommandSizeSet      = "window.size.set"
	CommandSizeIncrease = "window.size.increase"
	CommandSizeDecrease = "window.size.decrease"
	CommandTimeSet      = "window.time.set"
	CommandTimeIncrease = "window.time.increase"
	CommandTimeDecrease = "window.time.decrease"
)

var commands = []string{
	CommandSizeSet, CommandSizeIncrease, CommandSizeDecrease, CommandTimeSet, CommandTimeIncrease, CommandTimeDecrease,
}

// Signals of a [Resizer]. The key is the name of the Resizer. The payload is an [Event]. If
// there was a command, it is the cause of the signal.
const (
	// SignalSizeApplied and SignalTimeApplied mean that a command or a method was carried
	// out, within the bounds. The window may be the same as before.
	SignalSizeApplied = "window.size.applied"
	SignalTimeApplied = "window.time.applied"
	// SignalSizeRejected: the size in a command was not valid, or the command failed with
	// [ErrNoLimit].
	SignalSizeRejected = "window.size.rejected"
	// SignalTimeRejected: the time in a command was not valid, or the command failed with
	// [ErrNoLimit].
	SignalTimeRejected = "window.time.rejected"
)

// The kinds of the signals.
var (
	SizeApplied  = signals.NewKind[Event](SignalSizeApplied)
	TimeApplied  = signals.NewKind[Event](SignalTimeApplied)
	SizeRejected = signals.NewKind[Event](SignalSizeRejected)
	TimeRejected = signals.NewKind[Event](SignalTimeRejected)
)

// An Event is the payload of the signals.
type Event struct {
	//ephemeral:raised
	Command  string // the name of the command signal; "" for a method
	From, To Window
	Clamped  bool  // the bounds limited the change
	Err      error // why the command was rejected; nil if it was applied
}

// A Window is how much a sink remembers.
type Window struct {
	Capacity int           // how many signals
	MaxAge   time.Duration // for how long; 0: no limit
}

// ErrNoLimit means that the window has no age limit that could be increased or decreased. Set
// one instead.
var ErrNoLimit = errors.New("windowsize: the window has no limit of age to change")

// A Resizer changes the window of a sink, by commands and by its methods. Make one with [New],
// and close it. Until then, the sink refers to it. All methods are safe for concurrent use, also
// in handlers of the sink, and they work after Close.
//
// A command is carried out before its Raise returns. A change takes time at most in proportion to
// the number of signals in the sink. A Resizer has no goroutine.
type Resizer struct {
	sink   *signals.Sink
	opts   Options
	cancel func()

	mu    sync.Mutex
	stats Stats
}

// changing is locked while a window is read and changed. Otherwise, two Resizers of one sink
// could overwrite each other's changes.
var changing sync.Mutex

// Stats are the counters of a [Resizer], read together.
//
//	Applied + Rejected = commands + calls of methods that returned no error
type Stats struct {
	Applied  uint64 `json:"applied"`
	Clamped  uint64 `json:"clamped"` // changes in Applied that the bounds limited
	Rejected uint64 `json:"rejected"`
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

// New makes a Resizer for the sink, and subscribes it to commands. It does not change the
// window. It returns an error if the sink is nil or the options are not valid.
func New(sink *signals.Sink, opts Options) (*Resizer, error) {
	if sink == nil {
		return nil, errors.New("windowsize: New needs a sink")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	r := &Resizer{sink: sink, opts: opts}
	r.cancel = sink.Subscribe(signals.CommandPattern(commands...), r.onCommand)
	return r, nil
}

// resolved returns the options with the defaults filled in.
func (o Options) resolved() (Options, error) {
	if o.Name == "" {
		o.Name = "windowsize"
	}
	o.MinCapacity, o.MaxCapacity = orDefault(o.MinCapacity, 16, 1), orDefault(o.MaxCapacity, 50_000, signals.MaxSinkCapacity)
	o.MinAge, o.MaxAge = orDefault(o.MinAge, 5*time.Second, 1), orDefault(o.MaxAge, time.Hour, math.MaxInt64)
	switch {
	case o.MaxCapacity > signals.MaxSinkCapacity:
		return o, fmt.Errorf("windowsize: Options.MaxCapacity is %d: a sink holds up to %d signals", o.MaxCapacity, signals.MaxSinkCapacity)
	case o.MinCapacity > o.MaxCapacity:
		return o, fmt.Errorf("windowsize: Options.MinCapacity is %d: it must not be above MaxCapacity, %d", o.MinCapacity, o.MaxCapacity)
	case o.MinAge > o.MaxAge:
		return o, fmt.Errorf("windowsize: Options.MinAge is %v: it must not be above MaxAge, %v", o.MinAge, o.MaxAge)
	}
	return o, nil
}

// orDefault returns the value of an option: 0 means byDefault, negative means none.
func orDefault[N int | time.Duration](v, byDefault, none N) N {
	switch {
	case v == 0:
		return byDefault
	case v < 0:
		return none
	}
	return v
}

// SetCapacity sets how many signals the sink remembers, within the bounds, and returns the new
// capacity.
func (r *Resizer) SetCapacity(n int) int {
	to, _ := r.change(r.capacity(set, n), SizeApplied, nil)
	return to.Capacity
}

// AddCapacity adds delta, which may be negative, to the capacity, and returns the new capacity.
// If the capacity is already above the bounds, an increase does not change it. If it is below
// the bounds, a decrease does not change it.
func (r *Resizer) AddCapacity(delta int) int {
	to, _ := r.change(r.capacity(add, delta), SizeApplied, nil)
	return to.Capacity
}

// SetMaxAge sets for how long the sink remembers signals, within the bounds, and returns the new
// age limit.
func (r *Resizer) SetMaxAge(d time.Duration) time.Duration {
	to, _ := r.change(r.maxAge(set, d), TimeApplied, nil)
	return to.MaxAge
}

// AddMaxAge adds delta, which may be negative, to the age limit, and returns the new age limit.
// If the limit is outside of the bounds, it does what AddCapacity does. If the window has no
// age limit, AddMaxAge changes nothing and returns [ErrNoLimit].
func (r *Resizer) AddMaxAge(delta time.Duration) (time.Duration, error) {
	to, err := r.change(r.maxAge(add, delta), TimeApplied, nil)
	return to.MaxAge, err
}

// Name is [Options.Name].
func (r *Resizer) Name() string { return r.opts.Name }

// Sink is the sink of [New].
func (r *Resizer) Sink() *signals.Sink { return r.sink }

// Stats returns the counters.
func (r *Resizer) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Close ends the subscription to commands. It waits for a command that is being carried out,
// except inside a handler. It may be called several times, and returns nil.
func (r *Resizer) Close() error {
	r.cancel()
	return nil
}

// onCommand handles a signal that may be a command.
func (r *Resizer) onCommand(s signals.Signal) {
	if s.Key != "" && s.Key != r.opts.Name {
		return
	}
	command, payload := signals.FindCommand(s.Name, commands...)
	how, sign := set, 1
	switch command {
	case "":
		return
	case CommandSizeIncrease, CommandTimeIncrease:
		how = add
	case CommandSizeDecrease, CommandTimeDecrease:
		how, sign = add, -1
	}
	applied, rejected := SizeApplied, SizeRejected
	var next nextWindow
	var err error
	if strings.HasPrefix(command, "window.size.") {
		var n int
		n, err = parseSize(payload)
		next = r.capacity(how, sign*n)
	} else {
		var d time.Duration
		d, err = parseAge(payload)
		next = r.maxAge(how, time.Duration(sign)*d)
		applied, rejected = TimeApplied, TimeRejected
	}
	if err == nil {
		_, err = r.change(next, applied, &s)
	}
	if err != nil {
		r.mu.Lock()
		r.stats.Rejected++
		r.mu.Unlock()
		now := r.window()
		rejected.Raise(r.sink.Because(s), r.opts.Name, Event{Command: s.Name, From: now, To: now, Err: err})
	}
}

// mode says how a value is used.
type mode int

const (
	set mode = iota
	add
)

// nextWindow returns the new window, and whether the bounds limited the change.
type nextWindow func(from Window) (to Window, clamped bool, err error)

func (r *Resizer) capacity(how mode, n int) nextWindow {
	return func(w Window) (to Window, clamped bool, err error) {
		w.Capacity, clamped = within(how, w.Capacity, n, r.opts.MinCapacity, r.opts.MaxCapacity)
		return w, clamped, nil
	}
}

func (r *Resizer) maxAge(how mode, d time.Duration) nextWindow {
	return func(w Window) (to Window, clamped bool, err error) {
		if how == add && w.MaxAge == 0 {
			return w, false, ErrNoLimit
		}
		w.MaxAge, clamped = within(how, w.MaxAge, d, r.opts.MinAge, r.opts.MaxAge)
		return w, clamped, nil
	}
}

// within returns the new value, within the bounds, and whether the bounds limited it. If now is
// beyond a bound, adding does not make it less, and subtracting does not make it more.
func within[N int | time.Duration](how mode, now, v, least, most N) (to N, clamped bool) {
	want := v
	if how == add {
		if want = now + v; v > 0 && want < now { // an overflow; now is positive, so only a positive v can overflow
			want, clamped = most, true
		}
	}
	to = min(max(want, least), most)
	switch {
	case how == set:
	case v > 0:
		to = max(to, now)
	case v < 0:
		to = min(to, now)
	default:
		to = now
	}
	return to, clamped || to != want
}

// change changes the window and raises applied. by is the command; nil for a method.
func (r *Resizer) change(next nextWindow, applied signals.Kind[Event], by *signals.Signal) (Window, error) {
	changing.Lock()
	from := r.window()
	to, clamped, err := next(from)
	if err == nil {
		r.sink.Resize(to.Capacity, to.MaxAge) // it calls no handlers
	}
	changing.Unlock()
	if err != nil {
		return to, err
	}
	r.mu.Lock()
	r.stats.Applied++
	if clamped {
		r.stats.Clamped++
	}
	r.mu.Unlock()
	event, on := Event{From: from, To: to, Clamped: clamped}, signals.Raiser(r.sink)
	if by != nil {
		event.Command, on = by.Name, r.sink.Because(*by)
	}
	applied.Raise(on, r.opts.Name, event)
	return to, nil
}

// window returns the present window of the sink.
func (r *Resizer) window() Window {
	s := r.sink.Stats()
	return Window{s.Capacity, s.MaxAge}
}
