package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
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
	limiter := core.Must(ratelimit.New(core.Rate{PerSecond: 100, Burst: 1}, ratelimit.Options{}))
	call := func(context.Context, string) (string, error) { return request() }
	pages := core.Must(core.NewResultCoordinator(
		retry.WrapResult(retries, ratelimit.WrapResult(limiter, call)), core.Options{MaxConcurrency: 4}))
	defer pages.Close()
	fmt.Println(pages.Do(context.Background(), "/cat"))
	// Output: CAT <nil>
}

func Example_failsafeBreakerBefore() {
	ctx := context.Background()
	breaker := failsafebreaker.NewBuilder[string]().
		WithFailureThresholdPeriod(3, 30*time.Second).
		WithDelay(time.Minute).
		WithSuccessThreshold(2).
		HandleIf(func(_ string, err error) bool { return err != nil && !errors.Is(err, context.Canceled) }).
		OnOpen(func(failsafebreaker.StateChangedEvent) { fmt.Println("pages are not available") }).
		Build()
	guarded := failsafe.With[string](breaker)

	for _, url := range []string{"/gone", "/gone", "/gone", "/cat"} {
		_, err := guarded.Get(func() (string, error) { return get(ctx, url) })
		if errors.Is(err, failsafebreaker.ErrOpen) {
			fmt.Println("open, try again in", breaker.RemainingDelay().Round(time.Second))
		} else {
			fmt.Println(err)
		}
	}
	fmt.Println("may we?", breaker.TryAcquirePermit())
	// Output:
	// /gone: not found
	// /gone: not found
	// pages are not available
	// /gone: not found
	// open, try again in 1m0s
	// may we? false
}

func Example_failsafeBreakerAfter() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	breaker, err := circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "pages",
		Threshold: 3,
		Window:    30 * time.Second,
		OpenFor:   time.Minute,
		HalfOpen:  2,
	})
	if err != nil {
		panic(err)
	}
	defer breaker.Close()
	defer sink.Subscribe("circuit.open.pages", func(signals.Signal) { fmt.Println("pages are not available") })()
	guarded := circuitbreaker.WrapResult(breaker, get)

	for _, url := range []string{"/gone", "/gone", "/gone", "/cat"} {
		_, err := guarded(ctx, url)
		if open, ok := errors.AsType[*circuitbreaker.OpenError](err); ok {
			fmt.Println("open, try again in", open.Wait.Round(time.Second))
		} else {
			fmt.Println(err)
		}
	}
	fmt.Println("may we?", breaker.Check() == nil)
	// Output:
	// /gone: not found
	// /gone: not found
	// pages are not available
	// /gone: not found
	// open, try again in 1m0s
	// may we? false
}
