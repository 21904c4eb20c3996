package durable

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Limits of every store. A [Queue] checks them before it calls the store.
const (
	// MaxText is the maximum length of a queue name, key, lane, class or unique id in bytes. These
	// texts are valid UTF-8 without NUL. Lanes and classes have no U+0001.
	MaxText = 512
	// MaxData is the maximum length of an encoded item in bytes.
	MaxData = 1 << 20
	// MaxBatch is the maximum number of items, ends or ids in one call of a store.
	MaxBatch = 500
	// LossesAlone is how many losses make an item run alone in its process.
	LossesAlone = 2
)

// maxError is the maximum length of an error text in bytes.
const maxError = 4096

// lossPause is how long an item with this number of losses waits.
func lossPause(losses int) time.Duration {
	if losses < LossesAlone {
		return 0
	}
	return time.Second << min(losses-LossesAlone, 6)
}

// The errors of stores. Compare them with errors.Is.
var (
	// ErrLeaseLost means that a node has sent no heartbeat for the time of its lease. Its items
	// are free for other nodes. A node cancels its bodies with this cause. [Store.Beat] and
	// [Store.Turn] return it for a node that is gone.
	ErrLeaseLost = errors.New("durable: the lease of the node is lost")
	// ErrUndecided means that it is not known whether a change was made: the context ended or
	// the connection broke before the answer. After any other error the change was not made.
	ErrUndecided = errors.New("durable: it is not known whether the change has been made")
)

