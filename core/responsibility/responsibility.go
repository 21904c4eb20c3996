package responsibility

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/internal/check"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The signals of a [Keeper] on its sink, with the key of the promise. They never
// acknowledge a promise.
const (
	SignalKept     = "responsibility.kept"     // the operation is pinned
	SignalReleased = "responsibility.released" // the promise has ended; the cause is the acknowledgement, if there was one
	SignalExpired  = "responsibility.expired"  // the promise was not acknowledged within its MaxPin
)

// A Pinner is the part of a coordinator that a [Keeper] needs. If it also has
// OnFinalized, as coordinators do, a promise ends when its operation leaves the
// window in spite of the pin.
type Pinner interface {
	Pin(id core.OperationID) (unpin func(), ok bool)
}

type finalizer interface {
	OnFinalized(func(core.Snapshot)) (cancel func())
}

// Options configure a [Keeper]. The zero value is the default.
type Options struct {
	// MaxPin is the longest time for which a promise keeps its operation pinned, if the
	// promise has no MaxPin; 0 means 5 minutes, negative no limit.
	MaxPin time.Duration
}

// resolved returns the options with defaults. All options are valid.
func (o Options) resolved() (Options, error) {
	o.MaxPin = cmp.Or(o.MaxPin, 5*time.Minute)
	return o, nil
}

// A Promise keeps an operation in the window until it is acknowledged, and says which
// signals acknowledge it. The zero Promise is valid.
type Promise struct {
	// Announce is the name of a signal to raise on the sink when the operation
	// is pinned; "" means none.
	//
	//ephemeral:raises
	Announce string
	// Ack is the pattern of the signals that acknowledge; see [signals.Match]. "", like
	// any pattern without a name, means Announce + ".ack", or "responsibility.ack.*"
	// without Announce. If Announce has commas, blanks or wildcards, set Ack as well.
	//
	//ephemeral:pattern
	Ack string
	// Key is what the promise is about: the key of the announcement and of the
	// signals that acknowledge. "" means the operation's id as text.
	//
	//ephemeral:none
	Key string
	// Description says why the operation is kept; Active shows it.
	Description string
	// MaxPin is the longest time for which the operation is pinned, from Keep on; 0 means
	// [Options.MaxPin], negative no limit.
	MaxPin time.Duration
}

// Kept is a promise that stands.
type Kept struct {
	Promise           // Ack, Key and MaxPin are set
	Since   time.Time // when the promise was made
	Until   time.Time // when the promise expires; zero if it does not
}

// A Keeper pins operations of one coordinator until they are acknowledged. Make one with
// [New] and close it, which releases what it still keeps.
//
// All methods are safe for concurrent use, also from bodies and handlers. A Keeper owns no
// goroutine, except for a moment when it ends a subscription. Each promise that can expire
// has a timer. It keeps one promise for each operation, and at most as many promises as
// the coordinator can pin operations. A signal costs it nothing, unless it may acknowledge
// a promise: then it costs a look into a map.
type Keeper struct {
	pinner Pinner
	sink   *signals.Sink
	opts   Options

	mu      sync.Mutex
	acks    map[string]*ack               // by pattern
	entered map[*promise]struct{}         // promises that do not stand yet
	byID    map[core.OperationID]*promise // promises that stand
	stood   uint64                        // number of promises that have stood so far
	closed  bool

	cancel func() // ends the calls of finalized; nil if there are none
}

// New makes a Keeper of operations of c, with signals on sink.
func New(c Pinner, sink *signals.Sink, opts Options) (*Keeper, error) {
	opts, err := opts.resolved()
	err = cmp.Or(
		check.Error(core.IsNil(c), "responsibility: the coordinator is nil, but New needs one to pin operations"),
		check.Error(sink == nil, "responsibility: the sink is nil, but announcements are signals of a sink"),
		err,
	)
	if err != nil {
		return nil, err
	}
	k := &Keeper{
		pinner:  c,
		sink:    sink,
		opts:    opts,
		acks:    make(map[string]*ack),
		entered: make(map[*promise]struct{}),
		byID:    make(map[core.OperationID]*promise),
	}
	if f, ok := c.(finalizer); ok {
		k.cancel = f.OnFinalized(k.finalized)
	}
	return k, nil
}

// Keep pins an operation until the promise is acknowledged, raises [SignalKept] and
// then the announcement, and reports true. Signals from the call on acknowledge, so the
// promise may have ended when Keep returns.
//
// It reports false, and raises nothing, if the operation cannot be pinned: it is unknown,
// it has left the window, or as many operations as possible are pinned. It also reports
// false after Close.
//
// A second promise for the same operation replaces the first: the time starts again, and
// the operation stays pinned. The end of the first is not reported.
func (k *Keeper) Keep(id core.OperationID, p Promise) bool {
	p.MaxPin = cmp.Or(p.MaxPin, k.opts.MaxPin)
	next := newPromise(id, p)
	if !k.enter(next) {
		return false
	}
	unpin, ok := k.pinner.Pin(id)
	if !ok {
		k.end(k.sink, "", next)
		return false
	}
	if !k.stand(next, unpin) {
		unpin()
		return false
	}
	k.sink.RaiseKey(SignalKept, next.terms.Key)
	if next.early != nil {
		k.end(k.sink.Because(*next.early), SignalReleased, next)
	}
	if p.Announce != "" {
		k.sink.RaiseKey(p.Announce, next.terms.Key)
	}
	return true
}

// Complete ends the promise for an operation now, acknowledged or not, for example
// to try again. It reports false if there is none.
func (k *Keeper) Complete(id core.OperationID) bool {
	k.mu.Lock()
	p := k.byID[id]
	k.mu.Unlock()
	return p != nil && k.end(k.sink, SignalReleased, p)
}

// Active yields the promises that stand when the loop starts, oldest first.
func (k *Keeper) Active() iter.Seq2[core.OperationID, Kept] {
	return func(yield func(core.OperationID, Kept) bool) {
		k.mu.Lock()
		all := k.standing()
		k.mu.Unlock()
		for _, p := range all {
			kept := Kept{Promise: p.terms, Since: p.since}
			if p.terms.MaxPin > 0 {
				kept.Until = p.since.Add(p.terms.MaxPin)
			}
			if !yield(p.id, kept) {
				return
			}
		}
	}
}

// Len is the number of promises that stand.
func (k *Keeper) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.byID)
}

// Close ends all promises, as Complete does, and accepts no more. It does not wait: a
// handler of an earlier acknowledgement may still run. It returns nil.
func (k *Keeper) Close() error {
	k.mu.Lock()
	first := !k.closed
	k.closed = true
	all := slices.AppendSeq(k.standing(), maps.Keys(k.entered))
	k.mu.Unlock()
	k.end(k.sink, SignalReleased, all...)
	if first && k.cancel != nil {
		go k.cancel() // cancel may wait for a handler
	}
	return nil
}
