package circuitbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// Three failures in half a minute open the breaker, whichever code raised them.
func Example() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	api, err := circuitbreaker.New(sink, circuitbreaker.Options{
		Name:      "api",
		Failure:   "api.failure",
		Threshold: 3,
		Window:    30 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	defer api.Close()

	call := circuitbreaker.Wrap(api, func(_ context.Context, path string) error {
		return errors.New(path + ": connection refused")
	})
	sink.Raise("api.failure") // other code had a failure as well
	for range 3 {
		err = call(ctx, "/orders")
		if open, ok := errors.AsType[*circuitbreaker.OpenError](err); ok {
			fmt.Println("refused after", open.Failures, "failures, try again in", open.Wait.Round(time.Second)) // the third call
		} else {
			fmt.Println(err) // /orders: connection refused
		}
	}

	// The breaker also stops this coordinator, which knows only the name of the held signal.
	orders := core.Must(core.NewCoordinator(call, core.Options{Sink: sink, CancelOn: "circuit.open.*"}))
	defer orders.Close()
	_, err = orders.Enqueue(ctx, "/orders")
	fmt.Println(err) // core: refused because of signal "circuit.open.api"
	// Output:
	// /orders: connection refused
	// /orders: connection refused
	// refused after 3 failures, try again in 30s
	// core: refused because of signal "circuit.open.api"
}

// Half of at least four calls must fail. A minute later one trial finds out whether the
// service works again.
func ExampleOptions_rate() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	api := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{
		Name: "api", Rate: 0.5, MinCalls: 4, HalfOpen: 1, OpenFor: time.Minute,
	}))
	defer api.Close()
	defer circuitbreaker.Changes.Subscribe(sink, func(s signals.Signal, change circuitbreaker.Change) {
		fmt.Printf("%s: %s\n", s.Name, change.Reason)
	})()
	call := circuitbreaker.Wrap(api, func(_ context.Context, err error) error { return err })

	down := errors.New("down")
	for _, err := range []error{nil, nil, down, down, nil} {
		err = call(ctx, err)
		fmt.Println(api.State(), errors.Is(err, circuitbreaker.ErrOpen))
	}
	// Output:
	// closed false
	// closed false
	// closed false
	// breaker.opened.api: too many calls have failed
	// open false
	// open true
}

// While the breaker is open, 100 items wait. Then three trials find out whether the service works. When they
// succeed, all others run. The coordinator knows the breaker only by the names of its signals.
func ExampleBreaker() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	gpt := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "gpt", OpenFor: 20 * time.Millisecond, HalfOpen: 3}))
	defer gpt.Close()

	var running, most atomic.Int32
	ask := circuitbreaker.Wrap(gpt, func(_ context.Context, question int) error {
		defer running.Add(-1)
		if now := running.Add(1); sink.Has("circuit.half_open.gpt") && now > most.Load() {
			most.Store(now)
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	calls := core.Must(core.NewCoordinator(ask, core.Options{Sink: sink, MaxConcurrency: 16, Classes: []core.Class{{
		Name: "gpt", DeferOn: "circuit.open.gpt", TrialOn: "circuit.half_open.gpt", Trials: 3,
	}}}))
	defer calls.Close()

	gpt.Trip() // has the effect of too many failures
	for question := range 100 {
		core.Must(calls.Class("gpt").Enqueue(ctx, question))
	}
	fmt.Println(calls.Stats().Running, "run")
	if err := calls.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println(calls.Stats().Succeeded, "succeeded; more than 3 during the trial:", most.Load() > 3)
	// Output:
	// 0 run
	// 100 succeeded; more than 3 during the trial: false
}

// A person or a test opens the breaker. The error of a refused call says when to try again.
func ExampleBreaker_Trip() {
	sink := signals.NewSink(signals.SinkOptions{})
	b := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "carrier", OpenFor: time.Minute}))
	defer b.Close()
	defer circuitbreaker.Changes.Subscribe(sink, func(s signals.Signal, c circuitbreaker.Change) {
		fmt.Println(s.Name)
	})()

	b.Trip()
	fmt.Println(b.Open(), sink.Has("circuit.open.carrier"))
	open, ok := errors.AsType[*circuitbreaker.OpenError](b.Check())
	fmt.Println(ok, open.Wait > 0)
	// Output:
	// breaker.opened.carrier
	// true true
	// true true
}

// Allow is for a call that is not one function. Its result counts when done is called.
func ExampleBreaker_Allow() {
	sink := signals.NewSink(signals.SinkOptions{})
	b := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "stream", Threshold: 1}))
	defer b.Close()

	done, err := b.Allow()
	fmt.Println(err)
	done(errors.New("connection lost"))
	_, err = b.Allow()
	fmt.Println(errors.Is(err, circuitbreaker.ErrOpen))
	// Output:
	// <nil>
	// true
}

func ExampleWrapResult() {
	sink := signals.NewSink(signals.SinkOptions{})
	b := core.Must(circuitbreaker.New(sink, circuitbreaker.Options{Name: "carrier"}))
	defer b.Close()
	ask := circuitbreaker.WrapResult(b, func(context.Context, string) (int, error) { return 490, nil })
	fmt.Println(ask(context.Background(), "Vienna"))
	// Output: 490 <nil>
}

// An endpoint that has failed twice is left alone for a minute; others go on.
func ExampleKeyed() {
	endpoints := core.Must(circuitbreaker.NewKeyed(circuitbreaker.KeyedOptions{Name: "webhooks", Rule: breaker.Options{Threshold: 2, OpenFor: time.Minute}}))
	call := circuitbreaker.WrapKeyed(endpoints, func(customer string) string { return customer }, func(_ context.Context, customer string) error {
		if customer == "acme" {
			return errors.New("connection refused")
		}
		return nil
	})
	for _, customer := range []string{"acme", "globex", "acme", "globex"} {
		_ = call(context.Background(), customer)
	}
	fmt.Println(endpoints)
	fmt.Println(endpoints.Check("acme") != nil, endpoints.Check("globex"))
	// Output:
	// breaker webhooks: 1 keys are open: acme
	// true <nil>
}
