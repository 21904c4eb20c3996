package hedge_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/hedge"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	h := core.Must(hedge.New(hedge.Options{Delay: 10 * time.Millisecond, MaxExtra: 1, Sink: sink}))
	hedge.Started.Subscribe(sink, func(s signals.Signal, e hedge.Event) {
		fmt.Println(s.Name, "after at least 10 ms:", e.After >= 10*time.Millisecond)
	})

	// The first server is slow today.
	servers := map[int]time.Duration{1: time.Minute, 2: 0}
	price := func(ctx context.Context, book string) (string, error) {
		server := hedge.Attempt(ctx)
		select {
		case <-time.After(servers[server]):
			return fmt.Sprintf("%s costs 20, says server %d", book, server), nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	prices := core.Must(core.NewResultCoordinator(hedge.WrapResult(h, price), core.Options{Sink: sink}))
	defer prices.Close()
	fmt.Println(prices.Do(context.Background(), "Dune"))

	var stats hedge.Stats = h.Stats()
	fmt.Println(stats.Hedged, "hedged,", stats.Won, "won")
	// Output:
	// hedge.started after at least 10 ms: true
	// Dune costs 20, says server 2 <nil>
	// 1 hedged, 1 won
}

// A fallback is a value for a call that fails. It needs no module: the error decides.
func ExampleDoValue_fallback() {
	h := core.Must(hedge.New(hedge.Options{}))
	last := map[string]int{"Dune": 20} // the values that were known before

	price := func(ctx context.Context, book string) (int, error) {
		p, err := hedge.DoValue(ctx, h, func(context.Context) (int, error) {
			return 0, errors.New("the shop is closed")
		})
		if old, ok := last[book]; err != nil && ok {
			return old, nil
		}
		return p, err
	}
	prices := core.Must(core.NewResultCoordinator(price, core.Options{}))
	defer prices.Close()
	fmt.Println(prices.Do(context.Background(), "Dune"))
	fmt.Println(prices.Do(context.Background(), "Emma"))
	// Output:
	// 20 <nil>
	// 0 the shop is closed
}
