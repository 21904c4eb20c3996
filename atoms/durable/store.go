package durable

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Limits of every store. A [Queue] checks them before it calls the store.
const (
	// MaxText is the length of a queue name, key, lane or unique id in bytes at most. These
	// texts are valid UTF-8 without NUL.
	MaxText = 512
	// MaxData is the length of an encoded item in bytes at most.
	MaxData = 1 << 20
	// MaxError is the length of an error text in bytes at most. It is cut to that, and made
	// valid UTF-8 without NUL, before a store gets it.
	MaxError = 4096
	// MaxBatch is how many items, ends or ids one call of a store gets at most.
	MaxBatch = 500
)

// The errors of stores. Compare them with errors.Is.
var (
	// ErrLeaseLost means that a node has not beaten for its lease, so its claims are free for
	// other nodes. It is the cause with which a node cancels its bodies, and the error of
	// [Store.Beat] and [Store.Claim] for a node that is gone.
	ErrLeaseLost = errors.New("durable: the lease of the node is lost")
	// ErrUndecided means that the context ended, or the connection broke, at a moment when it
	// cannot be said whether a change has been made. An error without it means that it has not.
	ErrUndecided = errors.New("durable: it is not known whether the change has been made")
)

// A Store keeps items and decides which node runs which. [New] makes a [Queue] of it. What is
// in the store is shared by all processes that open it.
//
// # What all methods promise
//
// Each call is one decision of the database: one transaction, done whole or not at all, and
// durable when it returns nil. All times are those of the database's clock, in microseconds
// or finer; callers send durations only. An engine that several hosts share takes the clock
// of the server; an engine on one host may take that of the host. If the context has ended,
// methods return its cause and change nothing; an error after which the change may have been
// made wraps [ErrUndecided]. All methods are safe for concurrent use, by processes as well.
// Slices that are passed in are not kept or changed; the caller owns those that are returned,
// which are nil if they are empty.
// Queues are independent, and exist as soon as they are named.
//
// # The life of an item
//
//	       +-- Blocked <-------------------+
//	Insert |      | promoted               | Again
//	       +-> Ready -> Running -> Done    |
//	             ^  ^    | | | +-> Dead ---+
//	             |  +----+ | +---> Cancelled
//	             | given   |         ^
//	             | back,   +-> Retry-+   (Cancel ends what waits or is dead)
//	             | snoozed,     |
//	             | expired      +-> Running
//
// An item with a key is the head of its key while it is Ready, Running, Retry or Halted. At
// most one item of a key is its head: let a partial unique index on (queue, key) decide that.
// The others of the key that wait are Blocked. Items with the key "" have no order; they are
// never Blocked. At every instant that another transaction can see, a key with Blocked items
// has a head.
//
// To promote a key: the head has just left, so the Blocked item of the key with the smallest
// (Rank, ID) becomes Ready with RunAt = the later of its RunAt and now. It is done in the
// transaction in which the head left. So that an Insert does not miss it, every call that
// inserts for a key, or lets its head leave, first takes the lock of the key, and reads after
// it has the lock.
//
// # Locks
//
// In PostgreSQL (READ COMMITTED), the lock of a key or queue is pg_advisory_xact_lock of a
// hash; several are taken sorted by hash, keys before rows, and rows sorted by ID. A hash that
// is taken by two keys costs waiting only. Each lock is a statement of its own, so that the
// next statement has a newer snapshot. Send a transaction in one round trip, as a pipeline or
// a function: a process that is stopped in the middle must not hold a lock that others need.
// Sequences have CACHE 1. In SQLite, BEGIN IMMEDIATE is every lock.
//
// # Beside this interface
//
// Engines also offer, as functions of their own:
//
//   - Enqueue[T](ctx, tx, q *Queue[T], item T) (ItemID, error): Insert in the transaction of
//     the caller, for queue q.Name(), of what q.Prepare(item) (Insert, error) returns. The
//     lock of the key is held until the caller commits.
//   - Finish(ctx, tx): End with [EndDone] in the transaction of the caller, for the claim that
//     [ClaimFrom] returns, without HandOver. If the claim is no longer the item's it returns
//     [ErrLeaseLost], and the caller must roll back. Then it calls [MarkFinished].
//   - LastTick(ctx, schedule string) (time.Time, error) and MarkTick(ctx, schedule
//     string, tick time.Time) error: the store of scheduledtasks, a table with one row for
//     each schedule. MarkTick never moves a tick back.
//   - [Waker], if the database can wake up other processes.
//   - Inside(ctx) bool, a method, if a transaction of a caller keeps all others waiting: whether
//     the caller is in one. Then Enqueue returns [core.ErrWouldDeadlock] at once.
type Store interface {
	// Insert adds items, in their order, and returns what became of each. Their IDs rise in
	// that order, and those of a key in the order of commits: take the ID after the lock of
	// the key. An item is Ready with RunAt = now + Delay; if its key has a head, or an
	// earlier item of the call is its head, it is Blocked.
	//
	// An item with a Unique id is not added if the queue got an item with that id, in an
	// earlier call or earlier in this one, whose UniqueFor has not passed since: then
	// Inserted has the ID of that one, whatever became of it, even if it is pruned. A table
	// of its own, with (queue, unique) as key, decides that with one upsert. Upserts of
	// several ids are sorted.
	Insert(ctx context.Context, queue string, items []Insert) ([]Inserted, error)

	// Join adds a node to node.Queue, alive for node.Lease from now, and returns an ID for it
	// that was never used before. Names need not be unique. What else is in node is kept for
	// Explain.
	Join(ctx context.Context, node Node) (NodeID, error)

	// Beat first ends the nodes of the queue whose leases are over: it deletes them, and makes
	// their Running items Ready, with the RunAt and Attempts that they have and Token 0. They
	// stay heads, so nothing is promoted. (In PostgreSQL: delete the nodes, and change the
	// items in the next statement, which sees what a claim has committed meanwhile.)
	// Each ended node is in Lost of one call only.
	//
	// Then, if the node itself is alive, its lease is node.Lease from now; a node that is gone
	// is not revived: [ErrLeaseLost]. In that case what else was done stays done. Note says why
	// the node does not claim, for Explain; "" if it does. Claims are all items that are
	// Running on it.
	Beat(ctx context.Context, node Node, note string) (Beaten, error)

	// Leave ends a node at once, in the way of Beat. It is no error if it is gone.
	Leave(ctx context.Context, node Node) error

	// Claim makes up to want.Max items Running on the node and returns them with their new
	// Token, which is higher than all that the store gave out before, Attempts one higher,
	// Started = now, and Node and Expires of the node.
	//
	// Under the lock of the queue: if the node is not alive (lock its row FOR SHARE against
	// Beat), it returns ErrLeaseLost. If the queue is paused, nothing. Candidates are Ready or
	// Retry with RunAt <= now in the lanes of node.Lanes. It takes them lane by lane, in the
	// order of node.Lanes, within a lane by (RunAt, ID) (FOR UPDATE SKIP LOCKED), such that not
	// more than node.MaxCluster items of the queue, and not more than Limit of a lane, are
	// Running; 0 is no limit. With want.Aged > 0, the first item taken is that with the
	// smallest (RunAt, ID) of all these lanes which have room, if its RunAt is want.Aged or
	// longer ago. The order of the result is that in which they were taken. Fewer than there
	// are may be taken, but not in another order.
	//
	// An item that has a Cancel is claimed like others: the caller ends it.
	Claim(ctx context.Context, node Node, want Want) ([]Item, error)

	// End ends claims and returns what became of each. There is at most one end for each item.
	// With the locks of the keys, for each end: if the item is Running and has that Token, it
	// is changed as [EndKind] says: [OutcomeEnded]. If it is not Running and still has that
	// Token, the same claim was ended before, such as by a call whose answer was lost, or by
	// Finish: nothing changes, [OutcomeAlready]. Otherwise the claim is no longer the item's:
	// nothing changes, [OutcomeFenced]. It does not matter whether the node is alive.
	//
	// If it has promoted an item, and the end has HandOver, the promoted item becomes Running on the
	// node, as by Claim, if the node is alive, the queue is not paused, its RunAt has
	// come, and its Lane is that of the item that ended: so no limit is touched. It is in Next.
	End(ctx context.Context, node Node, ends []End) ([]Ended, error)

	// Cancel cancels items of the queue. One that is Blocked, Ready, Retry, Halted or Dead becomes
	// Cancelled, and ends now, with Err = reason, and its key is promoted if it was the head: State is
	// Cancelled. One that is Running gets Cancel = reason, unless it has one already; Beat
	// shows it, and from then on it does not become Ready or Retry by End: State is Running.
	// For others, and unknown ids, State is 0 and nothing changes. The result has the order of
	// ids. Reason is not empty.
	Cancel(ctx context.Context, queue string, ids []ItemID, reason string) ([]State, error)

	// Again lets Dead, Halted and Cancelled items of the queue wait again, with Attempts 0,
	// RunAt = now, Token 0, no Cancel and zero Ended: a Halted one is Ready; others are Ready
	// if their key has no head (in the order of IDs), else Blocked, in their old place by
	// (Rank, ID). Err stays. It returns the IDs of those that it changed, sorted.
	Again(ctx context.Context, queue string, ids []ItemID) ([]ItemID, error)

	// Pause stops or resumes claims of the whole queue. What runs goes on.
	Pause(ctx context.Context, queue string, paused bool) error

	// Items returns the items of the queue that q selects, sorted by ID, at most q.Limit.
	Items(ctx context.Context, queue string, q Query) ([]Item, error)

	// Stats counts the items of the queue, in one snapshot. Fenced is left 0.
	Stats(ctx context.Context, queue string) (Stats, error)

	// Explain returns what is so about an item, in one snapshot. It is false if the queue has
	// no such item.
	Explain(ctx context.Context, queue string, id ItemID) (Explanation, bool, error)

	// Prune deletes items of the queue that ended at least as long ago as keep says, and unique ids
	// whose time is over, at most max items in one call, and returns how many items.
	// Halted items have not ended.
	Prune(ctx context.Context, queue string, keep Keep, max int) (int, error)
}

