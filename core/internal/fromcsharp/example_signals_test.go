package fromcsharp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// What a signal is.
func Example_signal() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.Subscribe("rate-limit:*", func(s signals.Signal) {
		fmt.Println(s.Name, "about", s.Key) // also Operation, Source, Time and Seq

		fmt.Println(s.Name == "rate-limit:500ms")         // Is
		fmt.Println(strings.HasPrefix(s.Name, "rate-"))   // StartsWith
		fmt.Println(s.Matches("rate-limit:*, timeout"))   // pattern
		fmt.Println(s.Arg())                              // the text after the colon
		fmt.Println(s.Depth(), s.Path())                  // its causes
		fmt.Println(slices.Contains(s.Path(), "timeout")) // WouldCycle
	})
	sink.RaiseKey("rate-limit:500ms", "payments-api")
	// Output:
	// rate-limit:500ms about payments-api
	// true
	// true
	// true
	// 500ms true
	// 0 [rate-limit:500ms]
	// false
}

// The body raises signals and does not know who reads them.
func Example_raise() {
	ctx := context.Background()
	translator := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		err := translate(ctx, text)
		if limited, ok := errors.AsType[*limitError](err); ok {
			core.OperationFrom(ctx).Raise(fmt.Sprintf("rate-limit:%dms", limited.RetryAfter.Milliseconds()))
		}
		return err
	}, core.Options{}))
	defer translator.Close()

	if err := translator.Do(ctx, "too long"); err != nil {
		fmt.Println(err)
	}

	// later, somewhere else
	if translator.Has("rate-limit:*") {
		fmt.Println("better wait")
	}
	// Output:
	// limited
	// better wait
}

// A body reports a call by signals.
func Example_raiseInBody() {
	ctx := context.Background()
	requests := core.Must(core.NewCoordinator(func(ctx context.Context, url string) error {
		op := core.OperationFrom(ctx)
		response, err := get(ctx, url)
		limited, isLimit := errors.AsType[*limitError](err)
		switch {
		case isLimit:
			op.Raise("rate-limit")
			op.Raise(fmt.Sprintf("rate-limit:%dms", limited.RetryAfter.Milliseconds()))
		case errors.Is(err, context.DeadlineExceeded):
			op.Raise("timeout")
		case err == nil && response.Cached:
			op.Raise("cache-hit")
		case err == nil && response.Took > 2*time.Second:
			op.Raise("slow-response")
		}
		return err
	}, core.Options{}))
	defer requests.Close()

	err := errors.Join(requests.Do(ctx, "cached.example"), requests.Do(ctx, "slow.example"))
	for s := range requests.Sense(signals.Query{}) {
		fmt.Println(s.Name)
	}
	fmt.Println(err)
	// Output:
	// cache-hit
	// slow-response
	// <nil>
}

// The example shows all that an operation can do with signals.
func Example_emitter() {
	sink := signals.NewSink(signals.SinkOptions{})
	sink.RaiseKey("order.placed", "order-7")
	cause, _ := sink.WaitFor(context.Background(), "order.placed")

	c := core.Must(core.NewCoordinator(func(ctx context.Context, id string) error {
		op := core.OperationFrom(ctx) // the operation has ID and Key
		op.SetKey(id)

		op.Raise("reserving")                       // Emit
		op.Because(cause).Raise("stock.reserved")   // EmitCaused
		fmt.Println(op.Retract("reserving"))        // the newest of that name
		fmt.Println(op.Has("stock.*"))              // HasSignal; patterns are allowed
		fmt.Println(op.RetractMatching("stock.*"))  // how many
		fmt.Println(len(op.Signals()), "are left")  // GetSignals
		op.Scoped("shop", "orders", "*").Raise("a") // shop.orders.*.a
		return nil
	}, core.Options{Sink: sink}))
	defer c.Close()

	fmt.Println(c.Do(context.Background(), "order-7"))
	// Output:
	// true
	// true
	// 1
	// 0 are left
	// <nil>
}

// Code that is deep below the body finds the operation in the context. Outside of an
// operation, as in a test, its methods do nothing.
func Example_deepBelow() {
	ctx := context.Background()
	download := func(ctx context.Context, url string) error {
		op := core.OperationFrom(ctx)
		op.Raise("stage.starting")
		defer op.Raise("stage.completed")
		// ...
		op.Raise("progress:100")
		return nil
	}

	c := core.Must(core.NewCoordinator(download, core.Options{}))
	defer c.Close()
	if err := errors.Join(download(ctx, "in a test"), c.Do(ctx, "https://example.com")); err != nil {
		panic(err)
	}

	for s := range c.Sense(signals.Query{Pattern: "stage.*"}) {
		fmt.Println(s.Name)
	}
	fmt.Println("progress:", c.Count("progress:*"))
	fmt.Println("under way:", c.Has("stage.starting") && !c.Has("stage.completed"))
	// Output:
	// stage.starting
	// stage.completed
	// progress: 1
	// under way: false
}

