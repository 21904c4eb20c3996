package breaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/breaker"
)

// Two failures in a row open the breaker; a minute later a trial closes it. The caller
// passes the time.
func Example() {
	b, err := breaker.New(breaker.Options{Threshold: 2, OpenFor: time.Minute})
	if err != nil {
		panic(err)
	}
	now := time.Now()
	call := func(do func() error) {
		permit, ok := b.Allow(now)
		if !ok {
			fmt.Println("refused, try again in", b.ClosesIn(now))
			return
		}
		result := breaker.Success
		if do() != nil {
			result = breaker.Failure
		}
		b.Done(permit, now, result)
		fmt.Println(b.State(now), "after", b.Failures(now), "failures")
	}
	fails := func() error { return errors.New("connection refused") }
	works := func() error { return nil }

	call(fails)
	call(fails)
	now = now.Add(20 * time.Second)
	call(works)
	now = now.Add(40 * time.Second)
	call(works)
	// Output:
	// closed after 1 failures
	// open after 2 failures
	// refused, try again in 40s
	// closed after 0 failures
}

// Half of the calls of the last ten seconds must fail, and there must be four of them.
// Three trials at once find out whether they succeed again.
func ExampleOptions_rate() {
	b, err := breaker.New(breaker.Options{Rate: 0.5, MinCalls: 4, Window: 10 * time.Second, Trials: 3})
	if err != nil {
		panic(err)
	}
	now := time.Now()
	for _, result := range []breaker.Result{breaker.Failure, breaker.Success, breaker.Success, breaker.Failure} {
		permit, _ := b.Allow(now)
		if b.Done(permit, now, result) {
			fmt.Println(b.State(now), "for", b.ClosesIn(now))
		}
	}
	now = now.Add(30 * time.Second)
	for range 4 {
		_, ok := b.Allow(now)
		fmt.Println("allowed:", ok)
	}
	// Output:
	// open for 30s
	// allowed: true
	// allowed: true
	// allowed: true
	// allowed: false
}

func ExampleOpenError() {
	err := error(&breaker.OpenError{Name: "api", Failures: 5, Wait: 30 * time.Second})
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Println(open, errors.Is(err, breaker.ErrOpen))
	}
	// Output: breaker: api is open after 5 failures, for another 30s true
}
