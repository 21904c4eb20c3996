package durable

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Claim is the right of a node to run an item, as the body of the item sees it.
type Claim struct {
	Queue    string
	ID       ItemID
	Key      string
	Lane     string
	Token    int64 // rises with every claim in the store, so with every claim of a key
	Attempt  int   // from 1
	Node     string
	Enqueued time.Time
}

// ClaimFrom returns the claim of the item whose body was given ctx, or a context made from
// it. Outside of one it is the zero Claim, whose ID is 0.
func ClaimFrom(ctx context.Context) Claim {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		i := r.item
		return Claim{r.queue, i.ID, i.Key, i.Lane, i.Token, i.Attempts, i.Node, i.Enqueued}
	}
	return Claim{}
}

// StoreFrom returns the store of the claim in ctx, for engines; outside of the body of an
// item it is nil.
func StoreFrom(ctx context.Context) Store {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.store
	}
	return nil
}

// MarkFinished says that the transaction of the caller ends the claim in ctx. Engines call
// it in Finish, before the caller commits. The queue still calls [Store.End] when the body
// has returned: it gets [OutcomeAlready] if the transaction was committed, and ends the item
// if not. Marked, an item that is gone by then, because it was pruned, counts as done.
func MarkFinished(ctx context.Context) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.finished.Store(true)
	}
}

type runKey struct{}

// A run is a claim that this process has.
type run struct {
	queue    string
	store    Store
	item     Item // does not change
	session  *session
	release  func() bool // of the session's end; nil: it has no operation
	row      int         // claims of its key that were handed over one after the other
	finished atomic.Bool

	mu     sync.Mutex
	op     core.OperationID
	cause  error  // why it is to be cancelled
	reason string // of a Cancel by a user
}

// know takes note of the operation of the run, or of why it is to be cancelled; the first cause
// counts. It cancels the operation when both are known.
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

// last returns the item with what was asked for since it was claimed.
func (r *run) last() Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.item
	if r.reason != "" {
		i.Cancel = r.reason
	}
	return i
}

// A session is the time for which this process is one node of the store: from Join until its
// lease is lost.
type session struct {
	node  Node
	ctx   context.Context // ends with ErrLeaseLost
	lose  context.CancelCauseFunc
	fence *time.Timer
	seen  map[Held]time.Time // see orphans
}

// newSession makes the session of a node that was joined by a call that began at sent.
func newSession(node Node, sent time.Time) *session {
	s := &session{node: node}
	s.ctx, s.lose = context.WithCancelCause(context.Background())
	s.fence = time.AfterFunc(s.left(sent), func() { s.lose(ErrLeaseLost) })
	return s
}

// left is how long bodies may run after a beat that was sent at that time. The lease in the
// store ends a tenth of it later, at least.
func (s *session) left(sent time.Time) time.Duration {
	return time.Until(sent.Add(s.node.Lease - s.node.Lease/10))
}
