package windowsize

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Resizer]. The zero value is the default. The bounds hold for what
// a Resizer does, not for what the sink is made with or resized to by others.
type Options struct {
	// Name is the key of the commands that are meant for this Resizer only, and of
	// the signals it raises. "" means "windowsize".
	Name string
	// MinCapacity and MaxCapacity bound how many signals the window holds; 0 means 16
	// and 50,000, negative none but those of the sink, 1 and [core.MaxSinkCapacity].
	MinCapacity, MaxCapacity int
	// MinAge and MaxAge bound for how long it holds them; 0 means 5 seconds and 1
	// hour, negative none.
	MinAge, MaxAge time.Duration
}

// Commands that a [Resizer] heeds, each followed by a colon and a number of signals or a
// duration.
const (
	CommandSizeSet      = "window.size.set"
	CommandSizeIncrease = "window.size.increase"
	CommandSizeDecrease = "window.size.decrease"
	CommandTimeSet      = "window.time.set"
	CommandTimeIncrease = "window.time.increase"
	CommandTimeDecrease = "window.time.decrease"
)

// Signals that a [Resizer] raises on its sink, with its name as key, caused by the
// command if there was one. [core.Signal.Payload] is an [Event].
const (
	// SignalSizeApplied and SignalTimeApplied: a command or a method has been carried
	// out, as far as the bounds allow, even if nothing has changed by it.
	SignalSizeApplied = "window.size.applied"
	SignalTimeApplied = "window.time.applied"
	// SignalSizeRejected and SignalTimeRejected: a command could not be understood, or
	// [ErrNoLimit].
	SignalSizeRejected = "window.size.rejected"
	SignalTimeRejected = "window.time.rejected"
)

// An Event is the payload of the signals. To subscribe to one of them with its payload,
// make its kind: core.NewKind[windowsize.Event](windowsize.SignalSizeApplied).
type Event struct {
	Command  string // name of the signal that asked for it; "" for a method
	From, To Window
	Clamped  bool  // the bounds did not allow what was asked for
	Err      error // why it was rejected; nil if it was applied
}

// A Window is how much a sink remembers.
type Window struct {
	Capacity int
	MaxAge   time.Duration // 0: no limit
}

// ErrNoLimit is why the time of a window is not increased or decreased that has no limit
// of age: there is nothing to add to. It can be set.
var ErrNoLimit = errors.New("windowsize: the window has no limit of age to change")

var kinds = map[string]core.Kind[Event]{
	SignalSizeApplied:  core.NewKind[Event](SignalSizeApplied),
	SignalTimeApplied:  core.NewKind[Event](SignalTimeApplied),
	SignalSizeRejected: core.NewKind[Event](SignalSizeRejected),
	SignalTimeRejected: core.NewKind[Event](SignalTimeRejected),
}

// A Resizer changes the window of a sink, on command or by its methods. Make one with
// [New]. All methods are safe for concurrent use, from handlers of the sink as well, and
// work after Close too. A command is carried out before the Raise that gave it returns;
// shrinking takes as long as there are signals to let go, and any change of capacity as
// long as it takes to copy what stays. It owns no goroutine, but the sink keeps it until
// Close.
type Resizer struct {
	sink   *core.Sink
	name   string
	cancel func()

	minCapacity, maxCapacity int
	minAge, maxAge           time.Duration

	mu    sync.Mutex
	stats Stats
}

// changing is held from looking at a window to changing it, so that Resizers of one
// sink do not undo what the others do.
var changing sync.Mutex

// Stats are the counters of a [Resizer], read as one cut: of commands and of calls of
// methods alike, but for those that return [ErrNoLimit].
type Stats struct {
	Applied  uint64 `json:"applied"`
	Clamped  uint64 `json:"clamped"` // of these, not as far as asked for
	Rejected uint64 `json:"rejected"`
}

