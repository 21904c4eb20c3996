package durable_test

import (
	"context"
	"errors"
	"fmt"
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
				time.Sleep(time.Hour)
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
		assert.Contains(t, s.explain(q, id), "class gpt has its next token in")
		s.enqueue(gpt.Cost(20), "20")
		s.enqueue(q, "free")
		time.Sleep(30 * time.Second)
		assert.Equal(t, "above@0s free@0s below@3s 20@3s", l.take())
		time.Sleep(2 * time.Hour)
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
		assert.ErrorContains(t, q.SetClass(s.Context(), durable.Class{Name: "api", DeferOn: "x"}), "only Limit, Rate and CostRate can change")
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
		require.NoError(t, other.Pause(s.Context(), durable.Pause{Key: "a", For: time.Minute, Reason: "the endpoint is down"}))
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
