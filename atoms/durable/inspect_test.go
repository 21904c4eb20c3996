package durable_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// A status page sees the counts and the dead items, and can try them again or give them up. A
// halted item that is discarded lets its key go on.
func TestInspect(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		ok := false
		q := s.serve(func(ctx context.Context, item string) error {
			l.add(item)
			if item == "c/2" || ok {
				return nil
			}
			return durable.Permanent(errOnPurpose)
		}, durable.Options{Name: "orders", HaltOnDead: true})
		ids := s.enqueue(q, "a", "c/1", "b", "c/2")
		time.Sleep(time.Minute)
		in := q.Inspect()
		assert.Equal(t, "orders", in.Name())
		dead := func(after durable.ItemID, limit int) (ids []durable.ItemID) {
			items, err := in.DeadItems(s.Context(), int64(after), limit)
			require.NoError(t, err)
			for _, i := range items {
				ids = append(ids, durable.ItemID(i.ID))
			}
			return ids
		}
		assert.Equal(t, []any{ids[:2], ids[1:3], ids[2:3], 0},
			[]any{dead(0, 2), dead(ids[0], 9), dead(ids[1], 1), len(dead(0, 0)) + len(dead(ids[2], 9))})
		items, _ := in.DeadItems(s.Context(), int64(ids[0]), 1)
		ended := items[0].Ended
		assert.Equal(t, inspect.DeadItem{ID: int64(ids[1]), Key: "c", State: "halted", Attempts: 1, Ended: ended, Err: errOnPurpose.Error()}, items[0])
		assert.Equal(t, time.Minute, time.Since(ended).Round(time.Second))

		require.NoError(t, in.Pause(s.Context()))
		status, err := in.Status(s.Context())
		require.NoError(t, err)
		assert.Equal(t, []inspect.StateCount{{State: "blocked", Items: 1}, {State: "ready"}, {State: "delayed"}, {State: "running"}, {State: "retry"},
			{State: "halted", Items: 1}, {State: "done"}, {State: "dead", Items: 2}, {State: "cancelled"}}, status.Counts)
		assert.Equal(t, []any{time.Minute, 1, true}, []any{status.Oldest.Round(time.Second), status.Nodes, status.Paused})
		require.NoError(t, in.Resume(s.Context()))

		ok = true
		does := func(do func(context.Context, int64) (bool, error), id durable.ItemID, want bool) {
			t.Helper()
			was, err := do(s.Context(), int64(id))
			require.NoError(t, err)
			assert.Equal(t, want, was)
		}
		l.take()
		does(in.Discard, ids[3], false) // it is blocked
		does(in.Discard, ids[0], true)
		does(in.Discard, ids[1], true)
		for _, id := range []durable.ItemID{ids[0], 1 << 40, 0, -1, math.MinInt64} {
			does(in.Discard, id, false)
			does(in.Again, id, false)
		}
		does(in.Again, ids[2], true)
		does(in.Again, ids[2], false)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, "cancelled cancelled done done", s.states(q, ids...))
		assert.ElementsMatch(t, []string{"b", "c/2"}, strings.Fields(l.take()))
	})
}

// What the store answers comes through.
func TestInspectReturnsErrorsOfTheStore(t *testing.T) {
	inBubble(t, func(s *shop) {
		in := s.queue(new(log).work, durable.Options{}).Inspect()
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errOnPurpose)
		_, status := in.Status(ctx)
		_, list := in.DeadItems(ctx, 0, 1)
		_, again := in.Again(ctx, 1)
		_, discard := in.Discard(ctx, 1)
		for _, err := range []error{status, list, again, discard, in.Pause(ctx)} {
			assert.ErrorIs(t, err, errOnPurpose)
		}
	})
}
