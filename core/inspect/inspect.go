package inspect

import (
	"context"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A StoredQueue is a queue whose items are in a store, which processes may share. A
// status page shows and controls it through this interface; other code does not need it.
// The method Inspect of a durable.Queue returns one. Its methods may do I/O.
type StoredQueue interface {
	Name() string
	Status(ctx context.Context) (QueueStatus, error)
	// Items returns a page of the items that match selects.
	Items(ctx context.Context, match ItemQuery) (ItemPage, error)
	// Again makes a dead item ready to run, Discard gives it up. Both return false if the
	// item was not dead.
	Again(ctx context.Context, id int64) (bool, error)
	Discard(ctx context.Context, id int64) (bool, error)
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// QueueStatus is the state of a [StoredQueue].
type QueueStatus struct {
	Counts []StateCount  `json:"counts"` // in the order of an item's life
	Oldest time.Duration `json:"oldest"` // the wait of the item that has waited longest
	Nodes  int           `json:"nodes"`  // processes that serve the queue
	Paused bool          `json:"paused"`
	Note   string        `json:"note,omitempty"` // what makes the queue slow, for people
}

// A StateCount says how many items are in a state.
type StateCount struct {
	State string `json:"state"`
	Items int    `json:"items"`
}

// An ItemQuery selects items of a [StoredQueue] that match all fields that are not zero.
type ItemQuery struct {
	State          string        // names of states, joined by "|": dead and halted items are not tried any more
	Lane, Class    string        // "" is any
	Key            string        // "" is any
	Err            string        // a part of the error
	MinAge, MaxAge time.Duration // since the item was added
	After          string        // Next of the page before; "" is the first page
	Limit          int           // 0 is the default of the queue
}

// An ItemPage has some items. A page may be short, or empty, and have a Next.
type ItemPage struct {
	Items []StoredItem `json:"items"`
	Next  string       `json:"next,omitempty"` // "": this is the last page
}

// A StoredItem is an item of a [StoredQueue].
type StoredItem struct {
	ID       int64     `json:"id"`
	Key      string    `json:"key,omitempty"`
	Lane     string    `json:"lane,omitempty"`
	Class    string    `json:"class,omitempty"`
	State    string    `json:"state"`
	Attempts int       `json:"attempts"`
	Enqueued time.Time `json:"enqueued,omitzero"`
	RunAt    time.Time `json:"runAt,omitzero"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Node     string    `json:"node,omitempty"`
	Err      string    `json:"error,omitempty"`
	Note     string    `json:"note,omitempty"` // why the item waits
	Text     string    `json:"text,omitempty"` // what the item is, for people

	Metadata map[string]string `json:"metadata,omitempty"`
}

// Items is what a [StoredQueue] may have besides: a status page asks whether it has these methods. The queues of package
// durable have them.
type Items interface {
	// Item returns an item with its history, or false if the queue has no such item.
	Item(ctx context.Context, id int64) (ItemDetail, bool, error)
	// Count counts the items that match selects. It ignores After and Limit.
	Count(ctx context.Context, match ItemQuery) (int, error)
	// AgainAll and DiscardAll are Again and Discard for the items that match selects, at most match.Limit if that is
	// positive; AgainAll may change cancelled items, too. CancelAll gives up items that wait as well, and ends those that
	// run. All three return how many items they changed, also with an error.
	AgainAll(ctx context.Context, match ItemQuery) (int, error)
	DiscardAll(ctx context.Context, match ItemQuery) (int, error)
	CancelAll(ctx context.Context, match ItemQuery, reason string) (int, error)
}

// An ItemDetail is an item with its history.
type ItemDetail struct {
	StoredItem
	Why     string        `json:"why"`             // why it waits, where it runs, or how it ended
	History []ItemAttempt `json:"history"`         // the oldest first; a store may keep only the last ones
	Steps   []ItemStep    `json:"steps,omitempty"` // of its flow, in the order in which they began: work of several steps that the store keeps
}

// An ItemStep is a step of the flow of an item.
type ItemStep struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // begun, waits, done, failed, undone or half undone
	Attempts int       `json:"attempts,omitempty"`
	Started  time.Time `json:"started,omitzero"` // zero: not known
	Ended    time.Time `json:"ended,omitzero"`
	// Signal is the name of what it took. While it waits, it is the pattern of what it waits for, or "" if it sleeps.
	//ephemeral:none
	Signal string    `json:"signal,omitempty"`
	Until  time.Time `json:"until,omitzero"` // the deadline of a wait; zero: it is no wait
}

// An ItemAttempt is one attempt to run an item.
type ItemAttempt struct {
	State   string    `json:"state"` // how it ended, or running
	Node    string    `json:"node,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Err     string    `json:"error,omitempty"`
}

// Schedules are named plans that start work by the clock. A status page shows and
// controls them through this interface; other code does not need it. A
// scheduledtasks.Scheduler implements it. Pause and Resume take a pattern of names (see
// signals.Match) and return how many plans they changed.
type Schedules interface {
	Name() string
	Status() []ScheduleStatus // by name
	//ephemeral:none
	Pause(pattern string) int
	//ephemeral:none
	Resume(pattern string) int
	RunNow(ctx context.Context, name string) error
}

// ScheduleStatus is the state of one of the [Schedules].
type ScheduleStatus struct {
	Name   string    `json:"name"`
	When   string    `json:"when"`          // the plan, such as a cron expression
	Last   time.Time `json:"last,omitzero"` // zero: never yet
	Next   time.Time `json:"next,omitzero"` // zero: never again
	Paused bool      `json:"paused"`

	Description string `json:"description,omitempty"`
}

// Firings is what [Schedules] may have besides: a status page asks whether they have this method. A
// scheduledtasks.Scheduler has it.
type Firings interface {
	// Firings returns the last firings of a schedule, the newest first: a page shows 20.
	Firings(name string) []Firing
}

// A Firing is a tick of a schedule, or a start by RunNow, and what became of it.
type Firing struct {
	Tick      time.Time        `json:"tick"`
	State     string           `json:"state"`               // such as missed, skipped, failed, handed over, or the status of the operation
	Operation core.OperationID `json:"operation,omitempty"` // that it became
	Err       string           `json:"error,omitempty"`     // or the reason
}

// Actions are what a person does with a coordinator, for example on a status page.
// [core.Control] implements it, and so does every type that embeds a Control.
type Actions interface {
	Cancel(id core.OperationID, cause error) bool
	Evict(id core.OperationID) bool
	Pause()
	Resume()
	SetMaxConcurrency(n int) error
}

var _ Actions = core.Control{}
