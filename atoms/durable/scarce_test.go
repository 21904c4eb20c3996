package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// stamps records items with the time since now, in seconds.
func (l *log) stamps() func(item string) {
	began := time.Now()
	return func(item string) {
		l.add(fmt.Sprintf("%s@%gs", item, time.Since(began).Round(100*time.Millisecond).Seconds()))
	}
}

// sorted sorts the words of a text.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// A class of tokens a minute: an item waits until its class has what it costs. What a body charges above that counts at once, and what it
// gives back when its end is stored.
func TestCostRate(t *testing.T) {
	inBubble(t, func(s *shop) {
		l := &log{}
		stamp := l.stamps()
		var errs []error
		q := s.serve(func(ctx context.Context, item string) error {
			stamp(item)
			switch item {
			case "above":
				errs = append(errs, durable.Charge(ctx, 0, 30), durable.Charge(ctx, 0, -10)) // 70 in all
				time.Sleep(time.Minute)
			case "below":
				errs = append(errs, durable.Charge(ctx, 0, -40))
			}
			return nil
		}, durable.Options{MaxConcurrency: 9, Poll: 100 * time.Millisecond, Classes: []durable.Class{{Name: "gpt", CostRate: core.Rate{PerSecond: 10, Burst: 100}}}})
		gpt := q.Class("gpt")
		s.enqueue(gpt.Cost(50), "above")
		synctest.Wait()                           // it has charged
		id := s.enqueue(gpt.Cost(50), "below")[0] // 20 are left
		assert.Equal(t, int64(80), s.stats(q).Classes[0].Cost.Used)
		assert.Contains(t, s.explain(q, id), "class gpt has its next token of CostRate in")
		s.enqueue(gpt.Cost(20), "20")
		s.enqueue(q, "free")
		time.Sleep(30 * time.Second)
		assert.Equal(t, "above@0s free@0s below@3s 20@3s", l.take())
		time.Sleep(2 * time.Minute)
		assert.NoError(t, errors.Join(errs...))
		assert.Equal(t, int64(50+20+50-40+20), s.stats(q).Classes[0].Cost.Used)
		assert.NoError(t, durable.Charge(s.Context(), 1, 1), "no claim")
		_, err := gpt.Cost(-1).Enqueue(s.Context(), "x")
		assert.ErrorContains(t, err, "durable: ItemOptions.Cost is -1, but must be from 0 to 2^40")
	})
}

// A store that refuses a charge gets it with the end of the claim.
func TestChargeIsNotLost(t *testing.T) {
	inBubble(t, func(s *shop) {
		store := &uncharged{Store: s.store}
		s.store = store
		var err error
		q := s.serve(func(ctx context.Context, item string) error { err = durable.Charge(ctx, 2, 30); return nil }, durable.Options{Classes: []durable.Class{{Name: "gpt", Rate: core.AtMost(1, time.Second), CostRate: core.AtMost(10, time.Second)}}})
		s.enqueue(q.Class("gpt"), "x")
		c := s.stats(q).Classes[0]
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Equal(t, []int64{3, 30}, []int64{c.Calls.Used, c.Cost.Used})
	})
}

type uncharged struct{ durable.Store }

func (u *uncharged) Charge(context.Context, string, string, int64, int64) error { return errOnPurpose }

// A gate of a class holds up its class and nothing else, and says so. While a trial signal is present, so many run in all processes.
func TestClassGates(t *testing.T) {
	inBubble(t, func(s *shop) {
		l := &log{}
		stamp := l.stamps()
		opts := durable.Options{MaxConcurrency: 9, Sink: signals.NewSink(signals.SinkOptions{}), Classes: []durable.Class{{Name: "api", DeferOn: "api.down", TrialOn: "api.maybe", Trials: 2}}}
		work := func(_ context.Context, item string) error {
			stamp(item)
			time.Sleep(time.Second)
			return nil
		}
		q, other := s.serve(work, opts), s.serve(work, opts)
		open := opts.Sink.Hold("api.down", "", 0)
		id := s.enqueue(q.Class("api"), "1", "2", "3", "4", "5")[0]
		s.enqueue(other, "free")
		time.Sleep(3 * time.Second)
		assert.Equal(t, "free@0s", l.take())
		assert.Contains(t, s.explain(q, id), "does not claim class api while api.down is present")
		trial := opts.Sink.Hold("api.maybe", "", 0)
		open()
		time.Sleep(1500 * time.Millisecond)
		assert.Equal(t, "1@3s 2@3s 3@4s 4@4s", sorted(l.take()))
		trial()
		synctest.Wait()
		assert.Equal(t, "5@4.5s", l.take())
		assert.ErrorContains(t, q.SetClass(s.Context(), durable.Class{Name: "api", DeferOn: "x"}), "only Limit, Rate, CostRate and Shadow can change")
	})
}

