package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	l := core.Must(ratelimit.New(core.Rate{PerSecond: 100, Burst: 2}, ratelimit.Options{Name: "api", Sink: sink}))
	defer l.Close()

	callAPI := func(ctx context.Context, order string) error {
		fmt.Println("order", order)
		return nil
	}
	calls := core.Must(core.NewCoordinator(ratelimit.Wrap(l, callAPI), core.Options{MaxConcurrency: 1}))
	begin := time.Now()
	for _, order := range []string{"a", "b", "c", "d"} {
		if _, err := calls.Enqueue(context.Background(), order); err != nil {
			panic(err)
		}
	}
	if err := calls.Drain(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("two at once, two 10 ms apart:", time.Since(begin) >= 20*time.Millisecond) // true

	l.SetRate(50)                                      // code that has the limiter
	sink.RaiseKey(ratelimit.CommandSet+":12.5", "api") // any other code
	fmt.Println("now", l.Rate(), "per second")         // now 12.5 per second
	// Output:
	// order a
	// order b
	// order c
	// order d
	// two at once, two 10 ms apart: true
	// now 12.5 per second
}

// A server refuses a request, and says when to try again.
func ExampleLimiter_Allow() {
	l := core.Must(ratelimit.New(core.Rate{PerSecond: 0.01, Burst: 3}, ratelimit.Options{}))
	defer l.Close()
	for range 4 {
		if l.Allow() {
			fmt.Println("200 OK")
			continue
		}
		r := l.Reserve()
		fmt.Println("429 Too Many Requests, Retry-After:", r.Delay().Round(time.Second))
		r.Cancel() // only its delay was needed
	}
	// Output:
	// 200 OK
	// 200 OK
	// 200 OK
	// 429 Too Many Requests, Retry-After: 1m40s
}

// A wait that would take too long is refused at once.
func ExampleLimiter_Wait() {
	l := core.Must(ratelimit.New(core.Rate{PerSecond: ratelimit.Every(100 * time.Second), Burst: 1}, ratelimit.Options{}))
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(l.Wait(ctx))

	err := l.Wait(ctx)
	fmt.Println(errors.Is(err, ratelimit.ErrTooLate), errors.Is(err, context.DeadlineExceeded), ctx.Err())
	// Output:
	// <nil>
	// true true <nil>
}

// A server has sent Retry-After. Until then, no user of the limiter sends a request.
func ExampleLimiter_PauseFor() {
	sink := signals.NewSink(signals.SinkOptions{})
	l := core.Must(ratelimit.New(core.Rate{PerSecond: 100}, ratelimit.Options{Sink: sink}))
	defer l.Close()
	defer sink.Subscribe("rate-limit:*", func(s signals.Signal) {
		if d, ok := signals.ParseRetryAfter(s.Name); ok {
			l.PauseFor(d)
		}
	})()

	fmt.Println(l.Allow())
	sink.Raise("rate-limit:5000ms") // a request got a 429
	fmt.Println(l.Allow())
	// Output:
	// true
	// false
}

// One of many servers has sent Retry-After. Only requests to this server are paused.
func ExampleKeyed_PauseKeyFor() {
	perHost := core.Must(ratelimit.NewKeyed[string](core.Rate{PerSecond: 100}, ratelimit.Options{}))
	defer perHost.Close()

	if err := perHost.PauseKeyFor("a.example", 5*time.Second); err != nil {
		panic(err)
	}
	fmt.Println(perHost.Allow("a.example"), perHost.Allow("b.example"))
	// Output: false true
}

// Every fetch takes a token of its host.
func ExampleKeyed_Wait() {
	perHost := core.Must(ratelimit.NewKeyed[string](core.Rate{PerSecond: 100, Burst: 1}, ratelimit.Options{}))
	defer perHost.Close()

	fetch := func(ctx context.Context, u *url.URL) (string, error) {
		if err := perHost.Wait(ctx, u.Host); err != nil {
			return "", err
		}
		return "the page " + u.Path, nil
	}
	pages := core.Must(core.NewResultCoordinator(fetch, core.Options{}))

	page, err := pages.Do(context.Background(), &url.URL{Host: "a.example", Path: "/home"})
	fmt.Println(page, err, perHost.Stats().Keys)
	// Output: the page /home <nil> 1
}

