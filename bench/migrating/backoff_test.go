package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v7"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
)

var errBusy = errors.New("busy")

// busyTwice returns a request that succeeds the third time.
func busyTwice() func() (string, error) {
	calls := 0
	return func() (string, error) {
		if calls++; calls < 3 {
			return "", errBusy
		}
		return "CAT", nil
	}
}

func Example_backoffBefore() {
	request := busyTwice()

	policy := backoff.NewExponentialBackOff()
	policy.InitialInterval = time.Millisecond
	body, err := backoff.Retry(context.Background(), request,
		backoff.WithBackOff(policy), backoff.WithMaxTries(5))
	fmt.Println(body, err)
	// Output: CAT <nil>
}

func Example_backoffAfter() {
	request := busyTwice()

	r := core.Must(retry.New(retry.Options{
		Attempts: 5,
		Backoff:  retry.Exponential(time.Millisecond, 1.5),
		Jitter:   retry.EqualJitter,
		MaxDelay: time.Minute,
	}))
	body, err := retry.DoValue(context.Background(), r, func(context.Context) (string, error) { return request() })
	fmt.Println(body, err, r.Stats().Recovered)
	// Output: CAT <nil> 1
}

func Example_backoffWrapped() {
	r := core.Must(retry.New(retry.Options{Attempts: 5}))
	pages, err := core.NewResultCoordinator(retry.WrapResult(r, get), core.Options{MaxConcurrency: 4})
	if err != nil {
		panic(err)
	}
	defer pages.Close()
	fmt.Println(pages.Do(context.Background(), "/cat"))
	// Output: CAT <nil>
}
