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
		page := func(match inspect.ItemQuery) inspect.ItemPage {
			page, err := in.Items(s.Context(), match)
			require.NoError(t, err)
			return page
		}
		dead := page(inspect.ItemQuery{State: "halted|dead", Limit: 2})
		items := append(dead.Items, page(inspect.ItemQuery{State: "halted|dead", After: dead.Next}).Items...)
		assert.Equal(t, []int64{int64(ids[1]), int64(ids[0]), int64(ids[2])}, []int64{items[0].ID, items[1].ID, items[2].ID})
		i := items[0]
		assert.Equal(t, inspect.StoredItem{ID: int64(ids[1]), Key: "c", State: "halted", Attempts: 1, Enqueued: i.Enqueued, RunAt: i.RunAt, Started: i.Started, Ended: i.Ended, Node: i.Node, Err: errOnPurpose.Error()}, i)
		assert.Equal(t, time.Minute, time.Since(i.Ended).Round(time.Second))
		assert.Len(t, page(inspect.ItemQuery{State: "blocked", Key: "c"}).Items, 1)
		assert.Empty(t, page(inspect.ItemQuery{State: "delayed"}).Items)
		_, err := in.Items(s.Context(), inspect.ItemQuery{State: "delayed|dead"})
		assert.ErrorContains(t, err, `State is "delayed|dead", but must be delayed, or some of blocked, ready`)

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
		_, list := in.Items(ctx, inspect.ItemQuery{})
		_, again := in.Again(ctx, 1)
		_, discard := in.Discard(ctx, 1)
		for _, err := range []error{status, list, again, discard, in.Pause(ctx)} {
			assert.ErrorIs(t, err, errOnPurpose)
		}
	})
}
