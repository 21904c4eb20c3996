package molecules

import (
	"maps"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Run is a molecule being made: what its steps know of each other. All methods
// are safe for concurrent use. What it raises is raised by the operation that the
// run is, because of its trigger; so signals that set each other off in a circle,
// over any number of molecules, are stopped by the sink's [core.Propagation].
// After the run has ended and left the window they raise nothing.
//
// A Run that is made by hand, &Run{Trigger: s}, is for tests of a step's functions:
// it keeps values, and raises nothing.
type Run struct {
	// Trigger is the signal that set the run off.
	Trigger core.Signal

	blueprint *Blueprint
	op        *core.Operation // once begun

	// Guarded by the roll.
	id      core.OperationID
	claimed bool                // somebody tells how it ends: itself, or who has cancelled it before it began
	begun   bool                // it is itself
	since   uint64              // it heeds signals with a Seq beyond this
	arrived map[int]core.Signal // by step: what it awaits

	news chan struct{} // has room for one: "look again"

	mu      sync.Mutex
	state   State
	awaited core.Signal
	values  map[string]any
}

// State is where a run is, under [ValueState] in the snapshot of its operation:
//
//	state, ok := core.Value[molecules.State](snapshot, molecules.ValueState)
type State struct {
	Blueprint    string `json:"blueprint"`
	Step         string `json:"step,omitempty"`     // the current one, or the last
	Awaiting     string `json:"awaiting,omitempty"` // the pattern of the signals that this step waits for
	Compensating bool   `json:"compensating,omitempty"`
}

// ValueState is the name under which an operation of a [Runner] stores its
// [State], once it has begun.
const ValueState = "molecule"

// ID is the id of the run's operation, with which the runner finds it.
func (r *Run) ID() core.OperationID { return r.op.ID() }

// Blueprint is the name of the blueprint.
func (r *Run) Blueprint() string {
	if r.blueprint == nil {
		return ""
	}
	return r.blueprint.Name
}

// Step is the name of the current step, be it that it is done or undone.
func (r *Run) Step() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Step
}

// Awaited is the signal that the current step has awaited: the newest, if several
// had come when it started. It is false if the step awaits none.
func (r *Run) Awaited() (core.Signal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.awaited, r.awaited.Seq != 0
}

// Raise raises a signal with the key of the trigger, and reports whether it was
// recorded; see [core.Raiser].
func (r *Run) Raise(name string) bool { return r.Raiser().RaiseKey(name, r.Trigger.Key) }

// RaiseKey is Raise with another key.
func (r *Run) RaiseKey(name, key string) bool { return r.Raiser().RaiseKey(name, key) }

// Raiser is where signals of the run are raised, for those with a payload:
//
//	OrderShipped.Raise(r.Raiser(), r.Trigger.Key, parcel)
func (r *Run) Raiser() core.Raiser { return r.op.Because(r.Trigger) }

// Set stores a value for later steps, and for others to read from the snapshots of
// the run's operation with [core.Value]. The value is shared, not copied: treat it
// as immutable from here on. The name [ValueState] is taken: Set panics.
func (r *Run) Set(name string, v any) {
	if name == ValueState {
		panic("molecules: Set of ValueState, which is the runner's own")
	}
	r.mu.Lock()
	if r.values == nil {
		r.values = make(map[string]any)
	}
	r.values[name] = v
	r.mu.Unlock()
	r.op.Set(name, v)
}

// Values returns a copy of what the steps have stored.
func (r *Run) Values() map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.values)
}

// Value returns a value that a step has stored under name, if it is of type V.
func Value[V any](r *Run, name string) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.values[name].(V)
	return v, ok
}

// enter says where the run is now.
func (r *Run) enter(s State, awaited core.Signal) {
	s.Blueprint = r.blueprint.Name
	r.mu.Lock()
	r.state, r.awaited = s, awaited
	r.mu.Unlock()
	r.op.Set(ValueState, s)
}
