package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// What ended long ago is pruned by Run, however much it is.
func TestPrune(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		q := s.serve(l.work, durable.Options{Keep: durable.Keep{Done: time.Hour}})
		var ids []durable.ItemID
		for range 6 {
			more, err := q.EnqueueAll(s.Context(), make([]string, durable.MaxBatch))
			require.NoError(t, err)
			ids = append(ids, more...)
		}
		time.Sleep(59 * time.Minute)
		assert.Equal(t, len(ids), s.stats(q).Items)
		time.Sleep(3 * time.Minute)
		assert.Zero(t, s.stats(q).Items)
		_, err := q.Explain(s.Context(), ids[0])
		assert.ErrorIs(t, err, durable.ErrUnknown)
		s.enqueue(q, "2")
		time.Sleep(time.Hour - time.Second)
		n, err := q.Prune(s.Context())
		require.NoError(t, err)
		assert.Zero(t, n)
	})
}

// Other processes see an item at their next poll, or are woken up.
func TestWaker(t *testing.T) {
	for _, waker := range []durable.Waker{nil, newGong()} {
		inBubble(t, func(s *shop) {
			var l log
			opts := durable.Options{Waker: waker, Poll: 5 * time.Second}
			s.serve(l.work, opts)
			producer := s.queue(l.work, opts)
			time.Sleep(time.Second)
			s.enqueue(producer, "a/1")
			assert.Equal(t, map[bool]string{true: "a/1"}[waker != nil], l.take())
			time.Sleep(4 * time.Second)
			assert.Equal(t, map[bool]string{false: "a/1"}[waker != nil], l.take())
		})
	}
}

// If Finish has ended the item, an end that finds it gone is not a lost claim.
func TestMarkFinished(t *testing.T) {
	for _, mark := range []bool{true, false} {
		inBubble(t, func(s *shop) {
			q := s.queue(func(ctx context.Context, _ string) error {
				c := durable.ClaimFrom(ctx)
				assert.Equal(t, []any{"orders", "ada", "shop-1", 1}, []any{c.Queue, c.Key, c.Node, c.Attempt})
				_, err := endDone(s.store, c)
				require.NoError(t, err)
				_, _, err = s.store.Prune(ctx, c.Queue, durable.Keep{}, 10)
				require.NoError(t, err)
				if mark {
					durable.MarkFinished(ctx)
				}
				return nil
			}, durable.Options{Name: "orders", Node: "shop-1"})
			signals := watch(s, q, "durable.*")
			s.run(q)
			s.enqueue(q, "ada/1")
			time.Sleep(time.Second)
			signals.ExpectExactly(map[bool]string{true: durable.SignalSucceeded, false: durable.SignalFenced}[mark])
		})
	}
	durable.MarkFinished(t.Context())
	assert.Zero(t, durable.ClaimFrom(t.Context()))
}

// undecided is a store whose Insert does not say whether it has added the items.
type undecided struct{ durable.Store }

func (undecided) Insert(ctx context.Context, _ string, _ []durable.Insert) ([]durable.Inserted, error) {
	<-ctx.Done()
	return nil, errOnPurpose
}

func TestItemsThatAreNotAccepted(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		work := s.queue(l.work, durable.Options{Encode: func(item any) ([]byte, error) {
			if item == "bad" {
				return nil, errOnPurpose
			}
			return []byte(item.(string)), nil
		}})
		for item, want := range map[string]string{
			"bad": "encode an item: on purpose", "a\x00/": "NUL", "\xff/": "UTF-8", strings.Repeat("k", 600) + "/": "600 bytes, more than 512",
			strings.Repeat("x", durable.MaxData+1): "1048577 bytes, more than 1048576",
		} {
			_, err := work.Enqueue(s.Context(), item)
			assert.ErrorContains(t, err, want)
			assert.ErrorContains(t, err, "durable: ")
			_, err = work.EnqueueAll(s.Context(), []string{"good", item})
			assert.ErrorContains(t, err, want)
		}
		_, err := work.EnqueueAll(s.Context(), make([]string, durable.MaxBatch+1))
		assert.ErrorContains(t, err, "501 items, more than 500")
		_, err = work.With(durable.ItemOptions{Unique: "u", UniqueFor: -1}).Enqueue(s.Context(), "x")
		assert.ErrorContains(t, err, "UniqueFor is -1ns")
		assert.Zero(t, s.stats(work).Items)

		s.store = undecided{s.store}
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		q := s.queue(l.work, durable.Options{})
		_, err = q.Enqueue(ctx, "x")
		assert.ErrorIs(t, err, durable.ErrUndecided)
		assert.ErrorIs(t, err, context.DeadlineExceeded)

		began := time.Now() // a connection that is gone without a word does not stop Enqueue for ever
		_, err = q.Enqueue(s.Context(), "y")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.LessOrEqual(t, time.Since(began), 2*15*time.Second)
	})
}

func TestOptions(t *testing.T) {
	work := func(context.Context, string) error { return nil }
	for want, opts := range map[string]durable.Options{
		"Options.MaxConcurrency is -1, but must not be negative": {MaxConcurrency: -1},
		"Options.MaxCluster is -1, but must not be negative":     {MaxCluster: -1},
		"Options.Lease is 1ms, but must be at least 1s":          {Lease: time.Millisecond},
		"Options.Poll is -1ns, but must be at least 1ms":         {Poll: -1},
		"Options.MaxBackoff is 1s, but must be at least 1m0s":    {Backoff: time.Minute, MaxBackoff: time.Second},
		"Options.Backoff is -1ns, but must be at least 1ns":      {Backoff: -1},
		"Options.Timeout is -1ns, but must be at least 0s":       {Timeout: -1},
		"may have a Name and a Limit only":                       {Lanes: []core.Lane{{Name: "a", Depth: 1}}},
		"lanes must have different names":                        {Lanes: []core.Lane{{Name: "a"}, {Name: "a"}}},
		"Options.Name is not valid UTF-8":                        {Name: "\xff"},
	} {
		_, err := durable.New(durable.Memory(), keyOf, work, opts)
		assert.ErrorContains(t, err, want)
	}
	_, err := durable.New[string, string](nil, nil, nil, durable.Options{})
	assert.EqualError(t, err, "durable: New needs a store and a function")
	assert.NoError(t, durable.Permanent(nil))
	assert.True(t, errors.Is(durable.Permanent(errOnPurpose), errOnPurpose))
}