// A Store keeps items and decides which node runs which item. A node is a process that runs
// items of a queue. [New] makes a [Queue] on a store. All processes that open a store share its
// items. The rest of this documentation is for authors of stores.
//
// # What all methods promise
//
// Each call is one decision of the database: one transaction, done whole or not at all, and
// durable when it returns nil. All times are those of the database's clock, in microseconds
// or finer; callers send durations only. An engine for several hosts uses the clock of the
// server; an engine for one host may use that of the host. If the context has ended, methods
// return its cause and change nothing. If the change may have been made, the error wraps
// [ErrUndecided]. All methods are safe for concurrent use, also by several processes. A store
// does not keep or change the slices that it gets. The caller owns the slices that are
// returned; empty ones are nil. Error texts have at most 4096 bytes, and are valid UTF-8 without NUL. Queues are independent, and need not be created.
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
//	             | parked,      |
//	             | expired      +-> Running
//
// An item with a key is the head of its key while it is Ready, Running, Retry or Halted. At
// most one item of a key is its head: let a partial unique index on (queue, key) decide that.
// The other waiting items of the key are Blocked. Items with the key "" have no order; they
// are never Blocked. At every instant that another transaction can see, a key with Blocked
// items has a head.
//
// A key is promoted when its head has left, in the same transaction: the Blocked item of the
// key with the smallest (Rank, ID) becomes Ready, with RunAt = the later of its RunAt and now.
// Every call that inserts for a key, or lets its head leave, first takes the lock of the key
// and reads after that. Otherwise an Insert could miss the promotion.
//
// # Flows
//
// An item has a flow once a step of it is written: Item.Flow is 1. See [Journal].
//
// An end with [EndParked] writes its Steps and makes the item Ready, with Attempts one less. Without Park.Step, its class is Park.Class and RunAt
// is now. With one, its class is "", and: if the step is not there, it becomes StepBegun, with Until = now + Park.For; if it is not StepBegun,
// RunAt is as it was. Else RunAt = Until and the item waits ([Parked]), unless there is a signal for its key or its ID that no flow has taken, whose Time is
// not before Enqueued of the item, and whose name Park.Pattern matches ([signals.Match]): it takes the first of them, so the step is StepDone, with the
// name and the Data, and RunAt = now. A pattern "" matches none. Journal.Class keeps the class that the item had before the first park.
//
// An item is undone if an end would make it Dead, Halted or Cancelled, or if a Cancel meets it while it is Blocked, Ready, Retry, Halted or Dead, and it has a step that Compensates and is not
// StepUndone. It becomes Ready in place of that, with RunAt = now, Attempts 0, Item.Flow 2, no Cancel, and Journal.Undo and Reason say what it would have become; Cancel
// changes the rest as Again does, so that it may also be Blocked. The end adds its [Attempt]. While Item.Flow is 2:
//
//   - Cancel of an item that is Blocked, Ready, Retry or Running changes Undo and Reason only, and returns the state of the item.
//   - An end with EndDone is OutcomeFenced. One with EndDead, EndHalted or EndCancelled makes Undo the state, and Reason the Err. One with
//     EndHalfUndone makes it Halted, and it is still undone after Again or Cancel.
//   - Again of an item without a step that is still to be undone deletes the steps and the journal. Item.Flow is 0, and the class is Journal.Class.
//
// # Locks
//
// In PostgreSQL (READ COMMITTED), the lock of a key or queue is pg_advisory_xact_lock of a
// hash. Several locks are taken sorted by hash, keys before rows, and rows sorted by ID. If two
// keys have one hash, they only wait for each other. Each lock is a statement of its own, so
// that the next statement has a newer snapshot. Send a transaction in one round trip, as a
// pipeline or a function: a process that is stopped in the middle must not hold a lock that
// others need. Sequences have CACHE 1. In SQLite, BEGIN IMMEDIATE is the only lock.
//
// # Beside this interface
//
// Engines also offer, as functions of their own:
//
//   - Enqueue[T](ctx, tx, q *Queue[T], item T) (ItemID, error), and EnqueueUnique with a bool: inserts, in the transaction of
//     the caller and for queue q.Name(), the Insert that q.Prepare(ctx, item) returns. The lock of
//     the key is held until the caller commits.
//   - Finish(ctx, tx): ends the claim of [ClaimFrom] with [EndDone] and the Result of [ResultFrom], in the transaction of the
//     caller, without HandOver. Then it calls [MarkFinished]. If the item has a newer claim or
//     none, it returns [ErrLeaseLost], and the caller must roll back.
//   - LastTick(ctx, schedule string) (time.Time, error) and MarkTick(ctx, schedule
//     string, tick time.Time) error: the store of scheduledtasks, a table with one row for
//     each schedule. MarkTick never moves a tick back.
//   - [Waker], if the database can wake up other processes.
//   - Beats(ctx, []Beating) ([]Beaten, error), a method: several beats, for different queues, in one
//     transaction. Without it, each queue of a process sends its own.
//   - Ahead(slots int) int, a method: how many items a node with this number of slots may claim ahead.
//     Without it, none.
//   - Connect() (turns int, release func()), a method, if the store has connections of its own for queues that
//     run. [Queue.Run] calls it before all other calls, and release after them. Turns is how many turns of the queue may be
//     under way at once. Without it, one. With limits or rates, they are one after the other.
//   - Inside(ctx) bool, a method, if a transaction of a caller makes all other transactions
//     wait. It reports whether the caller is in such a transaction. Then Enqueue returns
//     [core.ErrWouldDeadlock] at once.
type Store interface {
	// Insert adds items in their order and returns a result for each. Their IDs rise in that
	// order. The IDs of a key rise in the order of commits: take the ID after the lock of the
	// key. If the key of an item has a head, also an earlier item of this call, the item is
	// Blocked; otherwise it is Ready. RunAt = now + Delay.
	//
	// If the queue has a KeyRate (see Join), each key has a bucket of KeyBurst tokens. The end of a claim takes one, as of the time when
	// the item was claimed: full = the later of full and Started, + KeyEvery, where full is when the bucket is full again, at
	// most KeyEvery x KeyBurst from now. A lost claim takes one, too. An item that becomes the head of its key, or stays it after
	// its claim, has RunAt not before full - KeyEvery x (KeyBurst-1). Insert reads it only for items that are Rated. Buckets that are full are forgotten by Prune.
	//
	// If the queue got an earlier item with the same Unique id, also in this call, and the
	// UniqueFor of the earlier item has not passed, the item is not added. Inserted then has
	// the ID of the earlier item, even if that has ended or is pruned. A separate table, with
	// (queue, unique) as key, decides that with one upsert. Upserts of several ids are sorted.
	//
	// With Replace, an earlier item that is Blocked, Ready or Retry gets what the new one says: Data, Lane, Class, Rank, RunAt and Extra.
	// It keeps its ID and Enqueued; Attempts, Losses and Token are 0, Err is "", and Failing zero. Retry becomes Ready. It is a Duplicate,
	// and the UniqueFor begins now. If its key is another one, nothing changes: OtherKey. An earlier item that is Running, Halted or
	// Finished, has a flow, or is pruned, is left alone; the new item is added, and its id is that of the new item. With SkipIfAlive, an item that
	// would be added is not, if its key has a head, also an earlier item of this call.
	Insert(ctx context.Context, queue string, items []Insert) ([]Inserted, error)

	// Join adds a node to node.Queue, alive for node.Lease from now. It returns an ID that was
	// never used before. Names need not be unique. The other fields of node are kept for
	// Explain, but not Classes: each class of the queue now has these values, unless SetClass has
	// set others. KeyEvery and KeyBurst count for the queue from now on.
	Join(ctx context.Context, node Node) (NodeID, error)

	// Beat first ends the nodes of the queue whose leases are over: it deletes them, and makes
	// their Running items Ready, with Losses one higher and Token 0. If Losses was less than
	// [LossesAlone], Attempts is one less. If Losses is now at least [LossesAlone], RunAt = now +
	// a pause: 1 second at [LossesAlone], doubled with each further loss, up to 64 seconds.
	// They stay heads, so nothing is promoted. (In PostgreSQL: delete the nodes, and
	// change the items in the next statement, which sees what a claim has committed meanwhile.)
	// Each ended node is in Lost of one call only.
	//
	// Then, if the node itself is alive, its lease is node.Lease from now. If it is gone, it is
	// not revived: Beat returns [ErrLeaseLost], and the ends of the other nodes are committed.
	// Note says for Explain why the node does not claim; "" means that it does. Claims are all
	// items that are Running on the node. Strays are the lanes with items that are Ready or Retry,
	// which no node that is alive has. Suspect says that an item can be claimed with Want.Alone.
	Beat(ctx context.Context, node Node, note string) (Beaten, error)

	// Leave ends a node at once. Its Running items become Ready, with Attempts one less and Token
	// 0. It is no error if the node is gone.
	Leave(ctx context.Context, node Node) error

	// Turn ends claims, and then claims items, in one transaction.
	//
	// There is at most one end for each item. It does not matter whether the node is alive. The
	// results are in the order of ends. For each end:
	//
	//   - If the item is Running and has that Token, it changes as [EndKind] says:
	//     [OutcomeEnded].
	//   - If the item is not Running and has that Token, the claim was ended before, for example
	//     by Finish or by a call whose answer was lost. Nothing changes: [OutcomeAlready].
	//   - If the lease was lost with the item and that Token, the item is still Ready, and the Kind is
	//     EndGivenBack, the loss is taken off: Losses is one less, and Attempts, too, if the loss
	//     was an attempt. [OutcomeAlready]. (Keep the token of a lost lease below zero.)
	//   - If another transaction has the lock of the key or of the item, nothing changes:
	//     [OutcomeBusy]. Turn waits at most End.Patience for it. Call it again.
	//   - Otherwise the claim is lost. Nothing changes: [OutcomeFenced].
	//
	// If an end with HandOver has promoted an item, that item becomes Running on the node, as if
	// it were claimed, and is in Next. It does so only if the node is alive, the queue is not
	// paused, its RunAt has come, it has the Lane and the Class of the ended item, the class
	// has room, and its key is not paused. All ends are before all hand-overs, which are in the order of ends.
	//
	// Then Turn makes items Running on the node, with Attempts one higher, Started = now, Node
	// and Expires of the node, and a new Token. The Token is higher than all earlier ones of the
	// store. These items and the items in Next are at most want.Max. If want.Max is 0, none is
	// claimed.
	//
	// A class has room if it is not paused, no Gate of the turn holds it up, fewer than Limit items of it are Running in all lanes, and, with a Rate, if it
	// has a token. A claim takes one token. A class counts if it has a Limit
	// or a rate, also if no node has it, or a Gate with a Limit. Tokens are those of package bucket: there are at most Burst. With a CostRate,
	// an item is claimed if its class has its Cost, or a full bucket, and takes its Cost. Once an item lacks that, no other item
	// of the class is claimed in the turn. Hand-overs, and items taken for their age or with Alone, do not count for that: such an item that lacks its
	// cost is passed over. For their age, only the first item of each class in each lane is looked at.
	// If the clock was set back to a time before the last change of the buckets, they go on as they were then: also a debt stays. (Store
	// marks, the time when the rates were set, and the time of the last change: so a claim changes few numbers.)
	//
	// If a class has a Shadow, it has buckets of its own, which keep nothing from being claimed. Each claim counts there, hand-overs first, in the order in
	// which items are taken: the item would start when these buckets have its tokens, and not before an earlier one. They are taken as of that time. What
	// Charge and ends take and give back counts there, too. If tokens come back, the next items may start earlier: when no bucket has a debt.
	//
	// If the node or a lane has a limit, or if items of a class that counts wait, or a class has a Shadow, or an end has Calls or Cost, Turn holds the lock of the queue: it takes it after the
	// locks of keys, and before those of the node and of items. If the node is not alive (lock
	// its row FOR SHARE against Beat), and want.Max is not 0, Turn returns ErrLeaseLost, and
	// the ends are committed and returned. If the queue is paused, no items are claimed.
	// Candidates are Ready or Retry with RunAt <= now, in the lanes of node.Lanes, without a Class if node.Classes
	// is empty, with Losses less
	// than [LossesAlone]; with want.Alone, only the others. It takes them
	// in the order of node.Lanes, within a lane by (RunAt, ID) (FOR UPDATE SKIP LOCKED), and passes
	// over items whose class has no room. After
	// that, at most node.MaxCluster items of the queue and at most Limit items of a lane are
	// Running; 0 is no limit. If want.Aged > 0, the first candidate is the item with the smallest
	// (RunAt, ID) of all lanes and classes that have room; it is taken first if its RunAt is at least
	// want.Aged ago. Items are in the order in which they were taken. Turn may claim fewer items,
	// but not in another order.
	//
	// If Turn claims less than Max, and no other limit, Waits are the classes without room of
	// which an item could be claimed otherwise, sorted by name, without those that are paused or have a Gate with Limit 0.
	//
	// An item that has a Cancel is claimed like others: the caller ends it.
	//
	// After an end, an item that is Retry, Dead or Halted has Failing = now, if it was zero. Again sets it back.
	// An end after which the item is Retry, Dead, Halted or Cancelled, and one of EndSnoozed, adds an
	// [Attempt] to the item, and so does Beat with a lost claim (EndLost). The last [MaxAttempts] are kept,
	// with the item.
	Turn(ctx context.Context, node Node, ends []End, want Want) (Turned, error)

	// Cancel cancels items of the queue that are in one of the states from, and returns a State for each,
	// in the order of ids. An item that is Blocked, Ready, Retry, Halted or Dead becomes Cancelled, with Err = reason
	// and Ended = now. If it was the head, its key is promoted. State is Cancelled. An item that
	// is Running gets Cancel = reason, unless it has a Cancel. Beat returns it, and Turn makes the
	// item Done or Cancelled. State is Running. For other items and unknown ids nothing
	// changes, and State is 0. Reason is not empty.
	Cancel(ctx context.Context, queue string, ids []ItemID, from State, reason string) ([]State, error)

	// Again puts Dead, Halted and Cancelled items that are in one of the states from back into the queue, with Attempts and Losses 0, RunAt =
	// now, Token 0, no Cancel and zero Ended. Err stays. A Halted item becomes Ready. Another
	// item becomes Ready if its key has no head (in the order of IDs), otherwise Blocked in its
	// old place by (Rank, ID). Again returns the IDs of the items that it changed, sorted.
	Again(ctx context.Context, queue string, ids []ItemID, from State) ([]ItemID, error)

	// Move puts Blocked, Ready and Retry items into a lane, with its rank, and returns the IDs of those that it
	// changed, sorted. They keep their class. If a key of one of them has another item in these states that is not
	// in the lane and not among ids, nothing changes, and the error is [ErrOrder]. Like Cancel, it takes the locks of
	// the keys first.
	Move(ctx context.Context, queue string, ids []ItemID, lane string, rank int) ([]ItemID, error)

	// Result returns what has become of an item, or false if the queue has no such item.
	Result(ctx context.Context, queue string, id ItemID) (Result, bool, error)

	// Depths counts the items that have not ended, in one snapshot, in any order. It does not read those that have.
	Depths(ctx context.Context, queue string) ([]Depth, error)

	// Pause stops claims of the queue, a class or a key for p.For, or until it is called with paused false, which reads Class and Key only.
	// A new pause takes the place of the old one; if it is Auto, only of one that ends earlier. Running items go on. When Pause returns, no turn under way goes by the state before.
	// If [MaxPauses] classes and keys are paused, it returns [ErrPauses]. A pause of a key whose time is over is kept for
	// [KeptPause], or until an item of the key is Done: until then, items of the key that are claimed have Trial, if it was Auto.
	Pause(ctx context.Context, queue string, p Pause, paused bool) error

	// Items returns a page of the items that q selects, at most q.Limit, as they are in one snapshot, in an
	// order of the store. Next is a text that only the store reads; Items with it as q.After returns the
	// next page. An item that does not change is on one page. Items looks at about [MaxLook] items at most.
	// [Query.Walk] does that for engines with indexes.
	Items(ctx context.Context, queue string, q Query) (Page, error)

	// Count counts the items that q selects; it ignores After and Limit.
	Count(ctx context.Context, queue string, q Query) (int, error)

	// SetClass sets Limit, Rate, CostRate and Shadow of a class of the queue, in place of what nodes have. ResetClass
	// sets those of the node that joined last and has the class, or none. They change the class
	// under the lock of the queue. The tokens of a class do not change with its rate, but are not more than the
	// new burst; a rate that is new begins with a full bucket. When SetClass returns, no turn under way goes by
	// the old values; but one under way may not count for a new Shadow.
	SetClass(ctx context.Context, queue string, class Class) error
	ResetClass(ctx context.Context, queue, class string) error

	// Charge takes tokens of a class, also tokens that are not there: its buckets get a debt. It has no effect where the class has no rate.
	Charge(ctx context.Context, queue, class string, calls, cost int64) error

	// Stats counts the items of the queue, in one snapshot. Fenced is left 0.
	Stats(ctx context.Context, queue string) (Stats, error)

	// Explain returns the facts about an item, read in one snapshot. It returns false if the
	// queue has no such item.
	Explain(ctx context.Context, queue string, id ItemID) (Explanation, bool, error)

	// Prune deletes at most max items of the queue that ended at least as long ago as keep says.
	// It also deletes at most max unique ids whose time is over. It returns the number of items, and
	// whether there may be more of items or ids to delete. Halted items have not ended. [Keep] says what else it deletes.
	Prune(ctx context.Context, queue string, keep Keep, max int) (items int, more bool, err error)

	// Record writes steps of flows, those of several claims in one transaction, and reports for each record whether
	// its claim is the current one. For others it writes nothing. A step with the name of an earlier one replaces it. The first record
	// of an item sets the Version and Item.Flow. After a step that is not StepBegun, Attempts is at most 1. The caller has checked the limits.
	Record(ctx context.Context, queue string, records []Record) (current []bool, err error)

	// Journal returns what is known of the flow of an item, or false if the queue has no such item. Without data, it reads no Data of steps.
	Journal(ctx context.Context, queue string, id ItemID, data bool) (Journal, bool, error)

	// Signal adds signals for keys and items, all or none, in their order. It takes the lock of the key; for an item, that of its
	// key, or of its row if it has none. A signal whose key or item has one with the same UniqueID is a Duplicate. If the key or item
	// has [MaxSignals], the error is [core.ErrFull], and for an unknown item [ErrUnknown].
	//
	// If the head of the key, or the item, is [Parked] and its Pattern matches, the flow takes the signal: its step becomes
	// StepDone, the wait is over, and RunAt = now.
	//
	//ephemeral:none
	Signal(ctx context.Context, queue string, all []Signal) ([]Signalled, error)

	// Signals returns at most limit signals for a key with a higher Seq, in order.
	//
	//ephemeral:none
	Signals(ctx context.Context, queue, key string, after int64, limit int) ([]Signal, error)
}

