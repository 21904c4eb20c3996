package profile

import (
	"context"
	"runtime/pprof"

	"github.com/ephemeralgo/ephemeral/core"
)

// The names of the labels.
const (
	LabelCoordinator = "coordinator" // the name of the coordinator
	LabelLane        = "lane"        // the name of the lane; "" without one
)

// Wrap returns work that has labels while it runs in an operation. The context has them as well, so
// code that sets further labels with [pprof.Do] keeps these. Goroutines that work starts inherit them. The
// next body on the same goroutine does not. Outside of an operation, Wrap adds no label.
//
// A call costs five allocations and less than a microsecond. It is safe for concurrent use if work is. It panics if work is nil.
func Wrap[T any](work core.Work[T]) core.Work[T] {
	if work == nil {
		panic("profile: Wrap needs a function")
	}
	do := WrapResult(func(ctx context.Context, item T) (struct{}, error) { return struct{}{}, work(ctx, item) })
	return func(ctx context.Context, item T) error {
		_, err := do(ctx, item)
		return err
	}
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out any](work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if work == nil {
		panic("profile: WrapResult needs a function")
	}
	return func(ctx context.Context, in In) (out Out, err error) {
		o := core.OperationFrom(ctx)
		if o == nil {
			return work(ctx, in)
		}
		pprof.Do(ctx, pprof.Labels(LabelCoordinator, o.Source(), LabelLane, o.Lane()), func(ctx context.Context) { out, err = work(ctx, in) })
		return out, err
	}
}
