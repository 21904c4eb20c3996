package bench

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"

	"github.com/ephemeralgo/ephemeral/atoms/hedge"
	"github.com/ephemeralgo/ephemeral/core"
)

// hedgeRows measure a call that is not hedged. With a quantile, our side waits at least a
// millisecond. The other library learns a quantile from calls that take no time. So it makes
// second calls, and is only shown.
func hedgeRows() []Row {
	ours := func(opts hedge.Options) Side {
		return Side{"ours", 0, func() Body {
			h, ctx := core.Must(hedge.New(opts)), context.Background()
			work := func(context.Context) error { return nil }
			return Body{Run: func(n int) {
				for range n {
					check(h.Do(ctx, work))
				}
			}}
		}}
	}
	theirs := func(goal float64, policy hedgepolicy.HedgePolicy[any]) Side {
		return loop("failsafe", goal, func(n int) {
			executor := failsafe.With(policy)
			for range n {
				check(executor.Run(func() error { return nil }))
			}
		})
	}
	return []Row{
		{Name: "op=success/delay=fixed", MaxAllocs: -1, Sides: []Side{
			ours(hedge.Options{Delay: time.Hour}), theirs(1.2, hedgepolicy.NewWithDelay[any](time.Hour))}},
		{Name: "op=success/delay=quantile", MaxAllocs: -1, Sides: []Side{
			ours(hedge.Options{}), theirs(0, hedgepolicy.NewWithDelayQuantile[any](0.95, 100, 20))}},
	}
}
