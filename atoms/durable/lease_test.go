package durable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// two makes a queue on a faulty way to the store, and another one on a good way. Only the
// first one runs, yet.
func two(s *shop, first, second core.Work[string], opts durable.Options) (f *faulty, bad, good *durable.Queue[string]) {
	good = s.queue(second, opts)
	f = &faulty{Store: s.store}
	s.store = f
	opts.Node = "bad"
	return f, s.serve(first, opts), good
}

// A process that cannot reach the store cancels its bodies before their items are free. Others
// have them after the lease. The late end is refused, counted and signalled.
func TestLeaseIsLost(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		began := time.Now()
		stubborn := func(ctx context.Context, item string) error {
			<-ctx.Done()
			l.add(fmt.Sprint(item, " lost after ", time.Since(began), ": ", context.Cause(ctx) == durable.ErrLeaseLost))
			time.Sleep(10 * time.Second)
			return nil
		}
		f, bad, good := two(s, stubborn, func(_ context.Context, item string) error {
			l.add(fmt.Sprint(item, " again after ", time.Since(began)))
			return nil
		}, durable.Options{Lease: 10 * time.Second})
		signals, lost := watch(s, bad, "durable.*"), watch(s, good, "durable.*")
		s.enqueue(bad, "a/1")
		synctest.Wait()
		f.cut.Store(true)
		s.run(good)
		time.Sleep(12 * time.Second)
		assert.Equal(t, "a/1 lost after 9s: true a/1 again after 10s", l.take())
		node, _ := durable.NodeLost.From(lost.Expect(durable.SignalNodeLost)[0])
		assert.Equal(t, durable.Lost{Name: "bad", Claims: 1, Reason: "bad sent no heartbeat before its lease was over: 1 item free again"}, node)
		raised := signals.Expect(durable.SignalStoreLost, durable.SignalLeaseLost)
		first, _ := durable.StoreLost.From(raised[0])
		assert.Error(t, first)
		why, _ := durable.LeaseLost.From(raised[1])
		assert.ErrorContains(t, why, "because the store could not be reached: ")
		f.cut.Store(false)
		time.Sleep(10 * time.Second)
		signals.Expect(durable.SignalFenced)
		assert.EqualValues(t, 1, s.stats(bad).Fenced)
		assert.Equal(t, 1, s.stats(bad).Done)
		assert.Equal(t, 2, s.stats(bad).Nodes, "it has joined again")
		assert.False(t, bad.Sink().Has(durable.SignalStoreLost))
		s.enqueue(bad, "a/2")
	})
}

// A short cut changes nothing: the end is tried again.
func TestShortCut(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		f, bad, _ := two(s, l.sleeps, l.sleeps, durable.Options{})
		ids := s.enqueue(bad, "a/1", "a/2")
		synctest.Wait()
		f.cut.Store(true)
		_, err := bad.Enqueue(s.Context(), "a/3")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorContains(t, err, `durable: queue "durable": enqueue: `)
		time.Sleep(10 * time.Second)
		assert.Equal(t, "running blocked", s.states(bad, ids...))
		f.cut.Store(false)
		time.Sleep(3 * time.Second)
		assert.Equal(t, "done done", s.states(bad, ids...))
		assert.Equal(t, "a/1 a/2", l.take())
	})
}

// If answers are lost, an end counts once, and items that this process does not know that it
// has are given back in two beats, long before the lease is over.
func TestAnswersAreLost(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		f, bad, _ := two(s, l.work, l.work, durable.Options{Lease: 10 * time.Minute, Poll: time.Second})
		signals := watch(s, bad, "durable.succeeded, durable.fenced")
		f.loseEnd.Store(true)
		s.enqueue(bad, "a/1")
		time.Sleep(time.Second)
		signals.ExpectExactly("durable.succeeded")
		f.loseClaim.Store(true)
		s.enqueue(bad, "a/2")
		assert.Equal(t, 1, s.stats(bad).Running)
		time.Sleep(2 * time.Second)
		assert.Equal(t, "a/1 a/2", l.take())
		x, err := bad.Explain(s.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, 1, x.Item.Attempts, "the lost one did not count")
	})
}

