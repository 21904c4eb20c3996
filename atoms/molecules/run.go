package molecules

import (
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Run is one execution of a [Blueprint]. Its steps share it. All methods are safe for
// concurrent use. The operation of the run raises the signals of the run, and the trigger is their
// cause. So the sink's [signals.Propagation] ends loops of signals over any number of blueprints.
// When the runner does not show the run any more, the methods raise nothing.
//
// To test the function of a step, make a Run by hand: &Run{Trigger: s}. It stores values
// and raises nothing.
type Run struct {
	// Trigger is the signal that started the run.
	Trigger signals.Signal

	blueprint *Blueprint
	op        *core.Operation // nil until the run begins
	wake      chan struct{}   // has room for one value, which says that an awaited signal has come

	// Guarded by the mutex of runs.
	after    uint64                 // signals with a Seq up to this one are not for this run
	received map[int]signals.Signal // for each step, the newest signal that has come

	mu      sync.Mutex
	state   runState
	awaited signals.Signal
	values  map[string]any
}

// runState says which step a run has reached. It is a value of the operation of the run, for
// people who look at the operation.
type runState struct {
	Blueprint string `json:"blueprint"`
	Step      string `json:"step,omitempty"` // the current step, or the last one
	//ephemeral:none
	Awaiting     string `json:"awaiting,omitempty"` // the pattern of the signals that the step waits for
	Compensating bool   `json:"compensating,omitempty"`
}

// valueState is the name of this value.
const valueState = "molecule"

// ID is the id of the run's operation, for [core.Control.Lookup] and others.
func (r *Run) ID() core.OperationID { return r.op.ID() }

// Blueprint is the name of the blueprint.
func (r *Run) Blueprint() string {
	if r.blueprint == nil {
		return ""
	}
	return r.blueprint.Name
}

// Awaited returns the signal that the current step has awaited. If several had come when the
// step started, Awaited returns the newest one. If the step awaits none, Awaited returns false.
func (r *Run) Awaited() (signals.Signal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.awaited, r.awaited.Seq != 0
}

// Raise raises a signal with the key of the trigger, and reports whether the sink has recorded
// the signal; see [signals.Raiser].
//
//ephemeral:raises {name}
func (r *Run) Raise(name string) bool { return r.Raiser().RaiseKey(name, r.Trigger.Key) }

// Raiser returns a raiser for signals that have a payload:
//
//	OrderShipped.Raise(r.Raiser(), r.Trigger.Key, parcel)
func (r *Run) Raiser() signals.Raiser { return r.op.Because(r.Trigger) }

// Set stores a value for later steps, which read it with [Value]. To read it outside of the run,
// use [core.Value] with a snapshot of the run's operation. The value is shared, not copied: do not
// change it afterwards. If name is "molecule", Set panics.
func (r *Run) Set(name string, v any) {
	if name == valueState {
		panic("molecules: Set of \"molecule\", which is the runner's own")
	}
	r.mu.Lock()
	if r.values == nil {
		r.values = make(map[string]any)
	}
	r.values[name] = v
	r.mu.Unlock()
	r.op.Set(name, v)
}

// Value returns the value that a step has stored under name. If there is none, or if it is not
// of type V, Value returns false.
func Value[V any](r *Run, name string) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.values[name].(V)
	return v, ok
}

// setState says which step the run has reached.
func (r *Run) setState(s runState, awaited signals.Signal) {
	s.Blueprint = r.blueprint.Name
	r.mu.Lock()
	r.state, r.awaited = s, awaited
	r.mu.Unlock()
	r.op.Set(valueState, s)
}
