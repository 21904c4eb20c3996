package retry_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Fault avoided: items that back off stop all others. Here they give up their slots, up to MaxSuspended of them,
// unless KeepSlot is set. An item counts once, however many attempts it has.
func TestBackingOffItemsKeepNoSlot(t *testing.T) {
	for keep, want := range map[bool]core.Stats{
		false: {Enqueued: 20, Pending: 15, Suspended: 5, Limit: 2},
		true:  {Enqueued: 20, Pending: 18, Running: 2, Limit: 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Hour), KeepSlot: keep})
			c := core.Must(core.NewCoordinator(retry.Wrap(r, coretest.Run), core.Options{MaxConcurrency: 2, MaxSuspended: 3}))
			var id core.OperationID
			for range 20 {
				id = core.Must(c.Enqueue(t.Context(), func(context.Context) error { return errOnPurpose }))
				synctest.Wait()
			}
			assert.Equal(t, want, c.Stats())
			for op := range c.Operations(core.OperationQuery{Status: core.StatusSuspended}) {
				assert.Equal(t, []string{"attempt 2 after the error \"failed on purpose\""}, op.WaitsFor)
			}
			require.NoError(t, c.Drain(t.Context()), "waits for the retries")
			assert.ErrorIs(t, c.Wait(t.Context(), id), retry.ErrAttempts)
			assert.EqualValues(t, 20, c.Stats().Failed)
		})
	}
}

// A retry keeps its key. It comes back after interactive items and before pending items of its own lane.
// AttemptTimeout starts then.
func TestRetriesKeepTheirPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: 2, Backoff: retry.Constant(time.Second), AttemptTimeout: 5 * time.Second})
		var order []string
		call := retry.WrapResult(r, func(ctx context.Context, item string) (string, error) {
			order = append(order, fmt.Sprint(item, " ", retry.Attempt(ctx)))
			if item == "a/failing" && retry.Attempt(ctx) == 1 {
				return "", errOnPurpose
			}
			time.Sleep(4 * time.Second)
			return item, ctx.Err()
		})
		c := core.Must(core.NewKeyedResultCoordinator(func(item string) string { return item[:1] }, call, core.Options{
			MaxConcurrency: 1, Lanes: core.Must(core.ParseLanes("interactive, batch")), Ageing: -1}))
		defer c.Close()
		for _, item := range []string{"a/failing", "a/second", "b/batch", "c/batch"} {
			core.Must(c.Lane("batch").Enqueue(t.Context(), item))
		}
		time.Sleep(2 * time.Second)
		for range 2 {
			core.Must(c.Lane("interactive").Enqueue(t.Context(), "d/interactive"))
		}
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, []string{"a/failing 1", "b/batch 1", "d/interactive 1", "d/interactive 1", "a/failing 2", "c/batch 1", "a/second 1"}, order)
		assert.EqualValues(t, 6, c.Stats().Succeeded)
	})
}

// Timeout of the coordinator bounds all attempts and the delays.
func TestTimeoutOfAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Attempts: -1, Backoff: retry.Constant(time.Second)})
		c := core.Must(core.NewCoordinator(retry.Wrap(r, coretest.Run), core.Options{Timeout: 10 * time.Second}))
		begun := time.Now()
		err := c.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return errOnPurpose })
		assert.ErrorIs(t, err, retry.ErrDeadline)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, 9*time.Second, time.Since(begun), "the next attempt would be too late")
	})
}

// A further attempt does not wait for a token of its class. It takes a token that is still to
// come.
func TestRetriesAreChargedToTheirClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRetrier(t, retry.Options{Backoff: retry.Constant(time.Millisecond)})
		begun, calls := time.Now(), []time.Duration(nil)
		c := core.Must(core.NewCoordinator(retry.Wrap(r, func(ctx context.Context, _ int) error {
			if calls = append(calls, time.Since(begun)); len(calls) <= 2 {
				return errOnPurpose
			}
			return nil
		}), core.Options{Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 1}}}}))
		for item := range 2 {
			core.Must(c.Class("api").Enqueue(t.Context(), item))
		}
		require.NoError(t, c.Drain(t.Context()))
		assert.Equal(t, []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 3 * time.Second}, calls)
	})
}
