package responsibility

import (
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// What a [Keeper] reports on its sink, with the key of the promise. None of these
// acknowledges a promise.
const (
	SignalKept     = "responsibility.kept"     // the operation is pinned
	SignalReleased = "responsibility.released" // the promise has ended; a cause is what acknowledged it
	SignalExpired  = "responsibility.expired"  // nobody acknowledged it within Options.MaxPin
)

const defaultMaxPin = 5 * time.Minute

// A Pinner is what a [Keeper] needs of a coordinator. If it also has OnFinalized, as
// coordinators do, a promise ends when its operation leaves the window in spite of
// the pin.
type Pinner interface {
	Pin(id core.OperationID) (unpin func(), ok bool)
}

type finalizer interface {
	OnFinalized(func(core.Snapshot)) (cancel func())
}

// Options configure a [Keeper]. The zero value is the default.
type Options struct {
	// MaxPin is how long a promise keeps its operation pinned at most; 0 means
	// 5 minutes, negative no limit.
	MaxPin time.Duration
}

// A Promise says that somebody answers for an operation until it is acknowledged,
// and how that is done. The zero Promise is valid.
type Promise struct {
	// Announce is the name of a signal to raise on the sink when the operation
	// is pinned; "" means none.
	Announce string
	// Ack is the pattern of the signals that acknowledge; see [core.Match]. ""
	// means the one name Announce + ".ack", or without Announce the pattern
	// "responsibility.ack.*". So does what can match nothing, like a blank.
	Ack string
	// Key is what the promise is about. The announcement bears it, and only
	// signals that bear it acknowledge. "" means the operation's id as text.
	Key string
	// Description says why the operation is kept, for those who look at Active.
	Description string
}

// Kept is a promise that stands.
type Kept struct {
	Promise           // with the Ack and the Key that acknowledge it
	Since   time.Time // when it was made
	Until   time.Time // when it expires; zero if it does not
}

// A Keeper pins operations of one coordinator until somebody acknowledges them.
// Make one with [New] and close it, which releases what it still keeps.
//
// All methods are safe for concurrent use, also from bodies and handlers. A Keeper
// owns no goroutine; while a promise stands that can expire, a timer is pending. It
// keeps as many promises as the coordinator lets be pinned, one for an operation. A
// signal costs it nothing unless it may acknowledge something, and then a look into
// a map.
type Keeper struct {
	pinner Pinner
	sink   *core.Sink
	maxPin time.Duration // 0: no limit

	mu     sync.Mutex
	book   book
	final  listener // to the pinner's OnFinalized
	timer  *time.Timer
	armed  bool
	closed bool
}

// New makes a Keeper of operations of c, which raises and hears signals on sink.
func New(c Pinner, sink *core.Sink, opts Options) (*Keeper, error) {
	if c == nil {
		return nil, errors.New("responsibility: New needs a coordinator to pin operations of, not nil")
	}
	if sink == nil {
		return nil, errors.New("responsibility: New needs a sink to raise and hear signals on, not nil")
	}
	k := &Keeper{pinner: c, sink: sink, book: newBook()}
	switch {
	case opts.MaxPin == 0:
		k.maxPin = defaultMaxPin
	case opts.MaxPin > 0:
		k.maxPin = opts.MaxPin
	}
	if f, ok := c.(finalizer); ok {
		k.final.cancel = f.OnFinalized(k.finalized)
	}
	return k, nil
}

// Keep pins an operation until the promise is acknowledged, raises [SignalKept] and
// then the announcement, and reports true. What is raised from the call on
// acknowledges, so the promise may have ended by the time Keep returns.
//
// It reports false, and announces nothing, if the operation cannot be pinned: it is
// unknown, it has left the window, or as many as may be are pinned already. After
// Close it is false as well.
//
// A second promise for the same operation replaces the first, whose end is not
// reported: the time starts again, and the operation stays pinned all the while.
func (k *Keeper) Keep(id core.OperationID, p Promise) bool {
	next := newPromise(id, p)
	if !k.enter(next) {
		return false
	}
	unpin, ok := k.pinner.Pin(id)
	if !ok {
		k.release(next, k.sink, "")
		return false
	}
	if !k.stand(next, unpin) {
		unpin()
		return false
	}
	key := next.terms.Key
	k.sink.RaiseKey(SignalKept, key)
	if next.early != nil {
		k.release(next, k.sink.Because(*next.early), SignalReleased)
	}
	if p.Announce != "" {
		k.sink.RaiseKey(p.Announce, key)
	}
	return true
}

// Complete ends the promise for an operation now, acknowledged or not, for example
// to try again. It reports false if there is none.
func (k *Keeper) Complete(id core.OperationID) bool {
	var after aftermath
	k.mu.Lock()
	p := k.book.byID[id]
	if p != nil {
		k.end(p, &after)
	}
	k.mu.Unlock()
	after.settle(k.sink, SignalReleased)
	return p != nil
}

// Active walks the promises that stand, the oldest first, as of the start of the
// loop.
func (k *Keeper) Active() iter.Seq2[core.OperationID, Kept] {
	return func(yield func(core.OperationID, Kept) bool) {
		k.mu.Lock()
		all := k.book.all()
		k.mu.Unlock()
		for _, p := range all {
			kept := Kept{Promise: p.terms, Since: p.since}
			if k.maxPin > 0 {
				kept.Until = p.since.Add(k.maxPin)
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
	return len(k.book.byID)
}

// Close ends all promises, as Complete does, and lets no more be made. It waits for
// nobody: a handler of an acknowledgement that came before may still run. It returns
// nil.
func (k *Keeper) Close() error {
	var after aftermath
	k.mu.Lock()
	k.closed = true
	for p := range k.book.entered {
		k.end(p, &after)
	}
	for _, p := range k.book.all() {
		k.end(p, &after)
	}
	after.cancel(k.final.end())
	k.mu.Unlock()
	after.settle(k.sink, SignalReleased)
	return nil
}
