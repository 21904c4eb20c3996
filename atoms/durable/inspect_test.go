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

// A status page sees the history of an item, and changes all items that match, after it has counted them.
func TestInspectManyItems(t *testing.T) {
	inBubble(t, func(s *shop) {
		ok := false
		q := s.serve(func(ctx context.Context, item string) error {
			if ok {
				return nil
			}
			return errOnPurpose
		}, durable.Options{Name: "orders", MaxAttempts: 2, Backoff: time.Second})
		in, ctx := q.Inspect(), s.Context()
		ids := s.enqueue(q, "a", "b", "c/1", "d")
		time.Sleep(time.Minute)
		d, found, err := in.Item(ctx, int64(ids[2]))
		require.NoError(t, err)
		require.True(t, found)
		assert.Equal(t, []any{int64(ids[2]), "c", "dead", 2, 2}, []any{d.ID, d.Key, d.State, d.Attempts, len(d.History)})
		assert.Contains(t, d.Why, errOnPurpose.Error())
		for i, state := range []string{"retry", "dead"} {
			a := d.History[i]
			assert.Equal(t, []any{state, d.Node, errOnPurpose.Error(), true}, []any{a.State, a.Node, a.Err, !a.Ended.Before(a.Started) && !a.Started.IsZero()})
		}
		_, found, err = in.Item(ctx, 1<<40)
		require.NoError(t, err)
		assert.False(t, found)

		count := func(want int, match inspect.ItemQuery) {
			t.Helper()
			n, err := in.Count(ctx, match)
			require.NoError(t, err)
			assert.Equal(t, want, n)
		}
		change := func(want int, do func(context.Context, inspect.ItemQuery) (int, error), match inspect.ItemQuery) {
			t.Helper()
			n, err := do(ctx, match)
			require.NoError(t, err)
			assert.Equal(t, want, n)
		}
		count(4, inspect.ItemQuery{State: "halted|dead", Err: "purpose"})
		count(1, inspect.ItemQuery{State: "dead", Key: "c", Limit: 1})
		change(1, in.DiscardAll, inspect.ItemQuery{Key: "c"})
		change(0, in.DiscardAll, inspect.ItemQuery{State: "cancelled|done"})
		ok = true
		change(2, in.AgainAll, inspect.ItemQuery{State: "dead", Limit: 2})
		time.Sleep(time.Minute)
		assert.Equal(t, "done done cancelled dead", s.states(q, ids...))
		change(1, func(ctx context.Context, match inspect.ItemQuery) (int, error) {
			return in.CancelAll(ctx, match, "by ada")
		}, inspect.ItemQuery{State: "blocked|ready|retry|running|halted|dead"})
		d, _, err = in.Item(ctx, int64(ids[3]))
		require.NoError(t, err)
		assert.Equal(t, []any{"cancelled", "by ada"}, []any{d.State, d.Err})
		for _, do := range []func(context.Context, inspect.ItemQuery) (int, error){in.Count, in.AgainAll} {
			_, err = do(ctx, inspect.ItemQuery{State: "bad"})
			assert.ErrorContains(t, err, `State is "bad"`)
		}
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
		_, _, item := in.Item(ctx, 1)
		_, count := in.Count(ctx, inspect.ItemQuery{})
		_, all := in.CancelAll(ctx, inspect.ItemQuery{}, "")
		for _, err := range []error{status, list, again, discard, in.Pause(ctx), item, count, all} {
			assert.ErrorIs(t, err, errOnPurpose)
		}
	})
}

// A store whose server has an old transaction.
type slowed struct{ durable.Store }

func (s slowed) Stats(ctx context.Context, queue string) (durable.Stats, error) {
	st, err := s.Store.Stats(ctx, queue)
	st.OldestTransaction = 12*time.Minute + time.Second
	return st, err
}

// The status says why claims are slow.
func TestInspectNamesAnOldTransaction(t *testing.T) {
	q, err := durable.New(slowed{durable.Memory()}, strings.ToLower, func(context.Context, string) error { return nil }, durable.Options{})
	require.NoError(t, err)
	defer q.Close()
	status, err := q.Inspect().Status(t.Context())
	require.NoError(t, err)
	assert.Contains(t, status.Note, "the oldest transaction on the server is 12 minutes old")
}