// An operation holds signals while conditions last.
func Example_retract() {
	ctx := context.Background()
	c := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		op := core.OperationFrom(ctx)
		op.Raise("processing")
		err := translate(ctx, text)
		switch {
		case errors.Is(err, errTryAgain):
			op.Raise("retrying") // still processing
		case err != nil:
			op.RetractMatching("processing*")
			op.Raise("failed")
		default:
			op.Retract("processing")
			op.Raise("completed")
		}
		return err
	}, core.Options{}))
	defer c.Close()

	fmt.Println(c.Do(ctx, "hello"), c.Do(ctx, "busy"))
	for s := range c.Sense(signals.Query{}) {
		fmt.Println(s.Name)
	}
	// Output:
	// <nil> try again
	// completed
	// processing
	// retrying
}

// A condition ends with its release, its lease or its operation, whichever comes first. So
// a return or a panic leaves no condition behind.
func Example_holdInBody() {
	sink := signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		core.OperationFrom(ctx).Hold("processing", 0)
		fmt.Println("processing:", sink.Has("processing"))
		return translate(ctx, text)
	}, core.Options{Sink: sink}))
	defer c.Close()

	fmt.Println(c.Do(context.Background(), "busy"))
	fmt.Println("processing:", sink.Has("processing"))
	// Output:
	// processing: true
	// try again
	// processing: false
}

// A function is called for each signal that is retracted.
func Example_onRetract() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		op := core.OperationFrom(ctx)
		op.SetKey(text)
		op.Raise("processing")
		op.RetractMatching("proc*")
		return nil
	}, core.Options{OnRetract: func(r signals.Retraction) {
		fmt.Println(r.Signal.Name, "of", r.Signal.Key, "is over")
		if r.Pattern != "" {
			fmt.Println("by the pattern", r.Pattern)
		}
	}}))
	defer c.Close()

	fmt.Println(c.Do(context.Background(), "hello"))
	// Output:
	// processing of hello is over
	// by the pattern proc*
	// <nil>
}

// Calls are repeated until they succeed, and signals show it.
func Example_recovery() {
	ctx := context.Background()
	requests := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		op := core.OperationFrom(ctx)
		for {
			err := nextTry(ctx, text)
			limited, ok := errors.AsType[*limitError](err)
			if !ok {
				if op.Retract("rate-limited") {
					op.Raise("rate-limit-cleared")
				}
				return err
			}
			if !op.Has("rate-limited") {
				op.Raise("rate-limited")
			}
			select {
			case <-time.After(limited.RetryAfter):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}, core.Options{}))
	defer requests.Close()

	fmt.Println(requests.Do(ctx, "hello"))
	fmt.Println(requests.Has("rate-limited"), requests.Has("rate-limit-cleared"))
	// Output:
	// <nil>
	// false true
}

// A coordinator shows the signals that operations in its window have raised.
func Example_sense() {
	ctx := context.Background()
	c := translated(ctx, "user-123", "user-7")
	defer c.Close()

	if c.Has("rate-limit") { // HasSignal
		fmt.Println("slow down")
	}
	if c.Count("slow-response") > 1 { // CountSignals
		fmt.Println("many are slow")
	}
	for s := range c.Sense(signals.Query{Pattern: "http.error:*"}) { // GetSignalsByPattern
		fmt.Println(s.Key, s.Name)
	}
	aMinuteAgo := time.Now().Add(-time.Minute)
	for range c.Sense(signals.Query{Within: time.Since(aMinuteAgo)}) { // GetSignalsSince
		fmt.Print(".")
	}
	for range c.Sense(signals.Query{Key: "user-123"}) { // GetSignalsByKey
		fmt.Print("!")
	}
	// Output:
	// slow down
	// many are slow
	// user-123 http.error:429
	// user-7 http.error:429
	// ......!!!
}

// Called for every signal that an operation raises.
func Example_onSignal() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, text string) error {
		core.OperationFrom(ctx).Raise("error.grammar")
		return nil
	}, core.Options{Name: "translator", OnSignal: func(s signals.Signal) {
		fmt.Println(s.Name, "from", s.Source) // and s.Operation
	}}))
	defer c.Close()

	if err := c.Do(context.Background(), "hello"); err != nil {
		panic(err)
	}
	hasErrors := c.Has("error.*")
	errorCount := c.Count("error.*")
	allErrors := slices.Collect(c.Sense(signals.Query{Pattern: "error.*"}))
	fmt.Println(hasErrors, errorCount, len(allErrors))
	// Output:
	// error.grammar from translator
	// true 1 1
}

