package durable

import (
	"context"
	"sync/atomic"
	"time"
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
		return r.claim
	}
	return Claim{}
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

// run is a claim that this process has.
type run struct {
	claim    Claim
	finished atomic.Bool
}
