package durable_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// These tests are about two features that meet.

// A limit that is no number of items is an error, and a page is never too large for a store. A text without a state does not
// select all items.
func TestQueriesAreChecked(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue(new(log).work, durable.Options{})
		s.enqueue(q, "a", "b")
		page, err := q.List(s.Context(), durable.Query{Limit: math.MaxInt})
		require.NoError(t, err)
		assert.Len(t, page.Items, 2)
		none := durable.Query{Limit: -1}
		_, list := q.List(s.Context(), none)
		_, all := q.CancelAll(s.Context(), none, "")
		for _, err := range q.Items(s.Context(), none) {
			list = err
		}
		for _, err := range []error{list, all} {
			assert.ErrorContains(t, err, "Limit of a Query is -1, but must not be negative")
		}
		_, err = q.Inspect().CancelAll(s.Context(), inspect.ItemQuery{State: "|"}, "")
		assert.ErrorContains(t, err, `State is "|", but must be`)
		assert.Equal(t, 2, s.stats(q).Ready)
	})
}

// A body fails for the last time before its process knows that the item was cancelled. The item is cancelled, and
// does not halt its key.
func TestCancelMeetsTheLastAttempt(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.serve(func(ctx context.Context, item string) error {
			if item == "a/2" {
				return nil
			}
			time.Sleep(1500 * time.Millisecond)
			return errOnPurpose
		}, durable.Options{MaxAttempts: 1, HaltOnDead: true})
		ids := s.enqueue(q, "a/1", "a/2", "b")
		time.Sleep(1400 * time.Millisecond)
		for _, id := range []durable.ItemID{ids[0], ids[2]} {
			ok, err := s.queue(new(log).work, durable.Options{}).Cancel(s.Context(), id, "left")
			require.NoError(t, err)
			assert.True(t, ok)
		}
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, "cancelled done cancelled", s.states(q, ids...))
	})
}

// The last body ends while Run is about to return, here in a subscriber of the signal that it takes back then. Its end
// is recorded.
func TestEndMeetsTheEndOfRun(t *testing.T) {
	inBubble(t, func(s *shop) {
		f := &faulty{Store: s.store}
		s.store = f
		free := make(chan struct{})
		q := s.queue(func(context.Context, string) error { <-free; return nil }, durable.Options{MaxConcurrency: 2})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx) }()
		ids := s.enqueue(q, "a")
		synctest.Wait()
		f.cut.Store(true)
		require.NoError(t, q.Resume(s.Context(), durable.Pause{})) // it looks for items, in vain
		synctest.Wait()
		require.True(t, q.Sink().Has(durable.SignalStoreLost))
		defer q.Sink().SubscribeRetracted(durable.SignalStoreLost, func(signals.Retraction) {
			if f.cut.Swap(false) {
				close(free)
				time.Sleep(time.Second)
			}
		})()
		cancel()
		require.NoError(t, <-ended)
		assert.False(t, f.cut.Load())
		assert.Equal(t, "done", s.states(q, ids...))
	})
}

// A lane that a deploy has taken away does not starve, also if the queue has no lanes now.
func TestAgeingMeetsALaneOfNobody(t *testing.T) {
	inBubble(t, func(s *shop) {
		before := s.queue(new(log).work, durable.Options{Lanes: []core.Lane{{Name: "old"}}})
		ids := s.enqueue(before, "old")
		var q *durable.Queue[string]
		q = s.queue(func(ctx context.Context, item string) error {
			if item != "old" {
				s.enqueue(q, item)
			}
			return sleep(ctx, time.Second)
		}, durable.Options{MaxConcurrency: 1})
		for range 10 {
			s.enqueue(q, "more")
		}
		s.run(q)
		time.Sleep(20 * time.Second)
		assert.Equal(t, "done", s.states(q, ids...))
	})
}

// An item that must run alone has no room, because another process runs as many items as the queue may. Other queues
// of this process do not stop for more than 10 seconds a minute.
func TestAloneMeetsALimit(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue(new(log).work, durable.Options{Lease: 10 * time.Second, MaxCluster: 1})
		s.suspect(q)
		hog := durable.Node{Queue: q.Name(), Lease: time.Hour, Lanes: []core.Lane{{}}}
		hog.ID = core.Must(s.store.Join(s.Context(), hog))
		s.enqueue(q, "hog")
		core.Must(claim(s.store, hog, 1))
		var busy atomic.Int64
		other := s.queue(func(ctx context.Context, item string) error {
			span := time.Duration(len(item)) * time.Second
			busy.Add(int64(span))
			return sleep(ctx, span)
		}, durable.Options{Name: "other", MaxConcurrency: 4})
		for range 50 {
			s.enqueue(other, "12", "1234", "123456", "12345678")
		}
		s.run(other)
		s.run(q)
		time.Sleep(4 * time.Minute)
		assert.Greater(t, time.Duration(busy.Load()), 4*4*time.Minute*5/6)
	})
}

// hangs is a store that takes several beats at once. The fourth call does not answer.
type hangs struct {
	durable.Store
	calls atomic.Int64
}

func (h *hangs) Beats(ctx context.Context, all []durable.Beating) ([]durable.Beaten, error) {
	if h.calls.Add(1) == 4 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	done := make([]durable.Beaten, len(all))
	for n, b := range all {
		done[n], _ = h.Beat(ctx, b.Node, b.Note)
	}
	return done, nil
}

// A queue with a long lease waits long for an answer. Another queue of the process, with a short lease, goes on.
func TestLeasesMeet(t *testing.T) {
	inBubble(t, func(s *shop) {
		s.store = &hangs{Store: s.store}
		s.serve(new(log).work, durable.Options{Name: "long", Lease: time.Hour})
		q := s.serve(new(log).work, durable.Options{Name: "short", Lease: 2 * time.Second})
		lost := q.Sink().Monitor(durable.SignalLeaseLost, 0)
		defer lost.Stop()
		time.Sleep(10 * time.Minute)
		assert.Zero(t, lost.Count())
	})
}
