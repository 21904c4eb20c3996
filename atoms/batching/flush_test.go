package batching_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Batches have exact sizes. They are flushed one at a time, in order, at the right times.
func TestWhenABatchIsFlushed(t *testing.T) {
	size := func(i int) int { return i }
	type row struct {
		opts   batching.Options[int]
		takes  time.Duration
		script string
		want   []string
	}
	each(t, map[string]row{
		"full": {
			opts:   batching.Options[int]{MaxSize: 3},
			script: "1 2 3 4 5 6 7",
			want:   []string{"size 0s: [1 2 3]", "size 0s: [4 5 6]", "flush 0s: [7]"},
		},
		"the delay counts from the first item": {
			script: "700ms 1 900ms 2 1m 3 2s",
			want:   []string{"delay 1.7s: [1 2]", "delay 1m2.6s: [3]"},
		},
		"no delay": {
			opts:   batching.Options[int]{MaxDelay: -1},
			script: "1 10h 2",
			want:   []string{"flush 10h0m0s: [1 2]"},
		},
		"one at a time": {
			opts:   batching.Options[int]{MaxSize: 4},
			takes:  5 * time.Second,
			script: "0 2s 1 2 3 4 5 6 7 8 9 10 1m",
			want:   []string{"delay 1s: [0]", "size 6s: [1 2 3 4]", "size 11s: [5 6 7 8]", "delay 16s: [9 10]"},
		},
		"slow flushes get fuller batches": {
			takes:  10 * time.Second,
			script: "0 2s 1 2s 2 2s 3 2s 4 2s 5 2s 6 2s 7 2s 8 1m",
			want:   []string{"delay 1s: [0]", "delay 11s: [1 2 3 4 5]", "delay 21s: [6 7 8]"},
		},
		"bytes": {
			opts:   batching.Options[int]{MaxBytes: 10, SizeOf: size},
			script: "4 5 2 -7 8 10 1",
			want:   []string{"bytes 0s: [4 5]", "bytes 0s: [2 -7 8]", "bytes 0s: [10]", "flush 0s: [1]"},
		},
		"a full queue makes room": {
			opts:   batching.Options[int]{MaxQueued: 2, MaxDelay: -1},
			script: "0 1 2 3 4",
			want:   []string{"room 0s: [0 1]", "room 0s: [2 3]", "flush 0s: [4]"},
		},
		"a queue full of bytes makes room": {
			opts:   batching.Options[int]{MaxQueuedBytes: 10, SizeOf: size, MaxDelay: -1},
			script: "6 5 5",
			want:   []string{"room 0s: [6]", "flush 0s: [5 5]"},
		},
	}, func(t *testing.T, c row) {
		j := newJournal(c.takes)
		b := newBatcher(t, j.flush, c.opts)
		play(t, b, c.script)
		s := drained(t, b)
		got := j.got()
		for i, reason := range reasons(b) {
			got[i] = fmt.Sprint(reason, " ", got[i])
		}
		assert.Equal(t, c.want, got)
		assert.Equal(t, 1, j.most)
		assert.Equal(t, batching.Counters{
			Enqueued: s.Enqueued, Succeeded: s.Enqueued, Batches: uint64(len(c.want)), Calls: uint64(len(c.want)), Closed: true,
		}, s)
	})
}

// The queue is bounded, and a flush holds up no producer while there is room.
func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(time.Minute)
		b := newBatcher(t, j.flush, batching.Options[int]{Name: "rows", MaxSize: 2, MaxQueued: 3})
		enqueue(t, b, 1, 2)
		synctest.Wait() // these items are being flushed, and no longer count
		enqueue(t, b, 3, 4, 5)
		assert.Zero(t, time.Since(j.begun))
		err := b.TryEnqueue(context.Background(), 6)
		assert.ErrorIs(t, err, core.ErrFull)
		assert.ErrorContains(t, err, `batching: "rows": `)
		ctx := leaveAfter(t, time.Second)
		assert.ErrorIs(t, b.Enqueue(ctx, 6), errOnPurpose, "gives up with its context")
		assert.ErrorIs(t, b.Do(ctx, 6), errOnPurpose, "the context has ended before")
		assert.ErrorIs(t, b.Do(leaveAfter(t, time.Second), 6), errOnPurpose)

		require.NoError(t, b.Enqueue(t.Context(), 7))
		assert.Equal(t, time.Minute, time.Since(j.begun), "waits until there is room")
		s := drained(t, b)
		assert.Equal(t, []string{"0s: [1 2]", "1m0s: [3 4]", "2m0s: [5 7]"}, j.got())
		assert.Equal(t, uint64(4), s.Rejected)
		err = b.Enqueue(t.Context(), 8)
		assert.ErrorIs(t, err, core.ErrClosed)
		assert.ErrorContains(t, err, `batching: "rows": `)
	})
}

func TestDropOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, l := newJournal(time.Minute), new(lost)
		b := newBatcher(t, j.flush, batching.Options[int]{Name: "rows", MaxSize: 2, MaxQueued: 3, DropOldest: true, OnError: l.onError})
		facts := coretest.Watch(t, b.Sink(), "batch.*")
		enqueue(t, b, 0, 1)
		synctest.Wait()
		wait := begin(t.Context(), b, 2)
		enqueue(t, b, 3, 4, 5)
		assert.Equal(t, []error{core.ErrDropped}, wait())
		enqueue(t, b, 6, 7)
		assert.Equal(t, []int{3, 4}, l.items)
		assert.Equal(t, []error{core.ErrDropped, core.ErrDropped}, l.errs)
		assert.Equal(t, "rows", facts.ExpectExactly(batching.SignalDropped)[0].Key, "once, when it begins")
		assert.Equal(t, uint64(3), drained(t, b).Dropped)
		assert.Equal(t, []string{"0s: [0 1]", "1m0s: [5]", "2m0s: [6 7]"}, j.got(), "an empty batch is not flushed")
	})
}

func TestTooLarge(t *testing.T) {
	b := newBatcher(t, newJournal(0).flush, batching.Options[int]{
		MaxBytes: 10, MaxQueuedBytes: 20, SizeOf: func(i int) int { return i },
	})
	err := b.TryEnqueue(context.Background(), 11)
	assert.ErrorIs(t, err, batching.ErrTooLarge)
	assert.EqualError(t, err, `batching: item is too large for any batch of "batching": it has 11 bytes, the limit is 10`)
	assert.ErrorIs(t, b.Do(t.Context(), 12), batching.ErrTooLarge)
	assert.Equal(t, uint64(2), drained(t, b).Rejected)
}

// Items of each key have separate batches, one at a time. A slow key does not delay the
// others.
func TestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(0)
		var keys []string
		b := newBatcher(t, func(ctx context.Context, batch []int) error {
			j.mu.Lock()
			keys = append(keys, core.OperationFrom(ctx).Key())
			j.mu.Unlock()
			if batch[0] < 10 {
				time.Sleep(10 * time.Second)
			}
			return j.flush(ctx, batch)
		}, batching.Options[int]{
			MaxSize:        2,
			MaxConcurrency: 2,
			Key:            func(i int) string { return string(rune('a' + i/10)) },
		})
		enqueue(t, b, 1, 11, 2, 21, 12, 3, 4, 5)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"0s: [11 12]", "1s: [21]"}, j.got())
		drained(t, b)
		assert.Equal(t, []string{"10s: [1 2]", "20s: [3 4]", "30s: [5]"}, j.got()[2:])
		assert.ElementsMatch(t, []string{"a", "b"}, keys[:2], "at once")
		assert.Equal(t, []string{"c", "a", "a"}, keys[2:])
	})
}

