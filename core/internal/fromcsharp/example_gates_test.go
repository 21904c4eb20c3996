package fromcsharp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Signals that keep items out, and signals that keep them waiting.
func Example_gates() {
	sink := signals.NewSink(signals.SinkOptions{})
	requests := core.Must(core.NewCoordinator(callAPI, core.Options{
		Sink:     sink,
		CancelOn: "circuit-open, shutting-down",
		DeferOn:  "backpressure, rate-limit*",
		MaxDefer: 5 * time.Second,
	}))
	defer requests.Close()

	sink.Raise("circuit-open")
	_, err := requests.TryEnqueue(context.Background(), "data")
	if refused, ok := errors.AsType[*core.RefusedError](err); ok {
		fmt.Println("refused because of", refused.Signal.Name)
	}
	// Output: refused because of circuit-open
}

// One coordinator is gated by the signals of another, and neither refers to the other.
func Example_awareness() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	translations := core.Must(core.NewCoordinator(func(_ context.Context, text string) error {
		fmt.Println("translating", text)
		return nil
	}, core.Options{Sink: sink, DeferOn: "gateway.slow"}))
	defer translations.Close()

	// some other part of the program
	recovered := sink.Hold("gateway.slow", "eu-west", 0)

	core.Must(translations.Enqueue(ctx, "hello"))
	fmt.Println("the gateway has recovered")
	recovered()
	if err := translations.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// the gateway has recovered
	// translating hello
}

// If one call is told to wait, all calls wait for that time.
func Example_adaptiveRate() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	translator := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		err := callAPI(ctx, text)
		if limited, ok := errors.AsType[*rateLimitError](err); ok {
			sink.Hold("rate-limit", "", limited.RetryAfter) // goes by itself
		}
		return err
	}, core.Options{
		MaxConcurrency: 1,
		MaxTracked:     100,
		Sink:           sink,
		DeferOn:        "rate-limit",
		MaxDefer:       -1,
	}))
	defer translator.Close()

	fmt.Println(translator.Do(ctx, "too much"))
	fmt.Println(translator.Do(ctx, "hello")) // 20 milliseconds later
	fmt.Println("limited:", sink.Has("rate-limit"))
	// Output:
	// try again in 20ms
	// <nil>
	// limited: false
}

// The delay of the newest "rate-limit:5000ms".
func Example_retryAfter() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Raise("rate-limit:5000ms")
	sink.Raise("rate-limit:250ms")

	var delay time.Duration
	for s := range sink.Sense(signals.Query{Pattern: "rate-limit:*"}) { // oldest first
		if d, ok := signals.ParseRetryAfter(s.Name); ok {
			delay = d
		}
	}
	fmt.Println("be polite for", delay)
	// Output: be polite for 250ms
}

// Readers pause during an update, without a lock.
func Example_coordinatedReads() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	readers := core.Must(core.NewCoordinator(callAPI, core.Options{
		Sink:     sink,
		DeferOn:  "update.in-progress",
		ResumeOn: "update.done", // counts while it is newer than the update
	}))
	defer readers.Close()

	sink.Raise("update.in-progress") // readers wait
	core.Must(readers.Enqueue(ctx, "SELECT 1"))
	sink.Raise("update.done") // readers go on
	fmt.Println(readers.Flush(ctx))

	// the same with a held signal, which other signals cannot push out of the window
	release := sink.Hold("update.in-progress", "", time.Minute)
	_, err := readers.Enqueue(ctx, "SELECT 2")
	release()
	fmt.Println(err, readers.Flush(ctx))
	// Output:
	// <nil>
	// <nil> <nil>
}

// These functions stand for your code.

type rateLimitError struct{ RetryAfter time.Duration }

func (e *rateLimitError) Error() string { return fmt.Sprint("try again in ", e.RetryAfter) }

func callAPI(_ context.Context, request string) error {
	switch request {
	case "too much":
		return &rateLimitError{RetryAfter: 20 * time.Millisecond}
	case "unreachable":
		return fmt.Errorf("%s: %w", request, context.DeadlineExceeded)
	}
	return nil
}
