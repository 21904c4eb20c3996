package durable

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

const (
	// MaxAttempts is how many attempts of an item a store keeps.
	MaxAttempts = 10
	// MaxAttemptError is the maximum length of the error of an attempt that is kept, in characters.
	MaxAttemptError = 1000
)

// An Attempt is a claim of an item that has ended, or the current one.
type Attempt struct {
	Token   int64     `json:"token"`
	Kind    EndKind   `json:"kind,omitempty"` // how it ended; 0: it has not
	Node    string    `json:"node"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Err     string    `json:"err,omitempty"` // or the reason of a [Snooze], cut to [MaxAttemptError] characters
}

var kindNames = []string{"running", "done", "retry", "dead", "halted", "snoozed", "given back", "cancelled", "lost", "parked", "half undone"}

// String is the kind in lower case.
func (k EndKind) String() string { return kindNames[min(int(k), len(kindNames)-1)] }

// MarshalText is String, for JSON.
func (k EndKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// stateKind is how an attempt ended after which an item has a state.
var stateKind = map[State]EndKind{Done: EndDone, Retry: EndRetry, Dead: EndDead, Halted: EndHalted, Cancelled: EndCancelled}

// failed are the states after a failed attempt.
const failed = Retry | Dead | Halted

var stateAfter = map[EndKind]State{EndDone: Done, EndRetry: Retry, EndDead: Dead, EndHalted: Halted, EndSnoozed: Ready, EndGivenBack: Ready, EndCancelled: Cancelled, EndParked: Ready, EndHalfUndone: Halted}

// Apply changes Attempts, Losses, Flow and Err of an item as the end of its claim says, for engines that decide in Go. If Item.Flow is
// not 0, j has Undo, Reason, and Steps with at least one that is to be undone, if there are any. It returns
// the State that follows, and the [Attempt] that is to be kept; kind 0: none. If Flow is 2 now, and was not, RunAt is now, and
// Undo and Reason of j have changed.
func (e End) Apply(i *Item, j *Journal) (state State, kind EndKind, text string) {
	state = stateAfter[e.Kind]
	if e.Kind != EndGivenBack {
		i.Losses = 0
	}
	if state == Halted && i.Key == "" && e.Kind != EndHalfUndone {
		state = Dead
	}
	switch {
	case i.Flow == 2 && state&(Dead|Halted|Cancelled) != 0 && e.Kind != EndHalfUndone: // a Cancel may have changed it meanwhile
		state, i.Err = j.Undo, j.Reason
	case i.Cancel != "" && state&(Waiting|Dead|Halted) != 0:
		state, i.Err = Cancelled, i.Cancel
	case state == Ready:
		if i.Attempts--; e.Kind == EndSnoozed {
			return state, e.Kind, e.Err
		}
		return state, 0, ""
	default:
		i.Err = e.Err
	}
	if state == Done {
		return state, 0, ""
	}
	if kind = stateKind[state]; e.Kind == EndHalfUndone {
		kind = e.Kind
	}
	if i.Flow == 1 && state != Retry && j.undoes() {
		i.Flow, i.Attempts, i.Cancel, j.Undo, j.Reason, state = 2, 0, "", state, i.Err, Ready
	}
	return state, kind, i.Err
}

// undoes reports whether there is a step to be undone.
func (j *Journal) undoes() bool {
	return slices.ContainsFunc(j.Steps, func(s Step) bool { return s.Compensates && s.State != StepUndone })
}

const lostClaim = "the lease of the node was lost"

// attempted adds an attempt to the item in memory.
func (i *memItem) attempted(token int64, kind EndKind, text string, now time.Time) {
	if r := []rune(text); len(r) > MaxAttemptError {
		text = string(r[:MaxAttemptError])
	}
	i.attempts = append(i.attempts, Attempt{token, kind, i.Node, i.Started, now, text})
	i.attempts = i.attempts[max(0, len(i.attempts)-MaxAttempts):]
}

// UniqueBy makes an id for [ItemOptions].Unique from values: equal values have the same id. It is a hash of their
// JSON. UniqueBy panics if a value has no JSON form.
func UniqueBy(values ...any) string {
	var text []byte
	var err error
	if panicked := guard.Do("MarshalJSON", func() { text, err = json.Marshal(values) }); panicked != nil || err != nil {
		panic(fmt.Sprintf("durable: UniqueBy got a value without a JSON form: %v", cmp.Or(panicked, err)))
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:16])
}
