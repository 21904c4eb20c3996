package durable_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// Many items are changed in batches, which say how far they are. What was dead is tried once, also if it is dead again
// at once, and new items are left alone.
func TestManyAtOnce(t *testing.T) {
	inBubble(t, func(s *shop) {
		runs := 0
		q := s.serve(func(context.Context, string) error { runs++; return durable.Permanent(errOnPurpose) }, durable.Options{MaxConcurrency: 1})
		var items []string
		for n := range 250 {
			items = append(items, fmt.Sprint(n))
		}
		ids, err := q.EnqueueAll(s.Context(), items)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 250, s.stats(q).Dead)
		var paged []durable.ItemID // two pages
		for i, err := range q.Items(s.Context(), durable.Query{State: durable.Dead, Limit: 150}) {
			require.NoError(t, err)
			paged = append(paged, i.ID)
		}
		assert.Equal(t, ids[:150], paged)
		var steps []durable.Progress
		told := func(p durable.Progress) { steps = append(steps, p) }
		last, err := q.AgainAll(s.Context(), durable.Query{Dead: true, Err: "purpose"}, func(p durable.Progress) {
			told(p)
			time.Sleep(time.Second) // they are dead again
		})
		require.NoError(t, err)
		assert.Equal(t, []durable.Progress{{Matched: 250}, {250, 100, 100}, {250, 200, 200}}, steps[:3])
		assert.Equal(t, []int{250, 250, 500}, []int{last.Matched, last.Changed, runs})

		require.NoError(t, q.Pause(s.Context(), durable.Pause{}))
		s.enqueue(q, "new")
		some, err := q.DiscardAll(s.Context(), durable.Query{Limit: 30})
		require.NoError(t, err)
		assert.Equal(t, durable.Progress{Matched: 250, Looked: 30, Changed: 30}, some)
		none, err := q.DiscardAll(s.Context(), durable.Query{State: durable.Ready})
		require.NoError(t, err)
		assert.Zero(t, none)
		_, err = q.CancelAll(s.Context(), durable.Query{}, "closed")
		require.NoError(t, err)
		stats := s.stats(q)
		assert.Equal(t, []int{251, 0}, []int{stats.Cancelled, stats.Ready})
		ctx, cancel := context.WithCancelCause(s.Context())
		stopped, err := q.AgainAll(ctx, durable.Query{}, func(durable.Progress) { cancel(errOnPurpose) })
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Less(t, stopped.Changed, 250)
	})
}

// Items move to a lane with all that waits of their key, or not at all.
func TestMoveAll(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue(new(log).work, durable.Options{Lanes: core.Must(core.ParseLanes("hot, normal, slow"))})
		ids := s.enqueue(q.Lane("slow"), "a/1", "a/2", "b/1", "c")
		s.enqueue(q.Lane("hot"), "b/2")
		lanes := func() (all string) {
			for _, id := range ids {
				x, err := q.Explain(s.Context(), id)
				require.NoError(t, err)
				all += x.Item.Lane + " "
			}
			return all
		}
		_, err := q.MoveAll(s.Context(), durable.Query{Key: "a", State: durable.Blocked}, "hot")
		assert.ErrorIs(t, err, durable.ErrOrder)
		assert.ErrorContains(t, err, `move: durable: the order of a key would change: not all items of key "a" that wait are to be moved`)
		_, err = q.MoveAll(s.Context(), durable.Query{}, "none")
		assert.ErrorIs(t, err, core.ErrUnknownLane)
		moved, err := q.MoveAll(s.Context(), durable.Query{Lane: "slow"}, "hot")
		require.NoError(t, err)
		assert.Equal(t, 4, moved.Changed)
		assert.Equal(t, "hot hot hot hot ", lanes())
	})
}