// An ItemID identifies an item in a store. IDs are positive and rise.
type ItemID int64

// A NodeID identifies a node in a store: one process, from a start to its end, for one queue.
type NodeID int64

// A State is where an item is in its life. States may be or-ed in a [Query]. The numbers do
// not change, so that engines may store them.
type State uint8

const (
	Blocked   State = 1 << iota // an item of its key is before it
	Ready                       // can be claimed when RunAt has come
	Running                     // claimed by a node
	Retry                       // an attempt failed; can be claimed when RunAt has come
	Halted                      // dead, and its key waits until Again or Cancel: [EndHalted]
	Done                        // ended well
	Dead                        // will not be tried again
	Cancelled                   // by Cancel

	Waiting  = Blocked | Ready | Retry
	Finished = Done | Dead | Cancelled
)

// An Insert is an item to be added. Data is opaque.
type Insert struct {
	Key       string        // "" has no order
	Lane      string        // "" if the queue has no lanes
	Rank      int           // of its lane, from 0, the highest
	Data      []byte        // encoded, perhaps empty
	Delay     time.Duration // RunAt = now + Delay; not negative
	Unique    string        // "": none
	UniqueFor time.Duration // positive if there is a Unique
}

// Inserted says what became of an [Insert].
type Inserted struct {
	ID        ItemID
	Duplicate bool // not added: ID is that of the earlier item with this Unique id
}