// New makes a Resizer that listens to the commands on sink, or says what is wrong with
// the options. It does not change the window. Close it when it is to listen no more.
func New(sink *core.Sink, opts Options) (*Resizer, error) {
	if sink == nil {
		return nil, errors.New("windowsize: New needs a sink")
	}
	r := &Resizer{sink: sink, name: opts.Name}
	if r.name == "" {
		r.name = "windowsize"
	}
	r.minCapacity, r.maxCapacity = preset(opts.MinCapacity, 16, 1), preset(opts.MaxCapacity, 50_000, core.MaxSinkCapacity)
	r.minAge, r.maxAge = preset(opts.MinAge, 5*time.Second, 1), preset(opts.MaxAge, time.Hour, longest)
	switch {
	case r.maxCapacity > core.MaxSinkCapacity:
		return nil, fmt.Errorf("windowsize: Options.MaxCapacity is %d: a sink holds up to %d signals", r.maxCapacity, core.MaxSinkCapacity)
	case r.minCapacity > r.maxCapacity:
		return nil, fmt.Errorf("windowsize: Options.MinCapacity is %d: it must not be above MaxCapacity, %d", r.minCapacity, r.maxCapacity)
	case r.minAge > r.maxAge:
		return nil, fmt.Errorf("windowsize: Options.MinAge is %v: it must not be above MaxAge, %v", r.minAge, r.maxAge)
	}
	r.cancel = sink.Subscribe(patterns, r.heed)
	return r, nil
}

// preset is the value of an option, where 0 means the default and negative none.
func preset[N int | time.Duration](v, preset, none N) N {
	switch {
	case v == 0:
		return preset
	case v < 0:
		return none
	default:
		return v
	}
}

const longest = time.Duration(math.MaxInt64)

// SetCapacity lets the window hold n signals, within the bounds, and returns how many it
// holds now.
func (r *Resizer) SetCapacity(n int) int { return r.changeCapacity(set, n, nil) }

// AddCapacity lets the window hold delta signals more, or less if delta is negative, and
// returns how many it holds now. A window that is beyond a bound already does not move
// the other way.
func (r *Resizer) AddCapacity(delta int) int { return r.changeCapacity(add, delta, nil) }

// SetMaxAge lets the window hold signals for d, within the bounds, and returns for how
// long it holds them now.
func (r *Resizer) SetMaxAge(d time.Duration) time.Duration {
	age, _ := r.changeAge(set, d, nil) // only adding can fail
	return age
}

// AddMaxAge lets the window hold signals for delta longer, or shorter if delta is
// negative, and returns for how long it holds them now. A window that is beyond a bound
// already does not move the other way. It returns [ErrNoLimit], and changes nothing, if
// the window has no limit of age.
func (r *Resizer) AddMaxAge(delta time.Duration) (time.Duration, error) {
	return r.changeAge(add, delta, nil)
}

// Name is [Options.Name].
func (r *Resizer) Name() string { return r.name }

// Sink is the sink whose window it is.
func (r *Resizer) Sink() *core.Sink { return r.sink }

// Stats returns the counters.
func (r *Resizer) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// Close lets the Resizer heed no more commands. When it has returned none is being
// carried out, unless it was called from inside a handler, which it does not wait for. It
// may be called many times, and returns nil.
func (r *Resizer) Close() error {
	r.cancel()
	return nil
}

// patterns match the commands, and some more that [core.ParseCommand] sorts out.
var patterns = func() string {
	var list []string
	for _, c := range commands {
		list = append(list, "*"+c.name+":*")
	}
	return strings.Join(list, ",")
}()

var commands = []command{
	{CommandSizeSet, SignalSizeRejected, onSize(set, 1)},
	{CommandSizeIncrease, SignalSizeRejected, onSize(add, 1)},
	{CommandSizeDecrease, SignalSizeRejected, onSize(add, -1)},
	{CommandTimeSet, SignalTimeRejected, onTime(set, 1)},
	{CommandTimeIncrease, SignalTimeRejected, onTime(add, 1)},
	{CommandTimeDecrease, SignalTimeRejected, onTime(add, -1)},
}

