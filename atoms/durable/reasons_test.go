package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// A snooze says why: in Explain, in the signal, and in the item until it is claimed again.
func TestSnoozeHasAReason(t *testing.T) {
	inBubble(t, func(s *shop) {
		first := true
		q := s.serve(func(context.Context, string) error {
			if first {
				first = false
				return durable.Snooze(time.Hour, "carrier is closed")
			}
			return nil
		}, durable.Options{})
		snoozed := watch(s, q, durable.SignalSnoozed)
		id := s.enqueue(q, "a")[0]
		assert.Equal(t, "is snoozed for 1h0m0s: carrier is closed", s.explain(q, id))
		item, _ := durable.ItemSnoozed.From(snoozed.Expect(durable.SignalSnoozed)[0])
		assert.Equal(t, []string{"carrier is closed", ""}, []string{item.Note, item.Err})
		assert.EqualError(t, durable.Snooze(time.Second, "closed"), "durable: run again in 1s: closed")
		assert.EqualError(t, durable.Snooze(time.Second), "durable: run again in 1s")
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		x, err := q.Explain(s.Context(), id)
		require.NoError(t, err)
		assert.Empty(t, x.Item.Note)
		assert.Equal(t, []durable.EndKind{durable.EndSnoozed, durable.EndDone}, []durable.EndKind{x.Attempts[0].Kind, x.Attempts[1].Kind})
	})
}

// After a snooze of 0 the item is due at once, and not when the queue looks again.
func TestSnoozeOfNothing(t *testing.T) {
	inBubble(t, func(s *shop) {
		runs, began := 0, time.Now()
		q := s.serve(func(context.Context, string) error {
			if runs++; runs < 5 {
				return durable.Snooze(0)
			}
			return nil
		}, durable.Options{})
		id := s.enqueue(q, "a")[0]
		assert.Equal(t, "done", s.states(q, id))
		assert.Zero(t, time.Since(began))
	})
}

// A unique item says whether it was added, and which one stands for a day, if nothing else was said.
func TestEnqueueUnique(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue(new(log).work, durable.Options{})
		by := func(values ...any) *durable.Queue[string] {
			return q.With(durable.ItemOptions{Unique: durable.UniqueBy(values...)})
		}
		first, added, err := by("ada", 1).EnqueueUnique(s.Context(), "a")
		require.NoError(t, err)
		assert.True(t, added)
		second, added, err := by("ada", 1).EnqueueUnique(s.Context(), "b")
		require.NoError(t, err)
		assert.Equal(t, []any{first, false}, []any{second, added})
		_, added, err = by("ada1").EnqueueUnique(s.Context(), "b")
		require.NoError(t, err)
		assert.True(t, added)
		time.Sleep(24*time.Hour - time.Second)
		assert.Equal(t, []durable.ItemID{first}, s.enqueue(by("ada", 1), "c"))
		time.Sleep(time.Second)
		assert.NotEqual(t, []durable.ItemID{first}, s.enqueue(by("ada", 1), "d"))
		_, _, err = q.EnqueueUnique(s.Context(), "b")
		assert.ErrorContains(t, err, "needs ItemOptions.Unique")
		assert.Panics(t, func() { durable.UniqueBy(func() {}) })
	})
}
