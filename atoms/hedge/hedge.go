package hedge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Hedger]. The zero value is the default.
type Options struct {
	// Name is the key of signals, unless they are raised by an operation that has a key.
	// "" means "hedge".
	//
	//ephemeral:none
	Name string
	// Sink gets [SignalPaused], and the signals of calls that are not part of an operation.
	// nil means a new sink.
	Sink *signals.Sink

	// Delay is a fixed delay before a second attempt. It must not be negative. 0 means the
	// 95th percentile of the last 100 calls, and at least 1 millisecond.
	Delay time.Duration
	// MaxExtra is how many second attempts there are at most, as a share of all calls. Unused
	// second attempts can be used later: at most the share of 100 calls, or one. 0 means 0.05.
	// It must not be above 1. Negative means no limit.
	MaxExtra float64
	// MaxErrors is the share of the last 100 calls that may fail. If more have failed,
	// there are no second attempts, until at most half as many have failed. 0 means 0.1. It
	// must not be above 1. Negative means no limit.
	MaxErrors float64
}

// SignalPaused is held on [Options.Sink] while there are no second attempts because of
// [Options.MaxErrors]. The key is the name.
const SignalPaused = "hedge.paused"

// Signals of a [Hedger] with a payload. If the call is part of an operation, the operation raises
// them, with its key. Otherwise they are raised on [Options.Sink].
var (
	Started   = signals.NewKind[Event]("hedge.started")   // a second attempt starts
	Succeeded = signals.NewKind[Event]("hedge.succeeded") // the result of a second attempt is returned
)

// An Event is the payload of [Started] and [Succeeded].
type Event struct {
	After time.Duration `json:"after"` // the time since the start of the first attempt
}

// ErrSlower is the cause with which the context of an attempt ends when the other attempt has
// succeeded, or when the call returns.
var ErrSlower = errors.New("hedge: the call needs this attempt no longer")

// Stats are the counters of a [Hedger], read together.
//
//	Calls = Running + Succeeded + Failed + Cancelled
type Stats struct {
	Calls     uint64 `json:"calls"`
	Running   int    `json:"running"`
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"`    // calls that failed, panics and deadlines included
	Cancelled uint64 `json:"cancelled"` // calls that failed after their context ended, but not by a deadline

	Hedged uint64        `json:"hedged"` // calls with a second attempt
	Won    uint64        `json:"won"`    // calls in Succeeded with the result of the second attempt
	Denied uint64        `json:"denied"` // calls without a second attempt because of MaxExtra or MaxErrors
	Delay  time.Duration `json:"delay"`  // delay before a second attempt; 0: not known yet
}

// A Hedger makes a second attempt of slow calls. Make one with [New]. All methods are safe for
// concurrent use. It needs no closing. A call that is not hedged costs about a microsecond: a
// context and a timer. It keeps the durations of the last 100 calls.
type Hedger struct {
	opts    Options       // resolved
	effects outbox.Outbox // holds and releases SignalPaused
	release func()        // only effects use it

	mu      sync.Mutex
	stats   Stats
	paused  bool // there are too many errors
	history history
	credit  int64 // credit for second attempts, in millionths
}

const (
	unit     = 1_000_000        // the credit of a second attempt
	window   = 100              // calls that are remembered: five of them are above the quantile
	quantile = 0.95             // as in "The Tail at Scale" (Dean, Barroso, 2013)
	minDelay = time.Millisecond // shorter delays are not worth a second call
)

func (o Options) resolved() (Options, error) {
	o.Name, o.Sink = cmp.Or(o.Name, "hedge"), cmp.Or(o.Sink, signals.NewSink(signals.SinkOptions{}))
	o.MaxExtra, o.MaxErrors = cmp.Or(o.MaxExtra, 0.05), cmp.Or(o.MaxErrors, 0.1)
	switch {
	case o.Delay < 0:
		return o, fmt.Errorf("hedge: Delay must not be negative, but is %v", o.Delay)
	case !(o.MaxExtra <= 1):
		return o, fmt.Errorf("hedge: MaxExtra must be at most 1, not %g", o.MaxExtra)
	case !(o.MaxErrors <= 1):
		return o, fmt.Errorf("hedge: MaxErrors must be at most 1, not %g", o.MaxErrors)
	}
	return o, nil
}

// New makes a Hedger, or returns an error if the options are not valid.
func New(opts Options) (*Hedger, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	return &Hedger{opts: opts, history: newHistory(window)}, nil
}

// Sink is [Options.Sink], or the sink that was made in its place.
func (h *Hedger) Sink() *signals.Sink { return h.opts.Sink }

// Name is [Options.Name], or its default.
func (h *Hedger) Name() string { return h.opts.Name }

// Stats returns the counters.
func (h *Hedger) Stats() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.stats
	s.Delay, _ = h.delay()
	return s
}

// delay returns the delay before a second attempt, if it is known.
func (h *Hedger) delay() (time.Duration, bool) {
	if h.opts.Delay > 0 {
		return h.opts.Delay, true
	}
	d, ok := h.history.quantile(quantile)
	if !ok {
		return 0, false
	}
	return max(d, minDelay), true
}

// begin counts a call, and returns the delay before its second attempt, if there may be one.
func (h *Hedger) begin() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stats.Calls++
	h.stats.Running++
	if extra := h.opts.MaxExtra; extra > 0 {
		most := max(unit, extra*unit*window)
		h.credit = min(h.credit+int64(extra*unit+0.5), int64(most))
	}
	return h.delay()
}

// allow reports whether there may be a second attempt now, and counts it.
func (h *Hedger) allow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.paused || h.opts.MaxExtra > 0 && h.credit < unit {
		h.stats.Denied++
		return false
	}
	h.credit -= unit
	h.stats.Hedged++
	return true
}

// end counts the end of a call whose first attempt took the time d.
func (h *Hedger) end(ctx context.Context, d time.Duration, err error, won bool) {
	cancelled := err != nil && ctx.Err() != nil && !guard.Is(context.Cause(ctx), context.DeadlineExceeded)
	fine := !guard.Failed(err)
	h.mu.Lock()
	h.stats.Running--
	switch {
	case fine:
		h.stats.Succeeded++
		h.history.add(d)
	case cancelled:
		h.stats.Cancelled++
	default:
		h.stats.Failed++
		h.history.add(failed)
	}
	if won {
		h.stats.Won++
	}
	changed := h.pause()
	h.mu.Unlock()
	if changed {
		h.effects.Run()
	}
}

// pause begins or ends the pause for too many errors, and reports whether it has changed
// anything.
func (h *Hedger) pause() bool {
	most := h.opts.MaxErrors * window
	switch errs := float64(h.history.errs); {
	case !h.paused && most > 0 && errs > most:
		h.effects.Add(func() { h.release = h.opts.Sink.Hold(SignalPaused, h.opts.Name, 0) })
	case h.paused && errs <= most/2:
		h.effects.Add(func() { h.release() })
	default:
		return false
	}
	h.paused = !h.paused
	return true
}