// Each client has its own bucket.
func ExampleKeyed() {
	perClient := core.Must(ratelimit.NewKeyed[string](core.Rate{PerSecond: 0.01, Burst: 1}, ratelimit.Options{Capacity: 10_000}))
	defer perClient.Close()
	fmt.Println(perClient.Allow("10.0.0.1"), perClient.Allow("10.0.0.1"), perClient.Allow("10.0.0.2"))
	fmt.Println(perClient.Stats().Keys, "keys")
	// Output:
	// true false true
	// 2 keys
}

// An API limits requests, and the tokens of a language model that they use. How many tokens a
// request used is known afterwards.
func ExampleGroup() {
	limits, err := ratelimit.NewGroup([]ratelimit.Limit{
		{Name: "requests", Rate: core.Rate{PerSecond: ratelimit.Every(time.Hour / 50), Burst: 50}}, // 50 an hour
		{Name: "tokens", Rate: core.Rate{PerSecond: ratelimit.Every(time.Hour / 1000), Burst: 40_000}},
	}, ratelimit.Options{Name: "model"})
	if err != nil {
		panic(err)
	}
	defer limits.Close()

	ctx := context.Background()
	r := limits.Reserve(1, 4000) // at most
	if err := r.Wait(ctx); err != nil {
		panic(err)
	}
	used := 1500 // from the answer
	r.Adjust(1, used)

	var limit ratelimit.LimitState
	for _, limit = range limits.Stats().Limits {
		fmt.Printf("%.0f %s left\n", limit.Tokens, limit.Name)
	}
	// Output:
	// 49 requests left
	// 38500 tokens left
}

// A command without a key is for all limiters. A command with a key is for the limiter of that
// name.
func ExampleLimiter_commands() {
	sink := signals.NewSink(signals.SinkOptions{})
	api := core.Must(ratelimit.New(core.Rate{PerSecond: 10}, ratelimit.Options{Name: "api", Sink: sink}))
	defer api.Close()
	mail := core.Must(ratelimit.New(core.Rate{PerSecond: 1}, ratelimit.Options{Name: "mail", Sink: sink}))
	defer mail.Close()
	ratelimit.CommandRejected.Subscribe(sink, func(s signals.Signal, err error) {
		fmt.Println(s.Key, "rejects", err)
	})

	sink.Raise(ratelimit.CommandIncrease + ":2.5")
	sink.RaiseKey(ratelimit.CommandBurst+":50", "api")
	sink.RaiseKey(ratelimit.CommandSet+":-3", "mail")
	fmt.Println(api.Rate(), api.Burst(), mail.Rate(), mail.Burst())
	// Output:
	// mail rejects ratelimit: rate.limit.set:"-3": the value must not be negative
	// 12.5 50 3.5 20
}

// Each change of a rate or burst raises a signal. Stats has the counters and the limit.
func ExampleChange() {
	sink := signals.NewSink(signals.SinkOptions{})
	l := core.Must(ratelimit.New(core.Rate{PerSecond: 10, Burst: 1}, ratelimit.Options{Name: "api", Sink: sink}))
	defer l.Close()
	ratelimit.RateApplied.Subscribe(sink, func(s signals.Signal, c ratelimit.Change) {
		fmt.Println(s.Key, "has", c.Rate, "per second, burst", c.Burst)
	})

	l.Allow()
	sink.RaiseKey(ratelimit.CommandSet+":0", "api")
	l.Allow()
	stats := l.Stats()
	fmt.Println(stats.Counts.Allowed, "allowed,", stats.Counts.Denied, "denied")
	fmt.Println(stats.Limits[0].Name, "has", stats.Limits[0].Rate, "per second")
	// Output:
	// api has 0 per second, burst 1
	// 1 allowed, 1 denied
	// api has 0 per second
}

// A wrapped function waits for its token. A wait that would pass the deadline is refused at once.
func ExampleWrap() {
	l := core.Must(ratelimit.New(core.Rate{PerSecond: 0.01, Burst: 1}, ratelimit.Options{}))
	defer l.Close()
	ask := ratelimit.Wrap(l, func(_ context.Context, order string) error {
		fmt.Println("asked for", order)
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(ask(ctx, "order-1"))
	fmt.Println(errors.Is(ask(ctx, "order-2"), ratelimit.ErrTooLate))
	// Output:
	// asked for order-1
	// <nil>
	// true
}
