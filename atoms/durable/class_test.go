package durable_test

import (
	"context"
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

func TestClassErrors(t *testing.T) {
	for text, classes := range map[string][]durable.Class{
		"Options.Classes[1] is named \"a\", but classes must have different names": {{Name: "a"}, {Name: "a"}},
		"Options.Classes[0] is named \" \", but":                                   {{Name: " "}},
		"the name of a class has a character U+0001":                               {{Name: "a\x01"}},
		"Options.Classes[0]: limit is -1, but must not be negative":                {{Name: "a", Limit: -1}},
		"Options.Classes[0]: burst is 3, but there is no rate":                     {{Name: "a", Rate: core.Rate{Burst: 3}}},
		"Options.Classes[0]: core: rate is -2, but must be 0":                      {{Name: "a", Rate: core.Rate{PerSecond: -2}}},
		"Options.Classes has 65 entries, but there can be 64":                      make([]durable.Class, 65),
		"Options.Classes[0]: Shadow is empty":                                      {{Name: "a", Shadow: &core.Limits{}}},
		"Options.Classes[0]: Shadow.Limit is 3, but a shadow of a durable class":   {{Name: "a", Shadow: &core.Limits{Limit: 3}}},
		"Options.Classes[0]: Shadow.Rate: burst is 3, but there is no rate":        {{Name: "a", Shadow: &core.Limits{Rate: core.Rate{Burst: 3}}}},
		"Options.Classes[0]: Shadow.CostRate is 2 a second with a burst of 1, but must not be looser than the rate in force, which is 1 with 1": {
			{Name: "a", CostRate: core.AtMost(1, time.Second), Shadow: &core.Limits{CostRate: core.Rate{PerSecond: 2, Burst: 1}}}},
	} {
		_, err := durable.New(durable.Memory(), keyOf, (&log{}).work, durable.Options{Classes: classes})
		assert.ErrorContains(t, err, text)
	}
	inBubble(t, func(s *shop) {
		q := s.queue((&log{}).work, durable.Options{Classes: []durable.Class{{Name: "a"}}})
		_, err := q.Class("b").Enqueue(s.Context(), "x")
		assert.ErrorIs(s, err, core.ErrUnknownClass)
		assert.ErrorIs(s, q.SetClass(s.Context(), durable.Class{Name: "b"}), core.ErrUnknownClass)
		assert.ErrorIs(s, q.ResetClass(s.Context(), "b"), core.ErrUnknownClass)
		assert.ErrorContains(s, q.SetClass(s.Context(), durable.Class{Name: "a", Limit: -1}), "SetClass of \"a\": limit is -1")
	})
}

// Tokens are claimed when they come, by the process that is there. An item that waits for one holds
// up its key only, and says for what it waits. Signals tell when that begins and ends.
func TestClassRate(t *testing.T) {
	inBubble(t, func(s *shop) {
		l := &log{}
		began := time.Now()
		work := func(ctx context.Context, item string) error {
			c := durable.ClaimFrom(ctx)
			l.add(item + c.Class + "@" + time.Since(began).Round(10*time.Millisecond).String())
			if item == "a/2" && c.Attempt == 1 && time.Since(began) < 1200*time.Millisecond {
				return durable.Snooze(0) // the token does not come back
			}
			return nil
		}
		opts := durable.Options{MaxConcurrency: 9, Classes: []durable.Class{{Name: "slow", Rate: core.Rate{PerSecond: 1, Burst: 1}}}, Sink: signals.NewSink(signals.SinkOptions{})}
		q := s.serve(work, opts)
		raised := watch(s, q, "class.*")
		s.enqueue(q.Class("slow"), "a/1", "a/2", "b/1")
		id := s.enqueue(q, "a/3", "c/1")[0]
		time.Sleep(250 * time.Millisecond)
		assert.ElementsMatch(t, []string{"a/1slow@0s", "c/1@0s"}, strings.Fields(l.take())) // they start at the same time
		assert.Equal(t, "behind 1 item of key a; the first waits: class slow has its next token of Rate in 750ms", s.explain(q, id))
		assert.Equal(t, "class slow has its next token of Rate in 750ms; behind 1 item of its lane and class", s.explain(q, id-1))
		assert.Equal(t, 2, s.stats(q).Classes[0].Pending)
		time.Sleep(5 * time.Second)
		assert.Equal(t, "a/2slow@1s b/1slow@2s a/2slow@3s a/3@3s", l.take())
		all := raised.ExpectExactly(core.SignalThrottled, core.SignalFree)
		change, _ := core.Throttled.From(all[0])
		assert.Equal(t, core.ClassChange{Coordinator: "durable", Class: "slow", Next: began.Add(time.Second)}, change)
	})
}

// A limit holds over all processes. SetClass counts at once, for all, and also for a process that starts later.
func TestSetClass(t *testing.T) {
	inBubble(t, func(s *shop) {
		l := &log{}
		opts := durable.Options{MaxConcurrency: 9, Classes: []durable.Class{{Name: "few", Limit: 2}}}
		q, other := s.serve(l.sleeps, opts), s.queue(l.sleeps, opts)
		id := s.enqueue(q.Class("few"), "1", "2", "3", "4", "5", "6", "7", "8")[7]
		assert.ElementsMatch(t, split("1 2"), split(l.take())) // they start in one turn
		assert.Equal(t, "class few runs 2 of 2; behind 5 items of its lane and class", s.explain(q, id))
		require.NoError(t, other.SetClass(s.Context(), durable.Class{Name: "few", Limit: 3}))
		s.run(other) // it joins with a limit of 2
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 3, s.stats(q).Running)
		assert.True(t, s.stats(q).Classes[0].Set)
		require.NoError(t, q.ResetClass(s.Context(), "few"))
		time.Sleep(1100 * time.Millisecond)
		assert.Equal(t, 2, s.stats(q).Running)
		time.Sleep(5 * time.Second)
		assert.Equal(t, 8, s.stats(q).Done)
	})
}

// A store that claims nothing ahead, because a class counts, still gives all items that have slots.
func TestClassIsNotAhead(t *testing.T) {
	inBubble(t, func(s *shop) {
		s.store = early{s.store}
		l := &log{}
		began := time.Now()
		q := s.serve(func(_ context.Context, item string) error {
			assert.Less(s, time.Since(began), 200*time.Millisecond) // before the next beat
			l.add(item)
			return nil
		}, durable.Options{MaxConcurrency: 1, Classes: []durable.Class{{Name: "c", Limit: 9}}})
		s.enqueue(q.Class("c"), "1", "2", "3", "4", "5", "6", "7", "8")
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, "1 2 3 4 5 6 7 8", l.take())
	})
}
