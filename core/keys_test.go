package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// The key function is called once for each item, on the goroutine of the caller, also for an item that waits for
// room, is refused, or drops the oldest.
func TestKeyFunctionIsCalledOnce(t *testing.T) {
	for _, dropOldest := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			calls := make(map[int]int) // without a lock: the race detector sees whether others call
			c := core.Must(core.NewKeyedCoordinator(func(i int) string {
				calls[i]++
				return fmt.Sprint(i % 3)
			}, func(context.Context, int) error {
				time.Sleep(time.Second)
				return nil
			}, core.Options{MaxConcurrency: 2, MaxQueued: 2, CancelOn: "stop", DropOldest: dropOldest}))
			for i := range 10 {
				accepted(t)(c.Enqueue(t.Context(), i))
			}
			checkError(t, "Do", c.Do(t.Context(), 10), nil)
			c.Sink().Raise("stop")
			if _, err := c.TryEnqueue(context.Background(), 11); err == nil {
				t.Error("TryEnqueue: got no error")
			}
			checkError(t, "Drain", c.Drain(t.Context()), nil)
			for i := range 11 {
				checkEqual(t, fmt.Sprint("calls for item ", i), calls[i], 1)
			}
			if calls[11] > 1 {
				t.Errorf("calls for an item that was refused: got %d, want at most 1", calls[11])
			}
		})
	}
}

// A panic of the key function reaches the caller, and leaves nothing behind.
func TestPanickingKeyReachesTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		key := func(i int) string {
			if i < 0 {
				panic(errOnPurpose)
			}
			return "k"
		}
		c := core.Must(core.NewKeyedCoordinator(key, func(context.Context, int) error { return nil }, core.Options{MaxQueued: 1}))
		r := core.Must(core.NewKeyedResultCoordinator(key, square, core.Options{}))
		for name, call := range map[string]func(){
			"Enqueue":            func() { c.Enqueue(t.Context(), -1) },
			"TryEnqueue":         func() { c.TryEnqueue(context.Background(), -1) },
			"Do":                 func() { c.Do(t.Context(), -1) },
			"in a lane":          func() { c.Lane("none").TryEnqueue(context.Background(), -1) },
			"Submit":             func() { r.Submit(t.Context(), -1) },
			"Do with a result":   func() { r.Do(t.Context(), -1) },
			"Enqueue for result": func() { r.Enqueue(t.Context(), -1) },
		} {
			func() {
				defer func() { checkEqual(t, name+": panic", recover(), any(errOnPurpose)) }()
				call()
			}()
		}
		for _, s := range []core.Stats{c.Stats(), r.Stats()} {
			checkEqual(t, "Enqueued, Rejected, Pending", words(s.Enqueued, s.Rejected, s.Pending), "0 0 0")
		}
		for i := range 3 {
			checkError(t, "Do", c.Do(t.Context(), i), nil)
		}
	})
}

// SetKey changes the key that an operation shows, but not its turn.
func TestSetKeyDoesNotDisturbScheduling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{MaxConcurrency: 4})
		g := newGate()
		renamed := func(ctx context.Context) error {
			core.OperationFrom(ctx).SetKey("b")
			return g.body(ctx)
		}
		enqueue(t, c, keyedBody{"a", renamed})
		synctest.Wait()
		second := enqueue(t, c, keyedBody{"a", renamed})
		other := enqueue(t, c, keyedBody{"b", g.body})
		synctest.Wait()
		checkStatus(t, c, second, core.StatusPending) // its key is busy
		checkStatus(t, c, other, core.StatusRunning)  // and this one is not
		g.open()
		synctest.Wait()
		checkEqual(t, "succeeded", c.Stats().Succeeded, 3)
		// Neither key holds up anything.
		for _, key := range []string{"a", "b"} {
			checkError(t, "Do", c.Do(t.Context(), keyedBody{key, quick}), nil)
		}
	})
}
