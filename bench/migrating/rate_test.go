package migrating_test

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example_rateBefore() {
	limiter := rate.NewLimiter(1000, 2)
	limited := func(ctx context.Context, url string) (string, error) {
		if err := limiter.Wait(ctx); err != nil {
			return "", err
		}
		return get(ctx, url)
	}

	ctx := context.Background()
	fmt.Println(limited(ctx, "/cat"))
	limiter.SetLimit(500)
	fmt.Println(limited(ctx, "/dog"))
	// Output:
	// CAT <nil>
	// DOG <nil>
}

func Example_rateAfter() {
	sink := signals.NewSink(signals.SinkOptions{})
	limiter := core.Must(ratelimit.New(core.Rate{PerSecond: 1000, Burst: 2}, ratelimit.Options{Sink: sink}))
	defer limiter.Close()
	limited := ratelimit.WrapResult(limiter, get)

	ctx := context.Background()
	fmt.Println(limited(ctx, "/cat"))
	if err := limiter.SetRate(800); err != nil {
		panic(err)
	}
	sink.Raise(ratelimit.CommandSet + ":500") // the same from code that has no limiter
	fmt.Println(limited(ctx, "/dog"))
	fmt.Println(limiter.Rate(), "a second")
	// Output:
	// CAT <nil>
	// DOG <nil>
	// 500 a second
}