// An ItemID identifies an item in a store. IDs are positive and rise.
type ItemID int64

// A NodeID identifies a node in a store: one process, from a start to its end, for one queue.
type NodeID int64

// A State is the state of an item. States may be or-ed in a [Query]. Their numbers never change,
// so engines may store them.
type State uint8

const (
	Blocked   State = 1 << iota // waits for an earlier item of its key
	Ready                       // can be claimed when RunAt has come
	Running                     // claimed by a node
	Retry                       // an attempt has failed; the item can be claimed when RunAt has come
	Halted                      // dead, and its key waits until Again or Cancel: see [Options.HaltOnDead]
	Done                        // succeeded
	Dead                        // will not be tried again
	Cancelled                   // cancelled by Cancel

	Waiting  = Blocked | Ready | Retry
	Finished = Done | Dead | Cancelled
)

// An Insert is an item to be added. Data is opaque.
type Insert struct {
	Key                  string        // "" has no order
	Lane                 string        // "" if the queue has no lanes
	Class                string        // "": none
	Cost                 int64         // of CostRate of the class; not negative
	Rated                bool          // the queue has a KeyRate: see [Store].Insert
	Rank                 int           // place of its lane; 0 is the highest lane
	Data                 []byte        // encoded, perhaps empty
	Delay                time.Duration // RunAt = now + Delay; not negative
	RunAt                time.Time     // or this, if it is later; zero: none
	Unique               string        // "": none
	UniqueFor            time.Duration // positive if there is a Unique
	Extra                string        // becomes that of the item
	Replace, SkipIfAlive bool          // see [Store].Insert
	NoWait               bool          // an item is not added if another transaction has the lock of its key or its Unique id: see Busy. All items of a call have the same value.
}

