package longwindowdemo

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Result is what a run has seen.
type Result struct {
	Items   int // how many items have run
	Window  int // how many finished operations the window shows at most
	Tracked int // how many it shows in the end: the less of both
	Oldest  int // the lowest number of an item that it shows, of 0 to Items-1; -1 if it shows none
}

// Run runs items on a coordinator whose window shows as many finished operations as window
// says, for 24 hours, and looks at what it shows in the end. Items must not be negative,
// window must be positive. Each item takes delay, nothing if that is not positive. If ctx
// ends, Run returns its cause, and nothing goes on.
func Run(ctx context.Context, items, window int, delay time.Duration) (Result, error) {
	switch {
	case items < 0:
		return Result{}, fmt.Errorf("longwindowdemo: items is %d, but must not be negative", items)
	case window <= 0:
		return Result{}, fmt.Errorf("longwindowdemo: window is %d, but must be positive", window)
	}
	c, err := core.NewCoordinator(func(ctx context.Context, item int) error {
		core.OperationFrom(ctx).Set("item", item)
		if delay <= 0 {
			return nil
		}
		select {
		case <-time.After(delay):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, core.Options{MaxConcurrency: min(runtime.NumCPU(), 8), MaxTracked: window, MaxAge: 24 * time.Hour})
	if err != nil {
		return Result{}, fmt.Errorf("longwindowdemo: %w", err)
	}
	defer c.Close()
	for i := range items {
		if _, err := c.Enqueue(ctx, i); err != nil {
			return Result{}, err
		}
	}
	if err := c.Drain(ctx); err != nil {
		return Result{}, err
	}
	r := Result{Items: items, Window: window, Tracked: c.Stats().Tracked, Oldest: -1}
	for op := range c.Operations(core.OperationQuery{}) {
		if item, ok := core.Value[int](op, "item"); ok && (r.Oldest < 0 || item < r.Oldest) {
			r.Oldest = item
		}
	}
	return r, nil
}