func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		j := newJournal(time.Second)
		b := newBatcher(t, j.flush, batching.Options[int]{
			Name: "rows", Sink: sink, MaxSize: 2, SizeOf: func(int) int { return 100 }, Key: func(int) string { return "table" },
		})
		require.Same(t, sink, b.Sink())
		facts := coretest.Watch(t, sink, "batch.*")
		play(t, b, "1 1m")
		raised := facts.ExpectExactly(batching.SignalFlushed)
		assert.Equal(t, "rows", raised[0].Source)
		assert.Equal(t, "table", raised[0].Key)
		info, _ := batching.Batches.From(raised[0])
		assert.Equal(t, batching.Batch{
			Items: 1, Bytes: 100, Reason: "delay", Waited: time.Second, Duration: time.Second, Calls: 1,
		}, info)

		j.fail = func([]int) error { return errOnPurpose }
		play(t, b, "2 3 1m")
		info, _ = batching.Batches.From(facts.ExpectExactly(batching.SignalFailed)[0])
		assert.Equal(t, batching.Batch{
			Items: 2, Bytes: 200, Reason: "size", Duration: time.Second, Calls: 1, Failed: 2, Err: errOnPurpose,
		}, info)

		j.fail = func([]int) error { panic("on purpose") }
		panics := coretest.Watch(t, sink, core.SignalPanicked)
		enqueue(t, b, 4)
		drained(t, b)
		panics.Expect(core.SignalPanicked)
	})
}

func TestABatchCanBeSeenAndCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, l := newJournal(time.Hour), new(lost)
		b := newBatcher(t, j.flush, batching.Options[int]{Name: "rows", MaxSize: 2, MaxQueued: 5, OnError: l.onError})
		enqueue(t, b, 1, 2)
		synctest.Wait()
		play(t, b, "3 4 5 6 7 1s")
		var ids []core.OperationID
		for op := range b.Operations(core.OperationQuery{}) {
			ids = append(ids, op.ID)
		}
		require.Len(t, ids, 4, "also the one that is not full, because its time has come")
		why, _ := b.Explain(ids[1])
		assert.Equal(t, core.ReasonLimit, why.Reasons[0].Kind)

		room := make(chan error, 1)
		go func() { room <- b.Enqueue(t.Context(), 8) }()
		synctest.Wait()
		assert.True(t, b.Cancel(ids[1], errOnPurpose), "one that waits")
		assert.NoError(t, <-room, "there is room again")
		assert.False(t, b.Cancel(ids[1], nil))
		op, _ := b.Lookup(ids[1])
		assert.Equal(t, core.StatusCancelled, op.Status)

		assert.True(t, b.Cancel(ids[0], nil), "one that runs")
		synctest.Wait()
		assert.Equal(t, []int{3, 4, 1, 2}, l.items)
		assert.Equal(t, []error{errOnPurpose, core.ErrCancelled}, l.errs)
		assert.Equal(t, []string{"0s: [1 2]", "1s: [5 6]"}, j.got())
		op, _ = b.Lookup(ids[0])
		info, _ := core.Value[batching.Batch](op, batching.ValueBatch)
		assert.Equal(t, 2, info.Failed)
		require.NoError(t, b.Close())
		assert.Equal(t, []int{3, 4, 1, 2, 7, 8, 5, 6}, l.items)
		assert.False(t, b.Cancel(ids[2], nil))
		balanced(t, b.Counters())
	})
}

// A status page shows and controls batches; the counters count items.
func TestStatsAreOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(time.Second)
		b := newBatcher(t, j.flush, batching.Options[int]{MaxSize: 2})
		b.Pause()
		play(t, b, "1 2 3 4 5")
		s := b.Stats()
		assert.Equal(t, []any{uint64(2), 2, 1, true, false}, []any{s.Enqueued, s.Pending, s.Limit, s.Paused, s.Closed}, "the third is not full")
		assert.Equal(t, 5, b.Counters().Pending)
		assert.Error(t, b.SetMaxConcurrency(0))
		require.NoError(t, b.SetMaxConcurrency(2))
		b.Resume()
		synctest.Wait()
		assert.Equal(t, []int{2, 4}, []int{b.Stats().Running, b.Counters().Running})
		drained(t, b)
		s = b.Stats()
		assert.Equal(t, []any{uint64(3), uint64(3), true}, []any{s.Enqueued, s.Succeeded, s.Closed})
		assert.True(t, b.Evict(slices.Collect(b.Operations(core.OperationQuery{}))[0].ID))
		assert.Equal(t, 2, b.Stats().Tracked)
	})
}