type command struct {
	name     string
	rejected string // signal that says it was not understood
	run      func(r *Resizer, payload string, by *core.Signal) error
}

func onSize(how change, sign int) func(*Resizer, string, *core.Signal) error {
	return func(r *Resizer, payload string, by *core.Signal) error {
		n, err := parseSize(payload)
		if err == nil {
			r.changeCapacity(how, sign*n, by)
		}
		return err
	}
}

func onTime(how change, sign time.Duration) func(*Resizer, string, *core.Signal) error {
	return func(r *Resizer, payload string, by *core.Signal) error {
		d, err := parseAge(payload)
		if err == nil {
			_, err = r.changeAge(how, sign*d, by)
		}
		return err
	}
}

// heed handles a signal that may be a command. Of several in one name, the first counts:
// the others are its payload.
func (r *Resizer) heed(s core.Signal) {
	if s.Key != "" && s.Key != r.name {
		return
	}
	var first *command
	payload := ""
	for i := range commands {
		if p, ok := core.ParseCommand(s.Name, commands[i].name); ok && (first == nil || len(p) > len(payload)) {
			first, payload = &commands[i], p
		}
	}
	if first == nil {
		return
	}
	if err := first.run(r, payload, &s); err != nil {
		r.mu.Lock()
		r.stats.Rejected++
		r.mu.Unlock()
		now := r.window()
		r.raise(first.rejected, Event{From: now, To: now, Err: err}, &s)
	}
}

func (r *Resizer) raise(name string, e Event, by *core.Signal) {
	on := core.Raiser(r.sink)
	if by != nil {
		e.Command = by.Name
		on = r.sink.Because(*by)
	}
	kinds[name].Raise(on, r.name, e)
}

// A change is how a value becomes another.
type change int

const (
	set change = iota
	add
)

// apply returns what becomes of now, within the bounds, and whether they mattered.
// Adding to what is beyond a bound does not make it less, and the other way round.
func apply[N int | time.Duration](how change, now, v, least, most N) (to N, clamped bool) {
	want := v
	if how == add {
		if want = now + v; v > 0 && want < now { // now is positive: only this way can it overflow
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

// changeCapacity changes the capacity.
func (r *Resizer) changeCapacity(how change, n int, by *core.Signal) int {
	changing.Lock()
	from := r.window()
	to := from
	var clamped bool
	to.Capacity, clamped = apply(how, from.Capacity, n, r.minCapacity, r.maxCapacity)
	r.sink.Resize(to.Capacity, to.MaxAge) // it calls nobody
	changing.Unlock()
	r.applied(clamped)
	r.raise(SignalSizeApplied, Event{From: from, To: to, Clamped: clamped}, by)
	return to.Capacity
}

// changeAge changes the limit of age.
func (r *Resizer) changeAge(how change, d time.Duration, by *core.Signal) (time.Duration, error) {
	changing.Lock()
	from := r.window()
	if how == add && from.MaxAge == 0 {
		changing.Unlock()
		return 0, ErrNoLimit
	}
	to := from
	var clamped bool
	to.MaxAge, clamped = apply(how, from.MaxAge, d, r.minAge, r.maxAge)
	r.sink.Resize(to.Capacity, to.MaxAge) // it calls nobody
	changing.Unlock()
	r.applied(clamped)
	r.raise(SignalTimeApplied, Event{From: from, To: to, Clamped: clamped}, by)
	return to.MaxAge, nil
}

// window is what the sink remembers now.
func (r *Resizer) window() Window {
	s := r.sink.Stats()
	return Window{s.Capacity, s.MaxAge}
}

func (r *Resizer) applied(clamped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Applied++
	if clamped {
		r.stats.Clamped++
	}
}