// A query selects the signals of one operation.
func Example_byOperation() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	images := core.Must(core.NewCoordinator(func(ctx context.Context, size string) error {
		op := core.OperationFrom(ctx)
		op.Raise("resize." + size + ".started")
		// ...
		op.Raise("resize." + size + ".complete")
		op.RaiseKey("file.saved", "/srv/"+size+".png")
		return nil
	}, core.Options{Sink: sink}))
	defer images.Close()

	id := core.Must(images.Enqueue(ctx, "small"))
	if err := images.Drain(ctx); err != nil {
		panic(err)
	}

	own := slices.Collect(sink.Sense(signals.Query{Operation: id}))
	fmt.Println(len(own), "signals")
	for s := range sink.Sense(signals.Query{Operation: id, Pattern: "resize.*"}) {
		fmt.Println(s.Name)
	}
	// Output:
	// 3 signals
	// resize.small.started
	// resize.small.complete
}

// OnSignal gets the signals of a ForEach while it runs.
func Example_forEachSignals() {
	ctx := context.Background()
	sizes := slices.Values([]string{"small", "large"})
	sink := signals.NewSink(signals.SinkOptions{})

	err := core.ForEach(ctx, sizes, func(ctx context.Context, size string) error {
		core.OperationFrom(ctx).RaiseKey("file.saved", "/srv/"+size+".png")
		return nil
	}, core.Options{Sink: sink})

	fmt.Println(sink.Count("file.saved"), "saved,", err)
	// Output: 2 saved, <nil>
}

// Names that patterns can select; the identity is in the key.
func Example_names() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, user string) error {
		op := core.OperationFrom(ctx)
		op.SetKey(user) // what the operation is about; not part of the name

		op.Raise("success")           // plain
		op.Raise("rate-limit:5000ms") // with an argument
		op.Raise("payment.declined")  // from the general to the special
		return nil
	}, core.Options{}))
	defer c.Close()

	fmt.Println(c.Do(context.Background(), "user-123"))
	for s := range c.Sense(signals.Query{Pattern: "payment.*"}) {
		fmt.Println(s.Key, s.Name)
	}
	// Output:
	// <nil>
	// user-123 payment.declined
}

// A health page needs no metrics library.
func Example_health() {
	translation := core.Must(core.NewCoordinator(translate, core.Options{}))
	defer translation.Close()
	payment := core.Must(core.NewCoordinator(pay, core.Options{}))
	defer payment.Close()

	health := func(w http.ResponseWriter, r *http.Request) {
		t, p := translation.Stats(), payment.Stats()
		err := json.NewEncoder(w).Encode(map[string]any{
			"translation": map[string]any{
				"pending":          t.Pending,
				"active":           t.Running,
				"recentRateLimits": translation.Count("rate-limit"),
				"recentTimeouts":   translation.Count("timeout"),
				"recentSuccess":    translation.Count("success"),
				"hasErrors":        translation.Has("error.*"),
			},
			"payment": map[string]any{
				"pending":       p.Pending,
				"gatewayErrors": payment.Count("gateway-error"),
				"declines":      payment.Count("declined"),
				"approvals":     payment.Count("approved"),
			},
		})
		if err != nil {
			slog.Error("health", "err", err)
		}
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/detailed", health)
	response := httptest.NewRecorder()
	mux.ServeHTTP(response, httptest.NewRequest("GET", "/health/detailed", nil))
	fmt.Println(response.Body)
	// Output:
	// {"payment":{"approvals":0,"declines":0,"gatewayErrors":0,"pending":0},"translation":{"active":0,"hasErrors":false,"pending":0,"recentRateLimits":0,"recentSuccess":0,"recentTimeouts":0}}
}

// These functions stand for your code.

type limitError struct{ RetryAfter time.Duration }

func (*limitError) Error() string { return "limited" }

var errTryAgain = errors.New("try again")

func translate(_ context.Context, text string) error {
	switch text {
	case "too long":
		return &limitError{RetryAfter: 5 * time.Second}
	case "busy":
		return errTryAgain
	}
	return nil
}

func pay(context.Context, int) error { return nil }

type apiResponse struct {
	Cached bool
	Took   time.Duration
}

func get(_ context.Context, url string) (apiResponse, error) {
	return apiResponse{Cached: url == "cached.example", Took: 3 * time.Second}, nil
}

// nextTry is rate-limited the first time only.
func nextTry(ctx context.Context, _ string) error {
	if op := core.OperationFrom(ctx); !op.Has("rate-limited") {
		return &limitError{RetryAfter: time.Millisecond}
	}
	return nil
}

// translated returns a coordinator that has done something for each user.
func translated(ctx context.Context, users ...string) *core.Coordinator[string] {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, user string) error {
		op := core.OperationFrom(ctx)
		op.SetKey(user)
		for _, name := range []string{"rate-limit", "slow-response", "http.error:429"} {
			op.Raise(name)
		}
		return nil
	}, core.Options{MaxConcurrency: 1}))
	for _, user := range users {
		if err := c.Do(ctx, user); err != nil {
			panic(err)
		}
	}
	return c
}
