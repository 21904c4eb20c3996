package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	r := core.Must(retry.New(retry.Options{
		Attempts: 4,
		Backoff:  retry.Exponential(time.Millisecond, 2),
		MaxDelay: time.Second,
	}))

	errBusy, errGone := errors.New("busy"), errors.New("no such file")
	read := func(ctx context.Context, name string) (string, error) {
		switch {
		case name == "gone.txt":
			return "", retry.Permanent(errGone) // no attempt can change that
		case retry.Attempt(ctx) < 3:
			return "", errBusy
		}
		return "contents of " + name, nil
	}

	ctx := context.Background()
	for _, name := range []string{"a.txt", "gone.txt"} {
		text, err := retry.DoValue(ctx, r, func(ctx context.Context) (string, error) { return read(ctx, name) })
		fmt.Println(text, err) // contents of a.txt <nil>; for gone.txt: no such file
	}
	err := r.Do(ctx, func(context.Context) error { return errBusy })
	fmt.Println(err, errors.Is(err, errBusy), errors.Is(err, retry.ErrAttempts)) // retry: gave up after 4 attempts: busy true true
	// Output:
	// contents of a.txt <nil>
	//  no such file
	// retry: gave up after 4 attempts: busy true true
}

// Three retries are four attempts.
func ExampleRetrier_Do() {
	r, err := retry.New(retry.Options{
		Attempts: 4,
		Backoff:  retry.Exponential(10*time.Millisecond, 2.0),
	})
	if err != nil {
		panic(err)
	}
	retry.Events.Named(retry.SignalStarted).Subscribe(r.Sink(), func(_ signals.Signal, e retry.Event) {
		fmt.Printf("attempt %d, after %v: %v\n", e.Attempt, e.Delay, e.Err)
	})

	err = r.Do(context.Background(), func(ctx context.Context) error {
		return errors.New("not reachable")
	})
	fmt.Println(err)
	// Output:
	// attempt 2, after 10ms: not reachable
	// attempt 3, after 20ms: not reachable
	// attempt 4, after 40ms: not reachable
	// retry: gave up after 4 attempts: not reachable
}

// While an item waits for its next attempt, it gives up its slot, so that others run. It keeps
// its key: the second item of a host waits for the first one.
func ExampleWrap_slots() {
	r, err := retry.New(retry.Options{
		Attempts: 3,
		Backoff:  func(attempt int) time.Duration { return 10 * time.Millisecond << attempt },
	})
	if err != nil {
		panic(err)
	}
	call := func(ctx context.Context, u url.URL) error {
		fmt.Println(u.Host, u.Path, "attempt", retry.Attempt(ctx))
		if u.Path == "/a" && retry.Attempt(ctx) < 3 {
			return errors.New("503 Service Unavailable")
		}
		return nil
	}
	calls, err := core.NewKeyedCoordinator(func(u url.URL) string { return u.Host }, retry.Wrap(r, call), core.Options{MaxConcurrency: 1})
	if err != nil {
		panic(err)
	}
	defer calls.Close()

	ctx := context.Background()
	for _, u := range []url.URL{{Host: "one", Path: "/a"}, {Host: "one", Path: "/b"}, {Host: "two", Path: "/c"}} {
		if _, err := calls.Enqueue(ctx, u); err != nil {
			panic(err)
		}
	}
	if err := calls.Drain(ctx); err != nil { // waits for the retries
		panic(err)
	}
	fmt.Println(calls.Stats().Succeeded, "succeeded")
	// Output:
	// one /a attempt 1
	// two /c attempt 1
	// one /a attempt 2
	// one /a attempt 3
	// one /b attempt 1
	// 3 succeeded
}

// Wrap adds retries to the work of any coordinator.
func ExampleWrap() {
	r := core.Must(retry.New(retry.Options{Name: "mail", Backoff: retry.Constant(time.Millisecond)}))
	send := func(ctx context.Context, to string) error {
		if retry.Attempt(ctx) == 1 {
			return errors.New("greylisted")
		}
		return nil
	}
	c, err := core.NewCoordinator(retry.Wrap(r, send), core.Options{MaxConcurrency: 8})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	fmt.Println(c.Do(context.Background(), "ada@example.com"))
	fmt.Println(c.Has(retry.SignalRecovered), r.Stats().Recovered)
	// Output:
	// <nil>
	// true 1
}

// A server that says when to call again is not called earlier.
func ExampleAfter() {
	r := core.Must(retry.New(retry.Options{Backoff: retry.Constant(time.Hour)}))
	header := http.Header{"Retry-After": {"0"}}
	err := r.Do(context.Background(), func(ctx context.Context) error {
		if retry.Attempt(ctx) > 1 {
			return nil
		}
		err := errors.New("429 Too Many Requests")
		if d, ok := retry.ParseRetryAfter(header.Get("Retry-After"), time.Now()); ok {
			return retry.After(err, d)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// <nil>
}

// While nothing succeeds, a budget keeps retries from multiplying the load.
func ExampleBudget() {
	budget, err := retry.NewBudget(retry.BudgetOptions{Ratio: 0.1, PerSecond: -1, Burst: 10})
	if err != nil {
		panic(err)
	}
	r := core.Must(retry.New(retry.Options{Budget: budget, Backoff: retry.Constant(0)}))
	attempts := 0
	for range 100 {
		err = r.Do(context.Background(), func(context.Context) error {
			attempts++
			return errors.New("overloaded")
		})
	}
	fmt.Println(attempts, "attempts for 100 calls")
	fmt.Println(err)
	// Output:
	// 110 attempts for 100 calls
	// retry: gave up after 1 attempt: the budget is spent: overloaded
}

// The error of a call that gave up says how many attempts there were, and why it ended.
func ExampleError() {
	r, err := retry.New(retry.Options{Attempts: 2, Backoff: retry.Constant(0)})
	if err != nil {
		panic(err)
	}
	err = r.Do(context.Background(), func(context.Context) error { return errors.New("busy") })
	if gaveUp, ok := errors.AsType[*retry.Error](err); ok {
		fmt.Println(gaveUp.Attempts, gaveUp.Err, gaveUp.Cause == retry.ErrAttempts)
	}
	// Output: 2 busy true
}

// A permanent error ends the attempts.
func ExamplePermanent() {
	r := core.Must(retry.New(retry.Options{Attempts: 5, Backoff: retry.Constant(time.Millisecond)}))
	err := r.Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("attempt", retry.Attempt(ctx))
		return retry.Permanent(errors.New("no address"))
	})
	fmt.Println(err)
	// Output:
	// attempt 1
	// no address
}

// The backoff doubles from attempt to attempt. With FullJitter as Options.Jitter, each delay is a
// random part of it.
func ExampleExponential() {
	backoff := retry.Exponential(50*time.Millisecond, 2)
	fmt.Println(backoff(1), backoff(2), backoff(3))
	// Output: 50ms 100ms 200ms
}

// RetryIf selects errors; Retryable is the default.
func ExampleRetryable() {
	busy := errors.New("busy")
	fmt.Println(retry.Retryable(busy), retry.Retryable(context.Canceled))
	// Output: true false
}

func ExampleWrapResult() {
	r := core.Must(retry.New(retry.Options{Backoff: retry.Constant(time.Millisecond)}))
	ask := retry.WrapResult(r, func(ctx context.Context, city string) (int, error) {
		if retry.Attempt(ctx) == 1 {
			return 0, errors.New("carrier is busy")
		}
		return 490, nil
	})
	fmt.Println(ask(context.Background(), "Vienna"))
	// Output: 490 <nil>
}
