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
	call := func(result breaker.Result) {
		permit, ok := b.Allow(now)
		if !ok {
			fmt.Println("refused, try again in", b.ClosesIn(now))
			return
		}
		b.Done(permit, now, result)
		fmt.Println(b.State(now), "after", b.Failures(now), "failures")
	}

	call(breaker.Failure)
	call(breaker.Failure)
	now = now.Add(20 * time.Second)
	call(breaker.Success)
	now = now.Add(40 * time.Second)
	call(breaker.Success)
	// Output:
	// closed after 1 failures
	// open after 2 failures
	// refused, try again in 40s
	// closed after 0 failures
}

func ExampleOpenError() {
	err := error(&breaker.OpenError{Name: "api", Failures: 5, Wait: 30 * time.Second})
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Println(open, errors.Is(err, breaker.ErrOpen))
	}
	// Output: breaker: api is open after 5 failures, for another 30s true
}