// Inserted is the result of an [Insert].
type Inserted struct {
	ID        ItemID
	Duplicate bool // not added: ID is the ID of the earlier item with this Unique id, or of the head, with SkipIfAlive
	OtherKey  bool // and not replaced: that item has another key
	Busy      bool // not added: see NoWait
}

// An Item is an item as a store knows it.
type Item struct {
	ID       ItemID        `json:"id"`
	Key      string        `json:"key,omitempty"`
	Lane     string        `json:"lane,omitempty"`
	Class    string        `json:"class,omitempty"`
	Cost     int64         `json:"cost,omitempty"` // see [Queue.Cost]; items that are claimed do not have it
	Trial    bool          `json:"-"`              // of an item that is claimed: see [Claim]
	Shadow   time.Duration `json:"-"`              // of an item that is claimed: how much later it would have started with the Shadow of its class
	Rank     int           `json:"-"`
	State    State         `json:"state"`
	Attempts int           `json:"attempts"`         // number of claims, without those that were given back, snoozed, or lost beside other items
	Losses   int           `json:"losses,omitempty"` // how often a process with the item lost its lease, since the last ordinary end
	Token    int64         `json:"token,omitempty"`  // token of the current or last claim; 0: no claim, or its lease was lost
	Unique   string        `json:"unique,omitempty"`
	Enqueued time.Time     `json:"enqueued"`
	RunAt    time.Time     `json:"runAt"`            // the item is not claimed before this time
	Started  time.Time     `json:"started,omitzero"` // the time of the last claim
	Ended    time.Time     `json:"ended,omitzero"`   // zero unless it is Finished or Halted
	Node     string        `json:"node,omitempty"`   // name of the node of the current or last claim
	Expires  time.Time     `json:"expires,omitzero"` // while it is Running: when the lease of the node ends
	Cancel   string        `json:"cancel,omitempty"` // reason of a Cancel while Running
	Err      string        `json:"err,omitempty"`    // error of the last failed attempt, or why it was cancelled
	Failing  time.Time     `json:"failing,omitzero"` // the end of the first failed attempt; zero: none has failed
	Note     string        `json:"note,omitempty"`   // of a [Snooze], until the item is claimed again
	Text     string        `json:"text,omitempty"`   // of Options.Show, in [SignalFailed]
	Data     []byte        `json:"-"`

	Flow        uint8             `json:"flow,omitempty"`        // 1: it has a [Journal]; 2: and is undone. Both claims and reads have it
	Extra       string            `json:"-"`                     // what Insert said; engines keep it, and do not read it
	MaxAttempts int               `json:"maxAttempts,omitempty"` // these are in Extra; set by the [Queue]
	Timeout     time.Duration     `json:"timeout,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// A Node is a process that claims items of a queue. ID is what Join returned.
type Node struct {
	ID             NodeID
	Queue          string
	Name           string        // for people
	Lease          time.Duration // positive
	MaxConcurrency int           // items that it runs at once; for Explain only
	MaxCluster     int           // items of the queue that run at once on all nodes; 0: no limit
	Lanes          []core.Lane   // highest first, with Name and Limit only; a queue without lanes has one lane with Name ""
	Classes        []Class       // for Join, without gates; Turn claims items of classes, of all, only if there are any
	KeyEvery       time.Duration // for Join: how long a token of KeyRate takes to come, in whole microseconds; 0: no rate
	KeyBurst       int           // for Join: how many tokens a key has at most. KeyEvery x KeyBurst is at most 100 years
}

// Beating is one of several beats in a transaction: see [Store].
type Beating struct {
	Node Node
	Note string
}

// Beaten is the store's answer to a beat.
type Beaten struct {
	Paused bool
	Claims []Held // of the node, sorted by ID
	Lost   []Lost // nodes that this beat ended

	Strays  []string // lanes that no node has, sorted
	Suspect bool     // an item waits for a process that runs nothing else
	Classed bool     // there are items of classes that are Ready or Retry
	Due     bool     // a lane has an item that can be claimed
	Gone    bool     // the node is not alive: Beat returns ErrLeaseLost, and Beats no error
}

// Held is an item that is Running on a node.
type Held struct {
	ID     ItemID
	Token  int64
	Cancel string // reason, if it must be cancelled
	Key    string
}

// Lost is a node whose lease is over.
type Lost struct {
	Name   string `json:"name"`
	Claims int    `json:"claims"`           // items that are free again
	Reason string `json:"reason,omitempty"` // for people; set by the [Queue]
}

// Want says how much a node wants to claim.
type Want struct {
	Max   int           // 0 to [MaxBatch]
	Ahead int           // how many of Max have no free slot yet. They are not claimed while an item of the queue has Losses, or items of classes wait and one of the queue counts
	Alone bool          // only an item that must run alone; Max is 1
	Aged  time.Duration // the first item may be of a lower lane if it has been due for this time; 0: never
	Gates []Gate        // of classes, in this turn
}

// A Gate holds up a class in a turn: items of it are claimed only while fewer than Limit of them run; 0: none is claimed.
type Gate struct {
	Class string
	Limit int
}

// Turned is the answer to a turn.
type Turned struct {
	Ends  []Ended // in the order of the ends
	Items []Item  // claimed items, without the items in Next
	Waits []ClassWait
}

// An End is the end of a claim.
type End struct {
	ID       ItemID
	Key      string // of the item
	Token    int64
	Kind     EndKind
	After    time.Duration // EndRetry, EndSnoozed: RunAt = now + After
	Err      string        // becomes Err of the item; with EndSnoozed its Note, and with EndGivenBack nothing
	HandOver bool          // claim the key's next item
	Result   []byte        // EndDone: kept with the item; nil: none
	Patience time.Duration // how long Turn may wait for the lock of the key; 0: not at all
	Steps    []Step        // of a flow, written with the end as [Store].Record does, so Attempts is 1 then, before the end counts; with EndDone only if the item has a flow, and Attempts stays
	Version  int           // of the flow, if these are the first
	Park     Park          // EndParked

	Calls, Cost int64 // are taken from the rates of the item's class, or given back, if the end is OutcomeEnded
}

// An EndKind says how a claim ends. If the item becomes Done, Dead or Cancelled, its key is
// promoted. Otherwise the item stays the head of its key. If the item has a Cancel, all kinds but EndDone mean
// EndCancelled, with Err = Cancel. After all kinds but EndGivenBack, Losses is 0.
type EndKind uint8

const (
	EndDone       EndKind = iota + 1 // Done
	EndRetry                         // Retry, RunAt = now + After
	EndDead                          // Dead
	EndHalted                        // Halted; Dead if it has no key
	EndSnoozed                       // Ready, RunAt = now + After, Attempts one less
	EndGivenBack                     // Ready, RunAt as it was, Attempts one less
	EndCancelled                     // Cancelled
	EndLost                          // of an [Attempt] only: its lease was lost
	EndParked                        // Ready, Attempts one less: see [Park]
	EndHalfUndone                    // Halted, also without a key
)

// Ended is the result of an [End].
type Ended struct {
	Outcome  Outcome
	State    State // of the item after the end; 0 with OutcomeFenced and OutcomeBusy
	Next     *Item // the item that was claimed for the node: see HandOver
	Promoted bool  // the key has a new head, which is not in Next
}

// An Outcome says whether an end was accepted.
type Outcome uint8

const (
	OutcomeEnded   Outcome = iota + 1 // by this call
	OutcomeAlready                    // by an earlier one, with the same token
	OutcomeFenced                     // refused: the item has another token
	OutcomeBusy                       // another transaction has a lock: call again
)

// A Query selects items that match all fields that are not zero. The zero Query selects all.
type Query struct {
	State   State         // 0 = any; states may be or-ed
	Dead    bool          // State is Dead or Halted; a [Queue] replaces it by State
	Due     bool          // State is Ready or Retry, and RunAt has come; a [Queue] sets State, too
	Delayed bool          // State is Ready or Retry, and RunAt has not come; a [Queue] sets State, too
	Key     string        // "" = any
	Lane    string        // "" = any
	Class   string        // "" = any
	Err     string        // a part of Err; "" = any
	MinAge  time.Duration // since Enqueued; the item is at least that old
	MaxAge  time.Duration // and younger than this; 0 = any
	After   string        // Page.Next of the page before; "" = the first page
	Limit   int           // maximum number of items, not negative; 0 means all for [Queue.Items], else 100. A page has at most [MaxLook]
}

// Keep says how long items are kept after their end; negative: for ever.
type Keep struct {
	Done, Dead, Cancelled time.Duration

	// Signals is for those of a key, after they came. They are kept longer while the key has an item that has not ended, or
	// one that ended less than this time ago. Those of an item are kept with it.
	Signals time.Duration
}

// Stats count the items of a queue in all processes. They are read at one moment, at which
//
//	Items = Blocked + Ready + Delayed + Running + Retry + Halted + Done + Dead + Cancelled
type Stats struct {
	Items     int `json:"items"` // all items in the store
	Blocked   int `json:"blocked"`
	Ready     int `json:"ready"`   // RunAt has come
	Delayed   int `json:"delayed"` // State is Ready, but RunAt has not come
	Running   int `json:"running"`
	Retry     int `json:"retry"`
	Halted    int `json:"halted"`
	Done      int `json:"done"`
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`

	// Oldest is the age of the oldest waiting item since it was enqueued. Items that are Ready
	// or Retry count only if their RunAt has come. 0 means that no item waits.
	Oldest time.Duration `json:"oldest"`
	Nodes  int           `json:"nodes"` // processes that run items of the queue
	// Strays are the lanes with items that are Ready or Retry, which no process has, sorted. If
	// no process runs the queue, there are none.
	Strays []string `json:"strays,omitempty"`
	Paused bool     `json:"paused"`           // the whole queue is
	Pauses []Pause  `json:"pauses,omitempty"` // of the queue, its classes and keys, sorted by class and key
	// OldestTransaction is the age of the oldest open transaction on the server, of any program, that keeps old versions of
	// rows: claims get slower with each item that ends meanwhile, to a quarter and less. 0 means none, or a store without a server.
	OldestTransaction time.Duration `json:"oldestTransaction,omitempty"`

	Classes []ClassStats `json:"classes,omitempty"` // of which items are Ready, Retry or Running, that count, or that SetClass has set; sorted by name

	Fenced uint64 `json:"fenced"` // ends of this process that were refused because the claim was lost
}

