package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// When Run is to end, by whatever means, what runs ends first, and the rest stays for others.
func TestRunEnds(t *testing.T) {
	for name, end := range map[string]func(q *durable.Queue[string], cancel func()){
		"context": func(_ *durable.Queue[string], cancel func()) { cancel() },
		"Stop":    func(q *durable.Queue[string], _ func()) { assert.NoError(t, q.Stop(context.Background())) },
		"Here":    func(q *durable.Queue[string], _ func()) { assert.NoError(t, q.Here().Drain(context.Background())) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *shop) {
				var l log
				q := s.queue(l.sleeps, durable.Options{MaxConcurrency: 1})
				ids := s.enqueue(q, "a/1", "a/2")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				ended := make(chan error)
				go func() { ended <- q.Run(ctx) }()
				synctest.Wait()
				s.runs.Go(func() { end(q, cancel) })
				assert.NoError(t, <-ended)
				assert.Equal(t, "done ready", s.states(q, ids...))
				assert.Zero(t, s.stats(q).Nodes)
				assert.ErrorIs(t, q.Run(ctx), core.ErrClosed)
				s.enqueue(q, "a/3") // still works
			})
		})
	}
}

// The store refuses the end of an item for ever. Other items go on, and Run ends one lease after the last
// body. The item runs again elsewhere.
func TestEndIsRefused(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		good := s.queue(l.work, durable.Options{})
		s.store = &faulty{Store: s.store, refused: "bad"}
		q := s.queue(l.sleeps, durable.Options{MaxConcurrency: 3, Lease: 10 * time.Second, Poll: time.Hour})
		raised := watch(s, q, durable.SignalFenced)
		ids := s.enqueue(q, "a/1", "bad/1", "b/1", "bad/2")
		ended := make(chan error)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { ended <- q.Run(ctx) }()
		time.Sleep(time.Minute)
		assert.Equal(t, "done running done blocked", s.states(q, ids...))
		assert.True(t, q.Sink().Has(durable.SignalStoreLost))
		began := time.Now()
		ids = append(ids, s.enqueue(q, "c/1")...)
		time.Sleep(time.Second)
		assert.Equal(t, "done", s.states(q, ids[4]))
		cancel()
		err := <-ended
		assert.Equal(t, 11*time.Second, time.Since(began))
		assert.ErrorIs(t, err, errOnPurpose)
		assert.EqualError(t, err, `durable: queue "durable": the end of item 2 could not be recorded for 10s, so the item may run again: on purpose`)
		item, _ := durable.ItemFenced.From(raised.ExpectExactly(durable.SignalFenced)[0])
		assert.Equal(t, ids[1], item.ID)
		assert.False(t, q.Sink().Has(durable.SignalStoreLost))
		assert.ElementsMatch(t, []string{"a/1", "bad/1", "b/1", "c/1"}, split(l.take()))
		s.run(good)
		time.Sleep(time.Second)
		assert.Equal(t, "bad/1 bad/2", l.take())
	})
}

// An item that was claimed and has not started is given back, and its attempt does not count.
// So is one whose body Close has cancelled.
func TestItemsAreGivenBack(t *testing.T) {
	inBubble(t, func(s *shop) {
		f := &faulty{Store: s.store}
		s.store = f
		q := s.serve(func(ctx context.Context, item string) error {
			if item == "1" {
				err := core.OperationFrom(ctx).Suspend(ctx, "a second", func(ctx context.Context) error { return sleep(ctx, time.Second/2) })
				require.NoError(t, err)
			}
			return sleep(ctx, time.Hour)
		}, durable.Options{MaxConcurrency: 1})
		raised := watch(s, q, "durable.*")
		ids := s.enqueue(q, "1")
		synctest.Wait()
		f.slow.Store(true) // 2 is claimed while 1 is suspended, and has no slot when it comes
		ids = append(ids, s.enqueue(q, "2")...)
		time.Sleep(time.Second + 50*time.Millisecond)
		assert.Equal(t, "running running", s.states(q, ids...))
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, q.Stop(ctx), context.DeadlineExceeded)
		assert.Equal(t, "running ready", s.states(q, ids...))
		require.NoError(t, q.Close())
		assert.Equal(t, "ready ready", s.states(q, ids...))
		raised.ExpectExactly(durable.SignalReturned, durable.SignalReturned)
		for i, err := range q.Items(s.Context(), durable.Query{}) {
			require.NoError(t, err)
			assert.Zero(t, i.Attempts)
		}
		_, err := q.Enqueue(s.Context(), "3")
		assert.ErrorIs(t, err, core.ErrClosed)
		_, err = q.EnqueueAll(s.Context(), []string{"3"})
		assert.ErrorIs(t, err, core.ErrClosed)
	})
}

// A body may add items to its own queue, wait for one of them without its slot, and close the
// queue.
func TestBodiesUseTheirQueue(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		var q *durable.Queue[string]
		q = s.queue(func(ctx context.Context, item string) error {
			defer l.add(item)
			if item != "parent" {
				return nil
			}
			assert.ErrorIs(t, q.Stop(ctx), core.ErrWouldDeadlock)
			done := q.Sink().Monitor(durable.SignalSucceeded, 0)
			defer done.Stop()
			if _, err := q.Enqueue(ctx, "child"); err != nil {
				return err
			}
			if err := core.OperationFrom(ctx).Suspend(ctx, "its child", func(ctx context.Context) error {
				_, err := q.Sink().WaitFor(ctx, durable.SignalSucceeded)
				return err
			}); err != nil {
				return err
			}
			return q.Close()
		}, durable.Options{MaxConcurrency: 1})
		ids := s.enqueue(q, "parent")
		require.NoError(t, q.Run(s.Context()))
		assert.Equal(t, "child parent", l.take())
		assert.Equal(t, "done done", s.states(q, ids[0], ids[0]+1))
	})
}

// A queue that was closed leaves nothing on the sink.
func TestNothingIsLeft(t *testing.T) {
	inBubble(t, func(s *shop) {
		sink := signals.NewSink(signals.SinkOptions{})
		coretest.NothingLeft(s, sink, func() {
			var l log
			f := &faulty{Store: s.store}
			s.store = f
			q := s.serve(l.sleeps, durable.Options{Sink: sink, DeferOn: "update.*", Lease: time.Second})
			s.enqueue(q, "1")
			synctest.Wait()
			f.cut.Store(true)
			time.Sleep(700 * time.Millisecond) // a beat has found no answer for a quarter of the lease
			require.True(t, sink.Has(durable.SignalStoreLost))
			require.NoError(t, q.Close())
			require.NoError(t, q.Close())
			s.runs.Wait()
		})
	})
}
