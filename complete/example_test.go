package complete_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/complete"
)

// Calls of an API have a limit at once and a limit a second. Failed calls are tried again,
// and there are no calls while the API is down.
func Example() {
	sink := complete.NewSink(complete.SinkOptions{})
	retrier := complete.Must(complete.NewRetrier(complete.RetrierOptions{
		Attempts: 3,
		Backoff:  complete.RetrierExponentialBackoff(time.Millisecond, 2),
	}))
	limiter := complete.Must(complete.NewLimiter(complete.Rate{PerSecond: 1000}, complete.LimiterOptions{Sink: sink}))
	defer limiter.Close()

	call := func(ctx context.Context, order string) error {
		if order == "order-2" && complete.RetrierAttempt(ctx) == 1 {
			return errors.New("try again")
		}
		complete.OperationFrom(ctx).Raise("order.shipped")
		return nil
	}
	gate, err := complete.NewGate(
		complete.RetrierWrap(retrier, complete.LimiterWrap(limiter, call)),
		complete.Options{MaxConcurrency: 4, CancelOn: "api.down", Sink: sink})
	if err != nil {
		panic(err)
	}
	defer gate.Close()

	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2"} {
		fmt.Println(order, gate.Do(ctx, order))
	}
	up := sink.Hold("api.down", "", 0)
	fmt.Println(gate.Do(ctx, "order-3"))
	up()
	fmt.Println(sink.Count("order.shipped"), "shipped,", retrier.Stats().Recovered, "at the second attempt")
	// Output:
	// order-1 <nil>
	// order-2 <nil>
	// core: refused because of signal "api.down"
	// 2 shipped, 1 at the second attempt
}
