package durable

import "time"

// MaxSignals is how many signals a store keeps for one key or item.
const MaxSignals = 1000

// A StepState is the state of a step of a flow. The numbers never change, so engines may store them.
type StepState uint8

const (
	StepBegun  StepState = iota + 1 // it is not known whether it took effect; an Await or Sleep waits
	StepDone                        // its result is stored
	StepUndone                      // its Compensate has returned nil
)

// A Step is the record of a step of a flow: see package flow.
type Step struct {
	Name        string        `json:"name"`
	Seq         int           `json:"seq"` // order of beginning in the flow, from 1
	State       StepState     `json:"state"`
	Compensates bool          `json:"compensates,omitempty"`
	Attempt     int           `json:"attempt,omitempty"` // of the item
	Took        time.Duration `json:"took,omitempty"`
	At          time.Time     `json:"at,omitzero"`      // when this state was recorded, by the clock of the store
	Until       time.Time     `json:"until,omitzero"`   // the deadline of an Await or Sleep; zero: another step
	Signal      string        `json:"signal,omitempty"` // the name of what an Await took; "" with StepDone: the deadline has passed
	Data        []byte        `json:"-"`                // JSON of the result, or the payload of the signal
}

// A Record is what a claim has to write about its steps.
type Record struct {
	ID      ItemID
	Token   int64
	Version int // of the flow, if it begins now
	Steps   []Step
}

// A Park is why an item goes back with [EndParked].
type Park struct {
	Step    string        // name of the Await or Sleep; "": it goes back to be claimed with another class
	Seq     int           // of that step
	Pattern string        // of names that end the wait; "": none, it sleeps
	For     time.Duration // until the deadline, when the step is parked for the first time; whole microseconds
	Class   string        // without a Step: the class with which it is to be claimed
}

// Parked is what a parked flow waits for.
type Parked struct {
	Step    string    `json:"step"`
	Pattern string    `json:"pattern,omitempty"` // "": it sleeps
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// A Journal is what a store knows of the flow of an item.
type Journal struct {
	Version int       `json:"version"`         // of the program with which it began
	Class   string    `json:"class,omitempty"` // of the item, as it was enqueued
	Undo    State     `json:"undo,omitempty"`  // it is undone, and becomes Dead, Halted or Cancelled then; 0: it is not
	Reason  string    `json:"reason,omitempty"`
	Wait    *Parked   `json:"wait,omitempty"` // while the item is Ready and Until is later than Time; else nil
	Steps   []Step    `json:"steps"`          // by Seq and Name
	Time    time.Time `json:"time"`           // when it was read, by the clock of the store
}

// A Signal is a signal that the store keeps for flows: for those of a key, or for one item.
type Signal struct {
	Seq      int64     `json:"seq"` // rises in the order of commits for each key
	Key      string    `json:"key,omitempty"`
	Item     ItemID    `json:"item,omitempty"`
	Name     string    `json:"name"`
	Data     []byte    `json:"data,omitempty"` // JSON
	Time     time.Time `json:"time"`
	UniqueID string    `json:"uniqueId,omitempty"`
	Taken    ItemID    `json:"taken,omitempty"` // the item whose flow took it; 0: none
}

// Signalled is the result of a [Signal] that was sent.
type Signalled struct {
	Seq       int64
	Duplicate bool // not added: a signal with this UniqueID is there
	Woken     bool // it ended the wait of a flow
}