// An Item is what a store knows of an item.
type Item struct {
	ID       ItemID    `json:"id"`
	Key      string    `json:"key,omitempty"`
	Lane     string    `json:"lane,omitempty"`
	Rank     int       `json:"-"`
	State    State     `json:"state"`
	Attempts int       `json:"attempts"`        // claims, without those that were given back or snoozed
	Token    int64     `json:"token,omitempty"` // of the current or last claim; 0: none, or expired
	Unique   string    `json:"unique,omitempty"`
	Enqueued time.Time `json:"enqueued"`
	RunAt    time.Time `json:"runAt"`            // not claimed before
	Started  time.Time `json:"started,omitzero"` // when it was claimed last
	Ended    time.Time `json:"ended,omitzero"`   // zero unless it is Finished or Halted
	Node     string    `json:"node,omitempty"`   // name of the node of the current or last claim
	Expires  time.Time `json:"expires,omitzero"` // end of the lease of that node, while Running
	Cancel   string    `json:"cancel,omitempty"` // reason of a Cancel while Running
	Err      string    `json:"err,omitempty"`    // of the last attempt that failed, or why it was cancelled
	Data     []byte    `json:"-"`
}

// A Node is a process that claims items of a queue. ID is what Join returned.
type Node struct {
	ID             NodeID
	Queue          string
	Name           string        // for people
	Lease          time.Duration // positive
	MaxConcurrency int           // items that it runs at once; for Explain only
	MaxCluster     int           // items of the queue that run at once on all nodes; 0: no limit
	Lanes          []core.Lane   // highest first, at least one; Name and Limit count. Without lanes the one has Name ""
}

// Beaten is the answer to a beat.
type Beaten struct {
	Paused bool
	Claims []Held // of the node, sorted by ID
	Lost   []Lost // nodes that this beat ended
}

// Held is an item that is Running on a node.
type Held struct {
	ID     ItemID
	Token  int64
	Cancel string // reason, if it shall be cancelled
}

// Lost is a node whose lease is over.
type Lost struct {
	Name   string `json:"name"`
	Claims int    `json:"claims"` // items that are free again
}

// Want says how much a node wants to claim.
type Want struct {
	Max  int           // 1 to [MaxBatch]
	Aged time.Duration // the first item may be of a lower lane if it has been due for so long; 0: no
}

