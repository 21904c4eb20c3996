package ratelimit

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core"
)

// Wrap returns a function that waits for a token of l and then calls work; see
// [Limiter.WaitN]. While it waits, the item keeps its slot in the coordinator. If Wait returns
// an error, the function returns it and does not call work. Wrap panics if l or work is nil.
func Wrap[T any](l *Limiter, work core.Work[T]) core.Work[T] {
	needs("Wrap", l != nil && work != nil)
	return waitFirst(func(ctx context.Context, _ T) error { return l.Wait(ctx) }, work)
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out any](l *Limiter, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	needs("WrapResult", l != nil && work != nil)
	return waitFirstResult(func(ctx context.Context, _ In) error { return l.Wait(ctx) }, work)
}

// WrapKeyed is [Wrap] for a [Keyed]: an item takes a token of the key that key returns for it.
func WrapKeyed[K comparable, T any](k *Keyed[K], key func(T) K, work core.Work[T]) core.Work[T] {
	needs("WrapKeyed", k != nil && key != nil && work != nil)
	return waitFirst(func(ctx context.Context, item T) error { return k.Wait(ctx, key(item)) }, work)
}

// WrapKeyedResult is [WrapKeyed] for work with a result.
func WrapKeyedResult[K comparable, In, Out any](k *Keyed[K], key func(In) K, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	needs("WrapKeyedResult", k != nil && key != nil && work != nil)
	return waitFirstResult(func(ctx context.Context, in In) error { return k.Wait(ctx, key(in)) }, work)
}

// waitFirst returns work that runs when wait returns no error.
func waitFirst[T any](wait, work core.Work[T]) core.Work[T] {
	return func(ctx context.Context, item T) error {
		if err := wait(ctx, item); err != nil {
			return err
		}
		return work(ctx, item)
	}
}

// waitFirstResult is waitFirst for work with a result.
func waitFirstResult[In, Out any](wait core.Work[In], work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	return func(ctx context.Context, in In) (out Out, err error) {
		if err := wait(ctx, in); err != nil {
			return out, err
		}
		return work(ctx, in)
	}
}

func needs(what string, all bool) {
	if !all {
		panic("ratelimit: " + what + " needs a limiter and functions that are not nil")
	}
}
