package longwindowdemo

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Result is the result of [Run].
type Result struct {
	Items   int // number of items that have run
	Window  int // the window shows at most this number of finished operations
	Tracked int // number of operations in the window at the end: the smaller of Items and Window
	Oldest  int // lowest number of an item in the window, from 0 to Items-1; -1 if the window is empty
}

// Run runs the given number of items on a coordinator, and returns what its window shows at
// the end. The window shows at most window finished operations, for 24 hours. Items must not
// be negative, and window must be positive. Each item takes delay; 0 or negative means no
// time. If ctx ends, Run cancels all items, and returns the cause of ctx.
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
