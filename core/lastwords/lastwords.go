package lastwords

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// A Source is the part of a coordinator that a [Relay] needs. Cancel may be called many
// times.
type Source interface {
	OnFinalized(func(core.Snapshot)) (cancel func())
}

// A Journal stores notes of operations that leave a coordinator's window. Make one with
// [New].
type Journal = Relay[Note]

// New makes a journal of the operations that leave c from now on, or says what is wrong
// with the options. It is [NewRelay] with [NoteOf]. To select operations, or to add to the
// notes, call NewRelay with your own function.
func New(c Source, persist core.Work[Note], opts core.Options) (*Journal, error) {
	return NewRelay(c, func(s core.Snapshot) (Note, bool) { return NoteOf(s), true }, persist, opts)
}

// A Note is a record of an operation that has left its coordinator's window. It holds
// text only, so that it can be stored anywhere.
type Note struct {
	Operation core.OperationID `json:"operation"`
	Key       string           `json:"key,omitempty"`
	//ephemeral:raised
	Signal   string            `json:"signal,omitempty"` // name of the last signal it raised and did not retract
	Status   core.Status       `json:"status"`
	Err      string            `json:"error,omitempty"` // error of the body, or why the body did not run
	Time     time.Time         `json:"time"`            // when it left
	Metadata map[string]string `json:"metadata,omitempty"`
}

// NoteOf returns the note of an operation that leaves now, without metadata.
func NoteOf(s core.Snapshot) Note {
	n := Note{Operation: s.ID, Key: s.Key, Status: s.Status, Err: guard.Text(s.Err), Time: time.Now()}
	if len(s.Signals) > 0 {
		n.Signal = s.Signals[len(s.Signals)-1].Name
	}
	return n
}

// SignalKey returns the key for [Relay.Failed].
func (n Note) SignalKey() string { return n.Key }

// SignalFailed is raised for every value that was not delivered: see [Relay.Failed].
const SignalFailed = "lastwords.failed"

// A Failure is a value that was not delivered, and why: the error of the function, a
// [*core.PanicError] if it panicked, [core.ErrDropped] when there was no room for the
// value, [core.ErrStopped] or [core.ErrClosed].
type Failure[T any] struct {
	Value T
	Err   error
}

// A Relay makes a value of each operation that leaves a coordinator's window, and delivers it
// to a function. The coordinator never waits for the function: values are queued, and when
// the queue is full the oldest one is dropped. Make a Relay with [NewRelay]. The coordinator
// keeps it alive until the relay is closed, or has ended its intake and delivered all values.
// It owns a goroutine only while there are values to deliver. All methods are safe for
// concurrent use, from the function too. The function that makes values must not call Drain
// and Stop: they wait for it.
//
// After Complete, Drain, Stop and Close it accepts no values. Drain delivers waiting values:
// close the coordinator first, so that the operations that are left in its window have values.
// Stop and Close drop waiting values and count them as Cancelled: to deliver them, call Drain
// with a deadline first.
//
// Its operations are the values. In Stats, a value that was delivered is Succeeded.
// Others are Failed, Dropped because the queue was full, or Cancelled by Stop or
// Close. A value that comes after the end is Rejected.
type Relay[T any] struct {
	core.Control
	values *core.Coordinator[T]
	value  func(core.Snapshot) (T, bool)
}

// NewRelay makes a relay for the operations that leave c from now on, or returns an error.
// Value makes the value of an operation and reports whether to deliver it. It is called on
// the goroutine that evicts the operation and delays that goroutine, so it should be quick.
// If it panics, c counts the panic and nothing is delivered. Deliver gets each value with a
// context that ends when the relay is closed. If deliver returns an error or panics, it is
// not called again for that value.
//
// The options configure the coordinator that calls deliver. The default of Name is
// "lastwords". MaxConcurrency is by default 1: values are delivered one at a time, in order.
// MaxQueued is how many values may wait before the oldest is dropped. A coordinator that is
// closed evicts its whole window at once: to lose none of that, set MaxQueued to at least
// the number of operations that it tracks. OnDone gets every value, as the Item, with its
// outcome. NewRelay itself sets DropOldest, MaxTracked and EchoCapacity.
func NewRelay[T any](c Source, value func(core.Snapshot) (T, bool), deliver core.Work[T], opts core.Options) (*Relay[T], error) {
	if core.IsNil(c) || value == nil {
		return nil, errors.New("lastwords: a relay needs a coordinator, and a function that makes a value of a snapshot, not nil")
	}
	r := &Relay[T]{value: value}
	opts.Name, opts.MaxConcurrency = cmp.Or(opts.Name, "lastwords"), cmp.Or(opts.MaxConcurrency, 1)
	opts.DropOldest = true // so that the coordinator does not wait
	opts.MaxTracked, opts.EchoCapacity = -1, -1
	done := opts.OnDone
	opts.OnDone = func(s core.Snapshot) {
		if s.Status != core.StatusSucceeded {
			r.failed(s)
		}
		if done != nil {
			done(s)
		}
	}
	values, err := core.NewCoordinator(deliver, opts)
	if err != nil {
		return nil, fmt.Errorf("lastwords: relay %q: %w", opts.Name, err)
	}
	r.Control, r.values = values.Control, values
	r.OnClosed(c.OnFinalized(func(s core.Snapshot) { r.Record(s) })) // a late value is counted
	return r, nil
}

// Failed is the kind of the signal that is raised on the relay's sink for every value that
// was not delivered. If the value has a method SignalKey() string, as a [Note] has, that is
// the key. A handler delays the goroutine that calls it. Flush, Drain, Stop and Close return
// after the handlers for the values that they wait for. Inside a handler, these methods
// return [core.ErrWouldDeadlock]. A handler must not give a value that was dropped back to
// Add: the queue is still full, so a value would be dropped again, and so on.
//
//ephemeral:is {SignalFailed}
func (r *Relay[T]) Failed() core.Kind[Failure[T]] { return core.NewKind[Failure[T]](SignalFailed) }

func (r *Relay[T]) failed(s core.Snapshot) {
	key := ""
	if v, ok := s.Item.(interface{ SignalKey() string }); ok {
		key, _ = guard.Value("SignalKey", v.SignalKey)
	}
	value, _ := s.Item.(T) // fails only for a nil interface
	r.Failed().Raise(r.Sink(), key, Failure[T]{value, s.Err})
}

// Record makes a value of a snapshot from elsewhere, such as another coordinator's
// OnFinalized, and accepts it as Add does. If there is no value it does nothing.
func (r *Relay[T]) Record(s core.Snapshot) error {
	if v, ok := r.value(s); ok {
		return r.Add(v)
	}
	return nil
}

// Add accepts a value from elsewhere. It never waits: when the queue is full the oldest
// value is dropped. It returns [core.ErrClosed] after Complete, Drain, Stop and Close.
func (r *Relay[T]) Add(value T) error {
	_, err := r.values.TryEnqueue(context.Background(), value)
	return err
}
