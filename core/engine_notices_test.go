package core_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
)

// OnPending is called as in a model that reads the number at every instant.
func TestOnPending(t *testing.T) {
	for seed := range long.Often(500, 50) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(seed), 2))
			c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: 6, DropOldest: rnd.IntN(2) == 0})
			high, low := 2+rnd.IntN(3), rnd.IntN(2)
			finish := make(chan bool)
			var got, want []bool
			for range rnd.IntN(4) {
				enqueue(t, c, func(context.Context) error { <-finish; return nil })
			}
			synctest.Wait()
			look := func() {
				synctest.Wait()
				n, over := c.Stats().Pending, len(want)%2 == 1
				if !over && n >= high || over && n <= low {
					want = append(want, !over)
				}
			}
			cancel := c.OnPending(high, low, func(over bool) {
				c.Stats() // no lock is held
				got = append(got, over)
			})
			look()
			for range 100 {
				switch rnd.IntN(6) {
				case 0:
					for o := range c.Operations(core.OperationQuery{Status: core.StatusPending}) {
						c.Cancel(o.ID, nil)
						look()
						break
					}
				case 1, 2:
					select {
					case finish <- true:
					default:
					}
				default:
					c.TryEnqueue(t.Context(), func(ctx context.Context) error {
						select {
						case <-finish:
						case <-ctx.Done():
						}
						return nil
					})
				}
				look()
			}
			c.Abort(nil)
			look()
			coretest.Check(t, slices.Equal(got, want), "seed %d, high %d, low %d: got calls %v, want %v", seed, high, low, got, want)
			cancel()
			close(finish)
		})
	}
	c := bodies(t, core.Options{})
	wantPanic(t, "core: OnPending", func() { c.OnPending(1, 1, func(bool) {}) })
	wantPanic(t, "core: OnPending", func() { c.OnPending(1, 0, nil) })
}

// The function is called once, before what ends the coordinator returns.
func TestOnClosed(t *testing.T) {
	for name, end := range map[string]func(context.Context, core.Lifecycle) error{
		"Drain":    func(ctx context.Context, c core.Lifecycle) error { return c.Drain(ctx) },
		"Stop":     func(ctx context.Context, c core.Lifecycle) error { return c.Stop(ctx) },
		"Close":    func(_ context.Context, c core.Lifecycle) error { return c.Close() },
		"Complete": func(_ context.Context, c core.Lifecycle) error { c.Complete(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := bodies(t, core.Options{})
				calls := 0
				c.OnClosed(func() { calls++; c.Close(); panic("on purpose") })
				c.OnClosed(func() { t.Error("called after cancel") })()
				if name != "Complete" {
					enqueue(t, c, func(context.Context) error { time.Sleep(time.Second); return nil })
					synctest.Wait()
				}
				checkEqual(t, "calls before the end", calls, 0)
				checkError(t, name, end(t.Context(), c), nil)
				checkEqual(t, "calls", calls, 1)
				checkError(t, "Close", c.Close(), nil)
				c.OnClosed(func() { calls++ })
				checkEqual(t, "calls when it is too late", calls, 2)
				wantPanic(t, "core: OnClosed", func() { c.OnClosed(nil) })
			})
		})
	}
}
