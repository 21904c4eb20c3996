package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// An API limits calls and tokens a minute, and each tenant has a share. Items wait for tokens in their lane,
// without a slot.
func ExampleClass() {
	type call struct {
		tenant string
		tokens int
	}
	ask := func(ctx context.Context, c call) error {
		used := c.tokens + 50                            // as the answer says
		core.OperationFrom(ctx).Charge(0, used-c.tokens) // calls, cost
		return nil
	}
	calls := core.Must(core.NewKeyedCoordinator(func(c call) string { return c.tenant }, ask, core.Options{
		Lanes: []core.Lane{{Name: "interactive"}, {Name: "batch"}},
		Classes: []core.Class{{Name: "gpt", Limit: 8, // at once
			Rate: core.AtMost(500, time.Minute), CostRate: core.PerMinute(90_000), // calls, tokens
			DeferOn: "circuit.open.gpt", TrialOn: "circuit.half_open.gpt", Trials: 3}},
		KeyRate: core.Rate{PerSecond: 1, Burst: 5}, // each tenant
	}))
	core.Throttled.Subscribe(calls.Sink(), func(_ signals.Signal, change core.ClassChange) {
		fmt.Println(change.Class, "waits until", change.Next)
	})
	urgent := calls.Lane("interactive").Class("gpt") // a view, kept

	ctx := context.Background()
	c := call{"ann", 10}
	if err := urgent.Cost(c.tokens).Do(ctx, c); err != nil {
		panic(err)
	}
	fmt.Println(calls.Stats().Classes[0].Name, used(calls.Stats().Classes[0].Cost))
	fmt.Println(calls.SetClass(core.Class{Name: "gpt", Limit: 8, Rate: core.PerMinute(300)}))
	// Output:
	// gpt 60 of 1500 a second
	// <nil>
}

func used(s core.RateStats) string { return fmt.Sprintf("%d of %.0f a second", s.Used, s.PerSecond) }

// What would a rate do to the payments of today? The shadow counts, and every payment still starts at once.
func ExampleLimits() {
	pay := func(context.Context, int) error { return nil }
	planned := core.Rate{PerSecond: 0.1, Burst: 10}
	payments := core.Must(core.NewCoordinator(pay, core.Options{
		Classes: []core.Class{{Name: "stripe", Shadow: &core.Limits{Rate: planned}}},
	}))
	core.WouldThrottle.Subscribe(payments.Sink(), func(_ signals.Signal, change core.ClassChange) {
		fmt.Println(change.Class, "would wait:", change.Waiting > 0)
	})
	ctx := context.Background()
	for payment := range 12 {
		if err := payments.Class("stripe").Do(ctx, payment); err != nil {
			panic(err)
		}
	}
	var s core.ShadowStats = payments.Stats().Classes[0].Shadow
	fmt.Printf("%d of %d would have waited\n", s.Waited, s.Started)

	// It is acceptable: now the rate is in force, and the shadow is gone.
	fmt.Println(payments.SetClass(core.Class{Name: "stripe", Rate: planned}))
	// Output:
	// stripe would wait: true
	// 2 of 12 would have waited
	// stripe would wait: false
	// <nil>
}