// The next item of a key waits for its token; other keys do not.
func TestKeyRate(t *testing.T) {
	inBubble(t, func(s *shop) {
		l := &log{}
		stamp := l.stamps()
		q := s.serve(func(_ context.Context, item string) error { stamp(item); return nil }, durable.Options{Poll: 100 * time.Millisecond, KeyRate: core.Rate{PerSecond: 0.5, Burst: 2}})
		s.enqueue(q, "a/1", "a/2", "a/3", "a/4", "b/1")
		time.Sleep(10 * time.Second)
		s.enqueue(q, "a/5")
		synctest.Wait()
		assert.Equal(t, "a/1@0s a/2@0s a/3@2s a/4@4s a/5@10s b/1@0s", sorted(l.take()))
	})
}

// A pause says why, by whom and since when. It ends by itself.
func TestPauseOfAKey(t *testing.T) {
	inBubble(t, func(s *shop) {
		l := &log{}
		stamp := l.stamps()
		opts := durable.Options{Node: "web-1", Classes: []durable.Class{{Name: "c"}}}
		var trials []bool
		q := s.serve(func(ctx context.Context, item string) error {
			stamp(item)
			trials = append(trials, durable.ClaimFrom(ctx).Trial)
			return nil
		}, opts)
		other := s.queue(l.work, opts)
		require.NoError(t, other.Pause(s.Context(), durable.Pause{Key: "a", For: time.Minute, Auto: true, Reason: "the endpoint is down"}))
		ids := s.enqueue(q, "a/1", "a/2", "b/1")
		const why = "key a is paused by web-1 since 2000-01-01T00:00:00Z until 2000-01-01T00:01:00Z: the endpoint is down"
		assert.Contains(t, s.explain(q, ids[0]), why)
		assert.Contains(t, s.explain(q, ids[1]), why)
		status, err := q.Inspect().Status(s.Context())
		require.NoError(t, err)
		assert.Equal(t, why, status.Note)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, "b/1@0s a/1@60s a/2@60s", l.take())
		assert.Equal(t, []bool{false, true, false}, trials)
		require.NoError(t, q.Pause(s.Context(), durable.Pause{Class: "c"}))
		s.enqueue(q.Class("c"), "c/1")
		time.Sleep(time.Second)
		assert.Empty(t, l.take())
		require.NoError(t, other.Resume(s.Context(), durable.Pause{Class: "c"}))
		time.Sleep(time.Second)
		assert.Contains(t, l.take(), "c/1")
		for text, p := range map[string]durable.Pause{
			`Pause has the class "c" and the key "k"`:       {Class: "c", Key: "k"},
			"Pause.For is -1ns, but must be from 0 to 100":  {For: -1},
			core.ErrUnknownClass.Error():                    {Class: "d"},
			"durable: Pause.Key is not valid UTF-8, or has": {Key: "\x00"},
		} {
			assert.ErrorContains(t, q.Pause(s.Context(), p), text)
		}
		again := durable.Pause{Key: "z", For: time.Hour}
		require.NoError(t, q.Pause(s.Context(), again))
		again = s.stats(q).Pauses[0]
		require.NoError(t, q.Pause(s.Context(), again), "an answer of Stats, which says For 0")
		assert.Zero(t, s.stats(q).Pauses[0].Until)
		require.NoError(t, q.Resume(s.Context(), again))
		require.NoError(t, q.Resume(s.Context(), durable.Pause{Class: "d"}), "of a class that is no longer known")
		for n := range durable.MaxPauses {
			require.NoError(t, q.Pause(s.Context(), durable.Pause{Key: fmt.Sprint(n)}))
		}
		assert.ErrorIs(t, q.Pause(s.Context(), durable.Pause{Key: "one more"}), durable.ErrPauses)
		require.NoError(t, q.Pause(s.Context(), durable.Pause{Key: "7", For: time.Second}), "it was paused")
		require.NoError(t, q.Pause(s.Context(), durable.Pause{}))
	})
}

