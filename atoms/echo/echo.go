package echo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Source is a coordinator, for a [Recorder]. All coordinators, dispatchers and processors of
// core are Sources, and so are types of atoms with these methods, such as fixedwork.Pool.
type Source interface {
	lastwords.Source
	Sink() *signals.Sink
}

// Options configure a [Recorder]. The zero value is the default.
type Options struct {
	// Name is the Source of the signals that deliveries raise. "" means "echo".
	//
	//ephemeral:none
	Name string
	// Sink gets [lastwords.Relay.Failed] and the signals of deliveries. nil means the sink of the
	// coordinator.
	Sink *signals.Sink

	// Capture is the pattern of the signals that are captured. Their payload must have the
	// type of the kind. "" means the name of the kind, with or without a prefix that
	// [signals.Sink.Scoped] has added.
	//
	//ephemeral:pattern
	Capture string
	// Activate is the pattern of the signals that start capturing, for each operation by
	// itself. Signals that the operation raised before the first of them are not captured.
	// The first of them is captured if it matches Capture. "" means that capturing starts at once.
	//
	//ephemeral:pattern
	Activate string
	// MaxAge leaves out signals that are older than this when the operation leaves the
	// window. 0 and negative mean no limit.
	MaxAge time.Duration
	// MaxPerOperation is how many signals of an operation are captured: the newest. 0 means
	// 64, negative means no limit.
	MaxPerOperation int

	// MaxQueued is how many entries may wait for delivery. If there are more, the oldest is
	// dropped. 0 means 1024, negative means no queue. When a coordinator is closed, its
	// whole window leaves at once. To lose no entry then, set MaxQueued to at least the
	// number of operations in the window.
	MaxQueued int
	// MaxConcurrency is how many entries are delivered at once. 0 means 1. With more than
	// 1, entries may be delivered in another order.
	MaxConcurrency int
}

func (o Options) resolved(c Source, kind string) Options {
	o.Name = cmp.Or(o.Name, "echo")
	o.Sink = cmp.Or(o.Sink, c.Sink())
	o.Capture = cmp.Or(o.Capture, kind+", *."+kind)
	o.MaxPerOperation = cmp.Or(o.MaxPerOperation, 64)
	return o
}

// A Recorder delivers entries of operations that leave the window of a coordinator. Make one
// with [New]. It is a [lastwords.Relay]: an entry that was not delivered is raised in its signal
// Failed, with the id of the operation as key. The coordinator refers to it until Complete, Drain, Stop
// or Close. It has a goroutine only while there are entries to deliver. All methods are safe for
// concurrent use. Inside the function that delivers, methods that would wait for this function
// return [core.ErrWouldDeadlock].
//
// Flush, Drain and WaitIdle wait for the entries of operations that have left the window. When
// an operation finishes, it may push an older one out of the window. Then a caller that waits
// for the first operation may return before the older one has its entry. After Close of the
// coordinator, all operations have their entries.
type Recorder[P any] struct {
	*lastwords.Relay[Entry[P]]
	opts   Options
	missed atomic.Uint64
}

var _ core.Inspector = (*Recorder[int])(nil)

// New makes a recorder for the operations that leave c from now on, or says what is wrong with
// the arguments. deliver gets each entry. Its context ends with Close of the recorder. If deliver
// returns an error or panics, it is not called again for this entry.
//
// A Kind[any] captures signals with any payload, and signals without a payload.
//
//ephemeral:none
func New[P any](c Source, kind signals.Kind[P], deliver core.Work[Entry[P]], opts Options) (*Recorder[P], error) {
	if core.IsNil(c) || deliver == nil || kind.Name() == "" {
		return nil, errors.New("echo: New needs a coordinator, a kind that signals.NewKind has made, and a function that delivers entries")
	}
	r := &Recorder[P]{opts: opts.resolved(c, kind.Name())}
	var err error
	r.Relay, err = lastwords.NewRelay(c, r.entry, func(ctx context.Context, e Entry[P]) error {
		core.OperationFrom(ctx).SetKey(e.SignalKey())
		return deliver(ctx, e)
	}, core.Options{
		Name:           r.opts.Name,
		MaxConcurrency: r.opts.MaxConcurrency,
		MaxQueued:      r.opts.MaxQueued,
		Sink:           r.opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	return r, nil
}

// entry makes the entry of an operation. ok is false if there is no signal to capture.
func (r *Recorder[P]) entry(s core.Snapshot) (e Entry[P], ok bool) {
	e = Entry[P]{Note: lastwords.NoteOf(s), Pinned: s.Pins > 0, Finished: s.Finished}
	active := r.opts.Activate == ""
	for _, s := range s.Signals {
		active = active || s.Matches(r.opts.Activate)
		tooOld := r.opts.MaxAge > 0 && e.Time.Sub(s.Time) > r.opts.MaxAge
		if !active || tooOld || !s.Matches(r.opts.Capture) {
			continue
		}
		if p, ok := payload[P](s); ok {
			e.Captures = append(e.Captures, Capture[P]{s, p})
		}
	}
	if limit := r.opts.MaxPerOperation; limit > 0 && len(e.Captures) > limit {
		e.Missed = len(e.Captures) - limit
		e.Captures = append([]Capture[P](nil), e.Captures[e.Missed:]...)
		r.missed.Add(uint64(e.Missed))
	}
	return e, len(e.Captures) > 0
}

// payload returns the payload of a signal if it is a P. If P is any, a signal needs no payload.
func payload[P any](s signals.Signal) (p P, ok bool) {
	if s.Payload() == nil {
		_, ok = any(&p).(*any)
		return p, ok
	}
	p, ok = s.Payload().(P)
	return p, ok
}

// Stats returns the counters of the entries; see [lastwords.Relay]. SignalsDropped also counts
// the signals that MaxPerOperation left out.
func (r *Recorder[P]) Stats() core.Stats {
	s := r.Relay.Stats()
	s.SignalsDropped += r.missed.Load()
	return s
}

// An Entry has the captured signals of an operation. Time is when it left the window.
type Entry[P any] struct {
	lastwords.Note
	Pinned   bool         `json:"pinned,omitempty"` // see [core.Control.Pin]
	Finished time.Time    `json:"finished,omitzero"`
	Captures []Capture[P] `json:"captures"` // oldest first; at least one
	// Missed is how many older signals [Options.MaxPerOperation] left out.
	Missed int `json:"missed,omitempty"`
}

// SignalKey returns the id of the operation: the key of the signals of the delivery, and of
// [lastwords.Relay.Failed].
func (e Entry[P]) SignalKey() string { return e.Operation.String() }

// A Capture is one signal of an operation, with its payload.
type Capture[P any] struct {
	Signal  signals.Signal `json:"signal"`
	Payload P              `json:"payload"`
}
