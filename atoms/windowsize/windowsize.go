package windowsize

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Resizer]. The zero value is the default. The bounds apply to changes by
// this Resizer. They do not apply to the options of the sink and to calls of
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

// Events are the signals of a [Resizer]. The key is the name of the Resizer, and the cause is the
// command. Those that end in applied mean that a command was carried out, within the bounds; the
// window may be the same as before. Those that end in rejected mean that the size or the time in a
// command was not valid, or that it was to change the age limit of a window that has none.
var Events = signals.NewFamily[Event]("window.size.applied,window.time.applied,window.size.rejected,window.time.rejected")

// An Event is the payload of [Events].
type Event struct {
	//ephemeral:raised
	Command  string // the name of the command signal
	From, To Window
	Err      error // why the command was rejected; nil if it was applied
}

// A Window is how much a sink remembers.
type Window struct {
	Capacity int           // how many signals
	MaxAge   time.Duration // for how long; 0: no limit
}

// errNoLimit means that the window has no age limit that could be increased or decreased.
var errNoLimit = errors.New("windowsize: the window has no limit of age to change: set one instead")

// A Resizer changes the window of a sink. Make one with [New], and close it. Until then, the sink
// refers to it. All methods are safe for concurrent use, also in handlers of the sink.
//
// A command is carried out before its Raise returns. A change takes time at most in proportion to
// the number of signals in the sink. A Resizer has no goroutine.
type Resizer struct {
	sink   *signals.Sink
	opts   Options
	cancel func()
}

// changing is locked while a window is read and changed. Otherwise, two Resizers of one sink
// could overwrite each other's changes.
var changing sync.Mutex

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

// Close ends the subscription to commands. It waits for a command that is being carried out,
// except inside a handler. It may be called several times, and returns nil.
func (r *Resizer) Close() error {
	r.cancel()
	return nil
}

// onCommand handles a signal that may be a command.
func (r *Resizer) onCommand(s signals.Signal) {
	command, value := signals.FindCommand(s.Name, commands...)
	if command == "" || s.Key != "" && s.Key != r.opts.Name {
		return
	}
	part, next := command[:len("window.size")], r.nextSize
	if part == "window.time" {
		next = r.nextTime
	}
	applied := part + ".applied"
	e := Event{Command: s.Name}
	changing.Lock()
	now := r.sink.Stats()
	e.From = Window{now.Capacity, now.MaxAge}
	e.To, e.Err = next(e.From, command, value)
	if e.Err == nil {
		r.sink.Resize(e.To.Capacity, e.To.MaxAge) // it calls no handlers
	} else {
		applied, e.To = part+".rejected", e.From
	}
	changing.Unlock()
	Events.Named(applied).Raise(r.sink.Because(s), r.opts.Name, e)
}

// nextSize returns the window after a command for the number of signals.
func (r *Resizer) nextSize(w Window, command, value string) (Window, error) {
	n, err := parseSize(value)
	w.Capacity = within(command, w.Capacity, n, r.opts.MinCapacity, r.opts.MaxCapacity)
	return w, err
}

// nextTime is nextSize for the age.
func (r *Resizer) nextTime(w Window, command, value string) (Window, error) {
	d, err := parseAge(value)
	if err == nil && command != CommandTimeSet && w.MaxAge == 0 {
		err = errNoLimit
	}
	w.MaxAge = within(command, w.MaxAge, d, r.opts.MinAge, r.opts.MaxAge)
	return w, err
}

// within returns the value after a command, within the bounds. If now is beyond a bound, an increase does not make it less, and a decrease does not make it
// more. Neither now nor v is negative.
func within[N int | time.Duration](command string, now, v, least, most N) N {
	switch {
	case strings.HasSuffix(command, ".set"):
		return min(max(v, least), most)
	case v == 0:
		return now
	case strings.HasSuffix(command, ".decrease"):
		return min(max(min(now-v, most), least), now)
	case v > most-now: // now + v could overflow
		return max(most, now)
	}
	return max(now+v, least)
}
