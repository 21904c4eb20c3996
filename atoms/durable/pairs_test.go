package durable_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

func TestPairLimit(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue(new(log).work, durable.Options{})
		s.enqueue(q, "a", "b")
		page, err := q.List(s.Context(), durable.Query{Limit: math.MaxInt})
		require.NoError(t, err)
		assert.Len(t, page.Items, 2)
		_, err = q.List(s.Context(), durable.Query{Limit: -1})
		assert.ErrorContains(t, err, "-1")
	})
}

func TestPairCancelAndLastAttempt(t *testing.T) {
	for _, halt := range []bool{false, true} {
		inBubble(t, func(s *shop) {
			q := s.serve(func(ctx context.Context, item string) error {
				time.Sleep(1500 * time.Millisecond)
				return errOnPurpose
			}, durable.Options{MaxAttempts: 1, HaltOnDead: halt})
			other := s.queue(new(log).work, durable.Options{})
			ids := s.enqueue(q, "a/1")
			time.Sleep(1400 * time.Millisecond)
			ok, err := other.Cancel(s.Context(), ids[0], "left")
			require.NoError(t, err)
			assert.True(t, ok)
			time.Sleep(200 * time.Millisecond)
			assert.Equal(t, "cancelled", s.states(q, ids...))
		})
	}
}

func TestPairEndAtStop(t *testing.T) {
	inBubble(t, func(s *shop) {
		memory := s.store
		f := &faulty{Store: memory}
		s.store = f
		sink, free := core.NewSink(core.SinkOptions{}), make(chan struct{})
		q := s.queue(func(ctx context.Context, item string) error { <-free; return nil }, durable.Options{Sink: sink, MaxConcurrency: 2})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx) }()
		ids := s.enqueue(q, "a/1")
		synctest.Wait()
		f.cut.Store(true)
		q.Resume(s.Context()) // the pump looks in vain
		synctest.Wait()
		require.True(t, sink.Has(durable.SignalStoreLost))
		hit := false
		defer sink.SubscribeRetracted(durable.SignalStoreLost, func(core.Retraction) {
			if !hit {
				hit = true
				f.cut.Store(false)
				close(free)
				time.Sleep(time.Second)
			}
		})()
		cancel()
		require.NoError(t, <-ended)
		assert.True(t, hit)
		assert.Equal(t, "done", s.states(q, ids...))
	})
}

func TestPairAgeingOfAStray(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		before := s.queue(l.work, durable.Options{Lanes: []core.Lane{{Name: "old"}}})
		ids := s.enqueue(before, "x/1")
		var q *durable.Queue[string]
		q = s.queue(func(ctx context.Context, item string) error {
			l.add(item)
			if item != "x/1" {
				q.Enqueue(ctx, item)
			}
			return sleep(ctx, time.Second)
		}, durable.Options{MaxConcurrency: 1})
		for range 10 {
			s.enqueue(q, "more")
		}
		s.run(q)
		time.Sleep(time.Minute)
		assert.Equal(t, "done", s.states(q, ids...))
	})
}

func TestPairAloneInVain(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		q := s.queue(l.work, durable.Options{Lease: 10 * time.Second, MaxCluster: 1})
		ids := s.enqueue(q, "suspect")
		for range 2 {
			node := durable.Node{Queue: q.Name(), Lease: time.Second, Lanes: []core.Lane{{}}}
			var err error
			node.ID, err = s.store.Join(s.Context(), node)
			require.NoError(t, err)
			_, err = claim(s.store, node, 1)
			require.NoError(t, err)
			time.Sleep(time.Second)
			node.ID, err = s.store.Join(s.Context(), node)
			require.NoError(t, err)
			_, err = s.store.Beat(s.Context(), node, "")
			require.NoError(t, err)
			require.NoError(t, s.store.Leave(s.Context(), node))
		}
		assert.Equal(t, "ready", s.states(q, ids...))
		hog := durable.Node{Queue: q.Name(), Lease: time.Hour, Lanes: []core.Lane{{}}}
		var err error
		hog.ID, err = s.store.Join(s.Context(), hog)
		require.NoError(t, err)
		s.enqueue(q, "hog")
		_, err = claim(s.store, hog, 1)
		require.NoError(t, err)
		busy := time.Duration(0)
		other := s.queue(func(ctx context.Context, item string) error {
			d := time.Duration(len(item)) * time.Second
			busy += d
			return sleep(ctx, d)
		}, durable.Options{Name: "other", MaxConcurrency: 4})
		for range 50 {
			s.enqueue(other, "12", "1234", "123456", "12345678")
		}
		s.run(other)
		s.run(q)
		time.Sleep(4 * time.Minute)
		t.Log(busy, "of", 16*time.Minute)
		assert.Greater(t, busy, 16*time.Minute*5/6)
	})
}

type hung struct {
	durable.Store
	n int
}

func (h *hung) Beats(ctx context.Context, all []durable.Beating) ([]durable.Beaten, error) {
	if h.n++; h.n == 4 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	done := make([]durable.Beaten, len(all))
	for n, b := range all {
		done[n], _ = h.Beat(ctx, b.Node, b.Note)
	}
	return done, nil
}

func TestPairLeases(t *testing.T) {
	inBubble(t, func(s *shop) {
		s.store = &hung{Store: s.store}
		var l log
		s.serve(l.work, durable.Options{Name: "long", Lease: time.Hour})
		q := s.serve(l.work, durable.Options{Name: "short", Lease: 2 * time.Second})
		lost := q.Sink().Monitor(durable.SignalLeaseLost, 0)
		defer lost.Stop()
		time.Sleep(10 * time.Minute)
		assert.Zero(t, lost.Count())
	})
}

func TestPairState(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue(new(log).work, durable.Options{})
		s.enqueue(q, "a", "b")
		n, err := q.Inspect().CancelAll(s.Context(), inspect.ItemQuery{State: "|"}, "x")
		assert.ErrorContains(t, err, `State is "|"`)
		assert.Zero(t, n)
	})
}
