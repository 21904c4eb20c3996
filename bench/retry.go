package bench

import (
	"context"
	"errors"

	avast "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v7"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
)

// retrier calls work up to three times, without a pause.
type retrier func(work func() error) error

// retriers make a retrier of each library once, to be called many times.
var retriers = []struct {
	name string
	new  func() retrier
}{
	{"ours", func() retrier {
		r := core.Must(retry.New(retry.Options{Backoff: retry.Constant(0)}))
		return func(work func() error) error {
			return r.Do(context.Background(), func(context.Context) error { return work() })
		}
	}},
	{"backoff", func() retrier {
		opts := []backoff.RetryOption{backoff.WithBackOff(&backoff.ZeroBackOff{}), backoff.WithMaxTries(3)}
		return func(work func() error) error {
			_, err := backoff.Retry(context.Background(), func() (struct{}, error) { return struct{}{}, work() }, opts...)
			return err
		}
	}},
	{"failsafe", func() retrier {
		return failsafe.With(retrypolicy.NewBuilder[any]().WithMaxAttempts(3).Build()).Run
	}},
	{"retry-go", func() retrier {
		r := avast.New(avast.Attempts(3), avast.Delay(0), avast.DelayType(avast.FixedDelay))
		return func(work func() error) error { return r.Do(work) }
	}},
}

// retryRows measure a call that succeeds at once, and a call that succeeds at the second
// attempt.
func retryRows() []Row {
	errAgain := errors.New("again")
	success := Row{Name: "op=success"}
	recovery := Row{Name: "op=fail-once", MaxAllocs: -1}
	goals := map[string]float64{"backoff": 0.5}
	for _, library := range retriers {
		do := library.new()
		nothing := func() error { return nil }
		success.Sides = append(success.Sides, loop(library.name, goals[library.name], func(n int) {
			for range n {
				check(do(nothing))
			}
		}))
		recovery.Sides = append(recovery.Sides, loop(library.name, 0, func(n int) {
			calls := 0
			work := func() error {
				if calls++; calls%2 == 1 {
					return errAgain
				}
				return nil
			}
			for range n {
				check(do(work))
			}
		}))
	}
	return []Row{success, recovery}
}
