package durable

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Claim is the right of a process to run an item. The body of the item gets it from
// [ClaimFrom].
type Claim struct {
	Queue    string
	ID       ItemID
	Key      string
	Lane     string
	Class    string
	Token    int64 // higher than the tokens of all earlier claims in the store
	Attempt  int   // from 1
	Node     string
	Enqueued time.Time
	Trial    bool              // an Auto [Pause] of the key has ended, and no item of the key is Done since
	Metadata map[string]string // of the item; do not change it
}

// ClaimFrom returns the claim of an item. Ctx is the context of the item's body, or derived
// from it. For other contexts, ClaimFrom returns the zero Claim, whose ID is 0.
func ClaimFrom(ctx context.Context) Claim {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		i := r.item
		return Claim{r.queue, i.ID, i.Key, i.Lane, i.Class, i.Token, i.Attempts, i.Node, i.Enqueued, i.Trial, i.Metadata}
	}
	return Claim{}
}

// StoreFrom returns the store of the claim in ctx, for engines. If ctx has no claim, it returns
// nil.
func StoreFrom(ctx context.Context) Store {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.store
	}
	return nil
}

// MarkFinished says that the transaction of the caller ends the claim in ctx. Engines call it
// in Finish, before the caller commits. When the body has returned, the queue still calls
// [Store.Turn]. If the transaction was committed, the outcome is [OutcomeAlready]; if not, Turn ends
// the item. If a marked item was pruned before that, it counts as done.
func MarkFinished(ctx context.Context) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.finished.Store(true)
	}
}

type runKey struct{}

// A run is a claim that this process has.
type run struct {
	queue     string
	store     Store
	item      Item // does not change
	session   *session
	release   func() bool // releases the run from the end of the session; nil: it has no operation
	alone     bool        // nothing else runs beside it
	until     time.Time   // it would start then because of the shadow of its class; zero: now
	row       int         // claims of its key that were handed over one after the other
	finished  atomic.Bool
	result    atomic.Pointer[[]byte]
	maxResult int
	text      func() string // of Options.Show; nil: none
	flows     *flows
	state     atomic.Int32 // pending, begun, or withdrawn before its body has started

	mu     sync.Mutex
	op     core.OperationID
	cause  error  // why the run must be cancelled
	reason string // of a Cancel by a user
	flow   *Flow  // nil: none yet
	// What Charge has asked for, and what of that the store has taken.
	charged, taken tokens
}

const (
	pending int32 = iota
	begun
	withdrawn
)

// errNotStarted is why an item that was claimed ahead is given back.
var errNotStarted = errors.New("durable: the item was claimed ahead, and no slot was free in time")

// begin reports whether the body may start.
func (r *run) begin() bool {
	return r.session.lives() && r.state.CompareAndSwap(pending, begun)
}

// know stores the operation of the run, or the cause of its cancellation; the first cause
// counts. When both are known, it cancels the operation.
func (r *run) know(here core.Control, op core.OperationID, reason string, cause error) {
	r.mu.Lock()
	if r.op = cmp.Or(r.op, op); r.cause == nil {
		r.cause, r.reason = cause, reason
	}
	op, cause = r.op, r.cause
	r.mu.Unlock()
	if op != 0 && cause != nil {
		here.Cancel(op, cause)
	}
}

// last returns the item, with the reason of a Cancel since the claim, and the attempts since the last step of a flow.
func (r *run) last() Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.item
	if r.reason != "" {
		i.Cancel = r.reason
	}
	if r.flow != nil {
		r.flow.mu.Lock()
		defer r.flow.mu.Unlock()
		if r.flow.progress {
			i.Attempts = min(i.Attempts, 1)
		}
	}
	return i
}

// A session is the time in which this process is a node of the store: from Join until its lease
// is lost.
type session struct {
	node    Node
	limited bool            // the queue or a lane has a limit: an end makes room
	inLine  bool            // or a class has one, or a rate: turns would wait for each other
	ctx     context.Context // ends with ErrLeaseLost
	lose    context.CancelCauseFunc
	fence   *time.Timer
	began   time.Time
	until   atomic.Int64   // the time at which all bodies must have ended, in nanoseconds after began
	seen    map[Held]int64 // see orphans
	strays  atomic.Pointer[[]core.Lane]
	classed atomic.Bool // items of classes wait
}

// serve makes the node claim from the lanes that no node has, after its own lanes. It raises a
// signal for each new lane.
func (s *session) serve(o Options, strays []string) {
	var lanes []core.Lane
	before := s.strays.Load()
	for _, name := range strays {
		lane := core.Lane{Name: name}
		if lanes = append(lanes, lane); before == nil || !slices.Contains(*before, lane) {
			LaneUnserved.Raise(o.Sink, o.Name, name)
		}
	}
	s.strays.Store(&lanes)
}

// claimer is the node with all lanes from which it claims, and with a class if there are any.
func (s *session) claimer() Node {
	n := s.node
	if strays := s.strays.Load(); strays != nil && len(*strays) > 0 {
		n.Lanes = slices.Concat(n.Lanes, *strays)
	}
	if s.classed.Load() && len(n.Classes) == 0 {
		n.Classes = []Class{{}}
	}
	return n
}

// newSession makes the session of a node. Sent is the time when the call of Join began.
func newSession(node Node, sent time.Time) *session {
	s := &session{node: node, began: sent, limited: node.MaxCluster > 0 || slices.ContainsFunc(node.Lanes, func(l core.Lane) bool { return l.Limit > 0 })}
	s.inLine = s.limited || slices.ContainsFunc(node.Classes, func(c Class) bool {
		return c.Limit > 0 || c.Rate.PerSecond > 0 || c.CostRate.PerSecond > 0 || c.Shadow != nil
	})
	s.ctx, s.lose = context.WithCancelCause(context.Background())
	s.until.Store(int64(s.span()))
	s.fence = time.AfterFunc(time.Until(sent.Add(s.span())), func() { s.lose(ErrLeaseLost) })
	return s
}

// left is how long bodies may still run.
func (s *session) left() time.Duration {
	return time.Duration(s.until.Load()) - time.Since(s.began)
}

// span is how long bodies may run after a beat. The lease in the store ends at least a tenth
// of the lease later.
func (s *session) span() time.Duration { return s.node.Lease - s.node.Lease/10 }

// extend notes that the store has accepted the beat of the time sent.
func (s *session) extend(sent time.Time) {
	if s.ctx.Err() == nil {
		end := sent.Add(s.span())
		s.until.Store(int64(end.Sub(s.began)))
		s.fence.Reset(time.Until(end))
	}
}

// lives reports whether this process has the lease. It reads the clock, because timers fire late
// after a process was stopped.
func (s *session) lives() bool {
	return s.ctx.Err() == nil && s.left() > 0
}