// An Explanation says why an item waits. Its String says it in words.
type Explanation struct {
	Item        Item        `json:"item"`
	Time        time.Time   `json:"time"`              // when the facts were read, by the clock of the store
	Head        *Item       `json:"head,omitempty"`    // the head of its key, if the item is Blocked
	Ahead       int         `json:"ahead"`             // if it is Blocked: items of its key that run first. These are the head, and the Blocked items with a smaller (Rank, ID)
	Before      int         `json:"before"`            // if it is Ready or Retry: due items of its lane and class with a smaller (RunAt, ID)
	Running     int         `json:"running"`           // items of the queue that run
	LaneRunning int         `json:"laneRunning"`       // items of its lane that run
	Pauses      []Pause     `json:"pauses,omitempty"`  // of the queue, and of the class and key of the item
	Class       *ClassStats `json:"class,omitempty"`   // of the item, or of Head if the item is Blocked; nil: it has no class
	KeyNext     time.Time   `json:"keyNext,omitzero"`  // when its key has its next token of KeyRate; zero: now, or there is no rate
	Nodes       []Serving   `json:"nodes,omitempty"`   // nodes whose lease has not ended, sorted by ID
	MaxAttempts int         `json:"maxAttempts"`       // set by the [Queue]
	Pending     bool        `json:"pending,omitempty"` // this process has claimed the item, and its body has not started; set by the [Queue]
	Flow        *Journal    `json:"flow,omitempty"`    // without results; nil: it has no flow; set by the [Queue]
	// Attempts are the last [MaxAttempts] claims, the oldest first, that were snoozed or lost, or after
	// which the item was to be tried again, was dead or cancelled. A [Queue] adds the current one, and one
	// that ended well.
	Attempts []Attempt `json:"attempts,omitempty"`

	headWaits *Parked // what the flow of Head waits for
}

// Serving is a node that serves a queue.
type Serving struct {
	Node    Node   `json:"node"`
	Note    string `json:"note,omitempty"` // of its last beat: why it does not claim
	Running int    `json:"running"`        // items on it
}

// A Waker wakes up the processes of a queue, so that they claim before their next poll. A store
// may be a Waker; [Options.Waker] sets another one. It may lose and add wake-ups.
type Waker interface {
	// Wake says that items of the queue can be claimed. It does not wait.
	Wake(queue string)
	// OnWake calls fn after each Wake in any process that shares the waker, until cancel is
	// called. Fn does not block.
	OnWake(queue string, fn func()) (cancel func())
}