// A shadow and rates in force with the same values agree on which items wait, and for how long, on the same trace.
func TestShadowAgrees(t *testing.T) {
	rate, cost := core.Rate{PerSecond: 10, Burst: 5}, core.Rate{PerSecond: 100, Burst: 60}
	for name, limits := range map[string]core.Limits{"rate": {Rate: rate}, "cost": {CostRate: cost}, "all": {Rate: rate, CostRate: cost}} {
		inBubble(t, func(s *shop) {
			const items = 2000
			join := func(queue string, c durable.Class) durable.Node {
				c.Name = "c"
				n := durable.Node{Queue: queue, Lease: 1000 * time.Hour, Lanes: []core.Lane{{}}, Classes: []durable.Class{c}}
				var err error
				n.ID, err = s.store.Join(s.Context(), n)
				require.NoError(t, err)
				return n
			}
			force, shadow := join("force", durable.Class{Rate: limits.Rate, CostRate: limits.CostRate}), join("shadow", durable.Class{Shadow: &limits})
			turn := func(n durable.Node, ends ...durable.End) durable.Turned {
				turned, err := s.store.Turn(s.Context(), n, ends, durable.Want{Max: durable.MaxBatch})
				require.NoError(t, err)
				return turned
			}
			var waited int
			var longest time.Duration
			var next time.Duration
			serve := func(until time.Time) { // the queue in force
				for next > 0 && !time.Now().Add(next).After(until) {
					time.Sleep(next)
					turned := turn(force)
					for _, i := range turned.Items {
						waited++
						longest = max(longest, i.Started.Sub(i.RunAt))
					}
					if next = 0; len(turned.Waits) > 0 {
						next = turned.Waits[0].Next
					}
				}
				next = max(0, next-time.Until(until))
				time.Sleep(time.Until(until))
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range items {
				serve(time.Now().Add(time.Duration(r.ExpFloat64() * float64(110*time.Millisecond)).Truncate(time.Microsecond)))
				in := []durable.Insert{{Class: "c", Cost: []int64{0, 1, 10, 20, 90}[r.IntN(5)] / 2}}
				for _, n := range []durable.Node{force, shadow} {
					_, err := s.store.Insert(s.Context(), n.Queue, in)
					require.NoError(t, err)
				}
				turn(shadow)
				if next == 0 {
					if turned := turn(force); len(turned.Waits) > 0 {
						next = turned.Waits[0].Next
					}
				}
			}
			serve(time.Now().Add(time.Hour))
			stats, err := s.store.Stats(s.Context(), "shadow")
			require.NoError(t, err)
			got := stats.Classes[0].Shadow
			assert.Equal(t, uint64(items), got.Started)
			assert.Greater(t, waited, items/10, name)
			assert.InEpsilon(t, waited, int(got.Waited), 0.01, name)
			assert.InEpsilon(t, longest, got.Longest, 0.01, name)
		})
	}
}

// A process says when items that it claims begin to wait in a shadow, and when none does any more, at most once a second. Explain says
// how long an item that runs would wait.
func TestShadowIsTold(t *testing.T) {
	inBubble(t, func(s *shop) {
		shadow := &core.Limits{Rate: core.Rate{PerSecond: 1, Burst: 1}}
		work := func(_ context.Context, item string) error {
			time.Sleep(10 * time.Second)
			return nil
		}
		q := s.serve(work, durable.Options{MaxConcurrency: 9, Classes: []durable.Class{{Name: "api", Shadow: shadow}}})
		began, told := time.Now(), &log{}
		core.WouldThrottle.Subscribe(q.Sink(), func(_ signals.Signal, c core.ClassChange) {
			told.add(fmt.Sprintf("%s:%d@%v", c.Class, c.Waiting, time.Since(began).Round(100*time.Millisecond)))
		})
		ids := s.enqueue(q.Class("api"), "1", "2") // one of them waits, and that is told
		synctest.Wait()
		ids = append(ids, s.enqueue(q.Class("api"), "3", "4", "5")...)
		time.Sleep(500 * time.Millisecond)
		assert.Contains(t, s.explain(q, ids[3]), `; with the shadow of class "api" it would still wait for 2.5s`)
		assert.NotContains(t, s.explain(q, ids[0]), "shadow")
		time.Sleep(2 * time.Second)
		assert.NotContains(t, s.explain(q, ids[2]), "shadow")
		time.Sleep(2700 * time.Millisecond) // at 5.2 s there is a token and a bit
		assert.Equal(t, core.ShadowStats{Limits: *shadow, Started: 5, Waited: 4, Longest: 4 * time.Second}, s.stats(q).Classes[0].Shadow)
		s.enqueue(q.Class("api"), "6", "7") // the begin is told at once, and the end a second later
		time.Sleep(5 * time.Second)
		assert.Equal(t, "api:1@0s api:0@4s api:1@5.2s api:0@6.2s", told.take())
		assert.NoError(t, q.SetClass(s.Context(), durable.Class{Name: "api"}))
		assert.Zero(t, s.stats(q).Classes[0].Shadow)
	})
}