// An End is the end of a claim.
type End struct {
	ID       ItemID
	Token    int64
	Kind     EndKind
	After    time.Duration // EndRetry, EndSnoozed: RunAt = now + After
	Err      string        // becomes Err of the item, except with EndSnoozed and EndGivenBack
	HandOver bool          // claim the key's next item
}

// An EndKind says how a claim ends. In states Done, Dead and Cancelled the head leaves, so
// the key is promoted. In the others the item stays the head of its key. Where the item has
// a Cancel, EndRetry, EndSnoozed and EndGivenBack are EndCancelled, with Err = Cancel.
type EndKind uint8

const (
	EndDone      EndKind = iota + 1 // Done
	EndRetry                        // Retry, RunAt = now + After
	EndDead                         // Dead
	EndHalted                       // Halted; Dead if it has no key
	EndSnoozed                      // Ready, RunAt = now + After, Attempts one less
	EndGivenBack                    // Ready, RunAt as it was, Attempts one less
	EndCancelled                    // Cancelled
)

// Ended says what became of an [End].
type Ended struct {
	Outcome Outcome
	State   State // of the item now; 0 with OutcomeFenced
	Next    *Item // claimed for the node: see HandOver
}

// An Outcome says whether an end was accepted.
type Outcome uint8

const (
	OutcomeEnded   Outcome = iota + 1 // by this call
	OutcomeAlready                    // by an earlier one, with the same token
	OutcomeFenced                     // refused: the token is not that of the item
)

// A Query selects items. The zero Query selects all; set fields must all hold.
type Query struct {
	State State  // 0 = any; states may be or-ed
	Dead  bool   // State is Dead or Halted; a [Queue] replaces it by State before it asks the store
	Key   string // "" = any
	Lane  string // "" = any
	After ItemID // higher IDs only
	Limit int    // 0 means 100 for a page of a store; [Queue.Items] walks all unless it is set
}

// Keep says how long items are kept after their end; negative: for ever.
type Keep struct {
	Done, Dead, Cancelled time.Duration
}

// Stats count the items of a queue, in all processes, all read at the same moment, at which
//
//	Items = Blocked + Ready + Delayed + Running + Retry + Halted + Done + Dead + Cancelled
type Stats struct {
	Items     int `json:"items"` // that are kept
	Blocked   int `json:"blocked"`
	Ready     int `json:"ready"`   // RunAt has come
	Delayed   int `json:"delayed"` // Ready, and RunAt has not come
	Running   int `json:"running"`
	Retry     int `json:"retry"`
	Halted    int `json:"halted"`
	Done      int `json:"done"`
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`

	// Oldest is how long ago the oldest item was enqueued that is Blocked, or that is Ready or
	// Retry and whose RunAt has come; 0 if there is none.
	Oldest time.Duration `json:"oldest"`
	Nodes  int           `json:"nodes"` // whose lease is not over
	Paused bool          `json:"paused"`

	Fenced uint64 `json:"fenced"` // ends of this process that were refused because the claim was lost
}

// An Explanation says what an item waits for. Its String puts it in words.
type Explanation struct {
	Item        Item      `json:"item"`
	Time        time.Time `json:"time"`           // when this was so, by the database's clock
	Head        *Item     `json:"head,omitempty"` // of its key, if the item is Blocked
	Ahead       int       `json:"ahead"`          // items of its key that go first, if it is Blocked: the head, and Blocked ones with a smaller (Rank, ID)
	Before      int       `json:"before"`         // if it is Ready or Retry: items of its lane that are, too, and due, with a smaller (RunAt, ID)
	Running     int       `json:"running"`        // items of the queue
	LaneRunning int       `json:"laneRunning"`    // items of its lane
	Paused      bool      `json:"paused"`
	Nodes       []Serving `json:"nodes,omitempty"` // whose lease is not over, sorted by ID
	MaxAttempts int       `json:"maxAttempts"`     // a [Queue] sets it
}

// Serving is a node that serves a queue.
type Serving struct {
	Node    Node   `json:"node"`
	Note    string `json:"note,omitempty"` // of its last beat: why it does not claim
	Running int    `json:"running"`        // items on it
}

// A Waker wakes up the nodes of a queue, so that they claim before their next poll. A store
// may be one; [Options.Waker] is another way. It may lose and add wake-ups.
type Waker interface {
	// Wake says that items of the queue can be claimed. It does not wait.
	Wake(queue string)
	// OnWake calls fn, which does not block, after Wake was called in any process that shares the
	// waker, until cancel is called.
	OnWake(queue string, fn func()) (cancel func())
}
