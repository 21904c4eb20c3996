package migrating_test

import (
	"context"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example_failsafeBefore() {
	request := busyTwice()

	retries := retrypolicy.NewBuilder[string]().WithMaxAttempts(5).WithBackoff(time.Millisecond, time.Second).Build()
	limiter := ratelimiter.NewSmoothBuilder[string](100, time.Second).WithMaxWaitTime(time.Second).Build()
	atOnce := bulkhead.New[string](4)
	body, err := failsafe.With[string](retries, limiter, atOnce).Get(request)
	fmt.Println(body, err)
	// Output: CAT <nil>
}

func Example_failsafeAfter() {
	request := busyTwice()

	retries := core.Must(retry.New(retry.Options{Attempts: 5, Backoff: retry.Exponential(time.Millisecond, 2), MaxDelay: time.Second}))
	limiter := core.Must(ratelimit.New(100, ratelimit.Options{Burst: 1}))
	call := func(context.Context, string) (string, error) { return request() }
	pages, err := core.NewResultCoordinator(
		retry.WrapResult(retries, ratelimit.WrapResult(limiter, call)), core.Options{MaxConcurrency: 4})
	if err != nil {
		panic(err)
	}
	defer pages.Close()
	fmt.Println(pages.Do(context.Background(), "/cat"))
	// Output: CAT <nil>
}
