package ratelimit

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

// Wrap returns a function that waits for a token of l and then calls work; see
// [Limiter.WaitN]. While it waits, the item keeps its slot in the coordinator. If Wait returns
// an error, the function returns it and does not call work. Wrap panics if l or work is nil.
func Wrap[T any](l *Limiter, work core.Work[T]) core.Work[T] {
	if l == nil || work == nil {
		panic("ratelimit: Wrap needs a limiter and a function, not nil")
	}
	return func(ctx context.Context, item T) error {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		return work(ctx, item)
	}
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out any](l *Limiter, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if l == nil || work == nil {
		panic("ratelimit: WrapResult needs a limiter and a function, not nil")
	}
	return func(ctx context.Context, in In) (out Out, err error) {
		if err := l.Wait(ctx); err != nil {
			return out, err
		}
		return work(ctx, in)
	}
}
