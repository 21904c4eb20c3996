package ratelimit

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

// Wrap returns work that waits for a token of l before it does its work; see
// [Limiter.WaitN]. When it cannot have one, it returns that error, and the work is not
// done. Wrap panics if l or work is nil.
func Wrap[T any](l *Limiter, work core.Work[T]) core.Work[T] {
	if l == nil || work == nil {
		panic("ratelimit: Wrap needs a limiter and a function")
	}
	return func(ctx context.Context, item T) error {
		if err := l.Wait(ctx); err != nil {
			return err
		}
		return work(ctx, item)
	}
}

// WrapResult is Wrap for work with a result.
func WrapResult[In, Out any](l *Limiter, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if l == nil || work == nil {
		panic("ratelimit: WrapResult needs a limiter and a function")
	}
	return func(ctx context.Context, in In) (out Out, err error) {
		if err := l.Wait(ctx); err != nil {
			return out, err
		}
		return work(ctx, in)
	}
}

// WrapKeyed is Wrap for a limiter of many keys: key says whose token an item takes.
func WrapKeyed[K comparable, T any](k *Keyed[K], key func(T) K, work core.Work[T]) core.Work[T] {
	if k == nil || key == nil || work == nil {
		panic("ratelimit: WrapKeyed needs a limiter and two functions")
	}
	return func(ctx context.Context, item T) error {
		if err := k.Wait(ctx, key(item)); err != nil {
			return err
		}
		return work(ctx, item)
	}
}