// An item kills each process that runs it. Those that run beside it come to no harm: after two
// losses all run alone, and only then are losses attempts. The item is dead in the end, and its
// key goes on.
func TestCrashingItem(t *testing.T) {
	inBubble(t, func(s *shop) {
		memory, crashes := s.store, 0
		var l log
		start := func() (q *durable.Queue[string], f *faulty) {
			f = &faulty{Store: memory}
			s.store = f
			other := s.queue(l.sleeps, durable.Options{Name: "other", Lease: time.Second, MaxConcurrency: 8})
			q = s.queue(func(ctx context.Context, item string) error {
				if item != "bad/1" {
					return l.sleeps(ctx, item)
				}
				if crashes++; crashes > 2 {
					assert.Zero(t, other.Here().Stats().Running, "it runs alone, over all queues")
				}
				f.cut.Store(true)
				<-ctx.Done()
				return context.Cause(ctx)
			}, durable.Options{Lease: time.Second, MaxConcurrency: 8, MaxAttempts: 2})
			s.run(q)
			s.run(other)
			return q, f
		}
		producer, second := s.queue(l.work, durable.Options{}), s.queue(l.work, durable.Options{Name: "other"})
		ids := s.enqueue(producer, "bad/1", "bad/2", "1", "2", "3", "4", "5", "6")
		others := s.enqueue(second, "x", "y", "z")
		q, f := start()
		for range 8 {
			for range 100 {
				time.Sleep(time.Second)
				if f.cut.Load() || s.stats(producer).Done == 7 {
					break
				}
			}
			q, f = start()
		}
		assert.Equal(t, 4, crashes)
		assert.Equal(t, "dead done done done done done done done", s.states(producer, ids...))
		assert.Equal(t, "done done done", s.states(second, others...))
		assert.Contains(t, s.explain(q, ids[0]), "durable: all 2 attempts have begun, and the last one, without other items beside it, was lost with its process")
		for i, err := range q.Items(s.Context(), durable.Query{State: durable.Done}) {
			require.NoError(t, err)
			assert.Equal(t, 1, i.Attempts)
		}
	})
}

// suspect adds an item that was lost twice with its process.
func (s *shop) suspect(q *durable.Queue[string]) {
	s.Helper()
	s.enqueue(q, "suspect")
	for range 2 {
		node := durable.Node{Queue: q.Name(), Lease: time.Second, Lanes: []core.Lane{{}}}
		node.ID = core.Must(s.store.Join(s.Context(), node))
		core.Must(claim(s.store, node, 1))
		time.Sleep(time.Second)
		node.ID = core.Must(s.store.Join(s.Context(), node))
		core.Must(s.store.Beat(s.Context(), node, ""))
		require.NoError(s, s.store.Leave(s.Context(), node))
	}
}

// A process that is busy for long does not stand still to run an item alone: it tries for ten
// seconds a minute.
func TestAloneHasToWait(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		work := func(ctx context.Context, item string) error {
			l.add(item)
			if item == "long" {
				return sleep(ctx, 90*time.Second)
			}
			return nil
		}
		q := s.queue(work, durable.Options{Lease: 10 * time.Second, MaxConcurrency: 2})
		s.suspect(q)
		s.enqueue(q, "long")
		s.run(q)
		time.Sleep(2 * time.Second)
		assert.Equal(t, "long", l.take())
		s.enqueue(q, "other")
		time.Sleep(5 * time.Second)
		assert.Empty(t, l.take())
		time.Sleep(7 * time.Second)
		assert.Equal(t, "other", l.take())
		s.enqueue(q, "next")
		assert.Equal(t, "next", l.take())
		time.Sleep(3 * time.Minute)
		assert.Equal(t, "suspect", l.take())
	})
}

// Processes that are cut off, stop and come back run every item to its end, those of a key in
// order, and not more at once than may.
func TestManyProcesses(t *testing.T) {
	seeds := uint64(2)
	if os.Getenv("EPHEMERAL_LONG") != "" {
		seeds = 20
	}
	for seed := range seeds {
		inBubble(t, func(s *shop) {
			const keys, each, most = 5, 20, 6
			random := rand.New(rand.NewPCG(seed, 1))
			memory, effects, running := s.store, log{}, 0
			work := func(ctx context.Context, item string) error {
				pause := time.Duration(effects.random(random, 3000)) * time.Millisecond
				if err := sleep(ctx, pause); err != nil {
					return err
				}
				if effects.random(random, 10) == 0 {
					return errOnPurpose
				}
				c := durable.ClaimFrom(ctx) // the effect and the end in one transaction, as Finish does
				outcome, err := endDone(memory, c)
				if outcome == durable.OutcomeEnded {
					effects.add(item)
				}
				durable.MarkFinished(ctx)
				return err
			}
			var all []*faulty
			for n := range 4 {
				f := &faulty{Store: memory}
				all, s.store = append(all, f), f
				s.serve(work, durable.Options{Node: fmt.Sprint("node ", n), MaxConcurrency: 3, MaxCluster: most, Lease: 2 * time.Second, MaxAttempts: -1, Backoff: time.Millisecond})
			}
			for n := range each {
				for k := range keys {
					s.enqueue(s.queues[0], fmt.Sprintf("%d/%02d", k, n))
				}
			}
			for s.stats(s.queues[0]).Done < keys*each {
				f := all[effects.random(random, len(all))]
				f.cut.Store(effects.random(random, 4) == 0)
				f.loseClaim.Store(effects.random(random, 8) == 0)
				f.loseEnd.Store(effects.random(random, 8) == 0)
				time.Sleep(500 * time.Millisecond)
				running = max(running, s.stats(s.queues[0]).Running)
			}
			for _, f := range all {
				f.cut.Store(false)
			}
			of := map[string][]string{}
			for _, item := range strings.Fields(effects.take()) {
				of[keyOf(item)] = append(of[keyOf(item)], item)
			}
			for k := range keys {
				var want []string
				for n := range each {
					want = append(want, fmt.Sprintf("%d/%02d", k, n))
				}
				assert.Equal(t, want, of[fmt.Sprint(k)], "seed %d", seed)
			}
			assert.LessOrEqual(t, running, most)
		})
	}
}
