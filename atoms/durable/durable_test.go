package durable_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// While items of other keys wait, keys take turns, with up to 4 items each. If none is known, a key has up to 17 items in
// a row, because others may have come, and their wake-up may be lost.
func TestKeysTakeTurns(t *testing.T) {
	for name, c := range map[string]struct {
		late  string // when this one runs, another process adds d/1
		opts  durable.Options
		items []string
		want  string
	}{
		"a slot":        {"b/1", durable.Options{MaxConcurrency: 1}, []string{"a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2", "c/1"}, "a/1 a/2 a/3 a/4 b/1 b/2 c/1 a/5 d/1"},
		"a limit":       {"b/1", durable.Options{MaxCluster: 1}, []string{"a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2", "c/1"}, "a/1 a/2 a/3 a/4 b/1 b/2 c/1 a/5 d/1"},
		"none is known": {"a/1", durable.Options{MaxConcurrency: 2, Poll: time.Hour}, slices.Repeat([]string{"a/1"}, 20), strings.Repeat("a/1 ", 17) + "d/1 a/1 a/1 a/1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *shop) {
				var l log
				added := false
				q := s.queue(func(ctx context.Context, item string) error {
					if item != "d/1" { // of two that start in the same turn, it is logged first
						time.Sleep(time.Nanosecond)
					}
					l.add(item)
					defer time.Sleep(time.Millisecond)
					if item == c.late && !added {
						added = true
						_, err := s.store.Insert(ctx, "durable", []durable.Insert{{Key: "d", Data: []byte(`"d/1"`)}})
						require.NoError(t, err)
					}
					return nil
				}, c.opts)
				s.enqueue(q, c.items...)
				time.Sleep(time.Millisecond)
				s.run(q)
				time.Sleep(time.Second)
				assert.Equal(t, c.want, l.take())
			})
		})
	}
}

func split(words string) []string { return strings.Fields(words) }

// A turn is a commit. A hot key needs one for an item: the end hands the key over, or the same
// turn claims.
func TestHotKeyNeedsFewTurns(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		counted := &counting{Store: s.store}
		s.store = counted
		q := s.queue(l.work, durable.Options{})
		for range 170 {
			s.enqueue(q, "ada/")
		}
		s.run(q)
		require.Equal(t, 170, s.stats(q).Done)
		assert.LessOrEqual(t, counted.turns.Load(), int64(182))
	})
}

func TestRetries(t *testing.T) {
	inBubble(t, func(s *shop) {
		var starts []time.Time
		q := s.serve(func(ctx context.Context, _ string) error {
			starts = append(starts, time.Now())
			assert.Equal(t, len(starts), durable.ClaimFrom(ctx).Attempt)
			return errOnPurpose
		}, durable.Options{MaxAttempts: 6, Backoff: 10 * time.Second, MaxBackoff: time.Minute})
		raised := watch(s, q, "durable.*")
		ids := s.enqueue(q, "a/1", "a/2")
		_, err := q.Cancel(s.Context(), ids[1], "not of interest")
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		varies := false
		for n, most := range []time.Duration{10, 20, 40, 60, 60} {
			d := starts[n+1].Sub(starts[n])
			varies = varies || d > most*time.Second/2+time.Second
			assert.True(t, d >= most*time.Second/2 && d <= most*time.Second+time.Second, "attempt %d after %v", n+2, d)
		}
		assert.True(t, varies, "a part is random")
		assert.Len(t, starts, 6)
		dead := raised.Expect("durable.retried", "durable.retried", "durable.retried", "durable.retried", "durable.retried", "durable.failed")
		item, _ := durable.ItemFailed.From(dead[5])
		assert.Equal(t, "on purpose", item.Err)
		assert.Regexp(t, `^dead \d+m\d+s ago: on purpose$`, s.explain(q, ids[0]))
	})
}

// hopeless is an error of another package that no other attempt can change.
type hopeless struct{ error }

func (hopeless) Permanent() bool { return true }

// What a body returns decides what becomes of its item.
func TestEndsOfBodies(t *testing.T) {
	inBubble(t, func(s *shop) {
		var before sync.Map
		q := s.queue(func(ctx context.Context, item string) error {
			_, again := before.LoadOrStore(item, true)
			switch {
			case item == "permanent":
				return fmt.Errorf("wrapped: %w", durable.Permanent(errOnPurpose))
			case item == "hopeless":
				return fmt.Errorf("wrapped: %w", hopeless{errOnPurpose})
			case again:
				return nil
			case item == "snooze":
				return fmt.Errorf("wrapped: %w", durable.Snooze(time.Hour))
			case item == "panic":
				panic("oh\x00no\xff")
			case item == "slow":
				return sleep(ctx, time.Hour)
			case item == "ignores":
				time.Sleep(time.Minute)
			}
			return nil
		}, durable.Options{Timeout: 10 * time.Second, MaxConcurrency: 10})
		ids := s.enqueue(q, "permanent", "snooze", "panic", "slow", "ignores", "hopeless")
		_, err := s.store.Insert(s.Context(), q.Name(), []durable.Insert{{Key: "ada", Data: []byte("{")}})
		require.NoError(t, err)
		ids = append(ids, ids[5]+1)
		raised := watch(s, q, "durable.*")
		s.run(q)
		assert.Equal(t, "dead ready retry running running dead dead", s.states(q, ids...))
		assert.Equal(t, "is delayed for 1h0m0s", s.explain(q, ids[1]))
		assert.Contains(t, s.explain(q, ids[2]), "ohno")
		assert.Contains(t, s.explain(q, ids[6]), `decode item 7, key "ada", as string: unexpected end of JSON input`)
		raised.Expect(durable.SignalFailed)
		time.Sleep(10 * time.Second)
		assert.Contains(t, s.explain(q, ids[3]), core.ErrTimeout.Error())
		time.Sleep(2 * time.Hour)
		assert.Equal(t, "dead done done done done dead dead", s.states(q, ids...))
		x, err := q.Explain(s.Context(), ids[1])
		require.NoError(t, err)
		assert.Equal(t, 1, x.Item.Attempts, "a snooze is no attempt")
	})
}

// Dead items are listed and tried again; with HaltOnDead their keys wait for that.
func TestDeadLetters(t *testing.T) {
	for _, halt := range []bool{false, true} {
		inBubble(t, func(s *shop) {
			broken := true
			q := s.serve(func(_ context.Context, item string) error {
				if broken && item != "a/3" {
					return errOnPurpose
				}
				return nil
			}, durable.Options{MaxAttempts: 1, HaltOnDead: halt, MaxConcurrency: 4})
			ids := s.enqueue(q, "a/1", "a/2", "a/3")
			assert.Equal(t, map[bool]string{false: "dead dead done", true: "halted blocked blocked"}[halt], s.states(q, ids...))
			list := func(match durable.Query) (found []durable.ItemID) {
				for i, err := range q.Items(s.Context(), match) {
					require.NoError(t, err)
					found = append(found, i.ID)
				}
				return found
			}
			assert.Len(t, list(durable.Query{Dead: true}), map[bool]int{false: 2, true: 1}[halt])
			assert.Equal(t, ids, list(durable.Query{Key: "a"}))
			broken = false
			changed, err := q.Again(s.Context(), ids...)
			require.NoError(t, err)
			assert.Equal(t, map[bool]int{false: 2, true: 1}[halt], changed)
			assert.Equal(t, "done done done", s.states(q, ids...))
			assert.Equal(t, 3, s.stats(q).Done)
			for i, err := range q.Items(s.Context(), durable.Query{Key: "a", Limit: 1}) {
				require.NoError(t, err)
				item, err := q.Decode(i)
				require.NoError(t, err)
				assert.Equal(t, "a/1", item)
			}
		})
	}
}

// An item is cancelled in whatever process it is.
func TestCancel(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		there := s.serve(func(ctx context.Context, item string) error {
			err := sleep(ctx, time.Hour)
			l.add(fmt.Sprint(item, " ", context.Cause(ctx)))
			return err
		}, durable.Options{})
		here := s.queue(l.work, durable.Options{})
		ids := s.enqueue(here, "a/1", "a/2")
		time.Sleep(1500 * time.Millisecond) // between two beats
		for _, id := range []durable.ItemID{ids[1], ids[0]} {
			ok, err := here.Cancel(s.Context(), id, "customer left")
			require.NoError(t, err)
			assert.True(t, ok)
		}
		assert.Equal(t, "running cancelled", s.states(here, ids...))
		assert.Contains(t, s.explain(here, ids[0]), "is to be cancelled: customer left")
		time.Sleep(time.Second)
		assert.Equal(t, "a/1 durable: item 1 of queue \"durable\": core: operation was cancelled: customer left", l.take())
		ok, err := here.Cancel(s.Context(), ids[0], "")
		require.NoError(t, err)
		assert.False(t, ok)
		assert.Equal(t, "cancelled 500ms ago: customer left", s.explain(here, ids[0]))
		assert.EqualValues(t, 1, there.Here().Stats().Cancelled)
		ids = s.enqueue(there, "b/1")
		synctest.Wait()
		_, err = there.Cancel(s.Context(), ids[0], "at once, in its own process")
		require.NoError(t, err)
		assert.Contains(t, l.take(), "b/1")
	})
}

// While the gate is closed nothing is claimed, and Explain says so.
func TestDeferOn(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		sink := signals.NewSink(signals.SinkOptions{})
		q := s.serve(l.work, durable.Options{Name: "orders", Node: "shop-1", Sink: sink, DeferOn: "update.*"})
		release := sink.Hold("update.in-progress", "db", 0)
		ids := s.enqueue(q, "1")
		time.Sleep(time.Hour)
		assert.Equal(t, "shop-1 waits while update.* is present", s.explain(q, ids[0]))
		release()
		assert.Equal(t, "1", l.take())
		sink.Raise("update.began") // ends by its age
		s.enqueue(q, "2")
		time.Sleep(6 * time.Minute)
		assert.Equal(t, "2", l.take())
	})
}

// Lanes: the higher one first, limits of all processes together, and an old item in its turn.
func TestLanes(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		lanes, err := core.ParseLanes("hot, normal:1, slow")
		require.NoError(t, err)
		opts := durable.Options{Lanes: lanes, MaxConcurrency: 3, MaxCluster: 4, Ageing: 3 * time.Second}
		q, other := s.queue(l.sleeps, opts), s.queue(l.sleeps, opts)
		ids := append(s.enqueue(q.Lane("slow"), "slow1"), s.enqueue(q, "normal1", "normal2")...)
		for n := range 20 {
			s.enqueue(q.Lane("hot"), fmt.Sprint("hot", n))
		}
		s.run(q)
		s.run(other)
		assert.ElementsMatch(t, []string{"hot0", "hot1", "hot2", "hot3"}, split(l.take()))
		assert.Equal(t, 4, s.stats(q).Running)
		assert.Contains(t, s.explain(q, ids[0]), "4 of 4 items of the queue run")
		time.Sleep(2 * time.Second)
		assert.NotContains(t, l.take(), "slow")
		time.Sleep(2 * time.Second)
		assert.Contains(t, l.take(), "slow1")
		time.Sleep(5 * time.Second)
		assert.Equal(t, "done done done", s.states(q, ids...))
		_, err = q.Lane("none").Enqueue(s.Context(), "x")
		assert.ErrorIs(t, err, core.ErrUnknownLane)
	})
}

// A deploy takes a lane away. Its items run after all others, and do not stop their keys; Explain,
// Stats and a signal name the lane.
func TestLaneOfNobody(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		before := s.queue(l.sleeps, durable.Options{Lanes: []core.Lane{{Name: "hot"}, {Name: "old"}}})
		ids := append(s.enqueue(before.Lane("old"), "a/1", "b/1"), s.enqueue(before.Lane("hot"), "a/2", "c/1")...)
		q := s.queue(l.sleeps, durable.Options{Lanes: []core.Lane{{Name: "hot"}, {Name: "slow"}}, MaxConcurrency: 1})
		s.enqueue(q.Lane("slow"), "d/1")
		raised := watch(s, q, durable.SignalLaneUnserved)
		s.run(q)
		assert.Equal(t, "c/1", l.take())
		assert.Contains(t, s.explain(q, ids[0]), `no node has lane "old", so it is the lowest`)
		assert.Equal(t, []string{"old"}, s.stats(q).Strays)
		time.Sleep(2 * time.Second)
		assert.Equal(t, "d/1 a/1", l.take())
		time.Sleep(10 * time.Second)
		assert.Equal(t, "done done done done", s.states(q, ids...))
		name, _ := durable.LaneUnserved.From(raised.ExpectExactly(durable.SignalLaneUnserved)[0])
		assert.Equal(t, "old", name)
	})
}

// The type of the items may be an interface or a pointer: a nil item is one, too.
func TestNilItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []any
		saw := func(item any) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, item)
		}
		anys, err := durable.New(durable.Memory(), func(item any) string { saw(item); return "" },
			func(_ context.Context, item any) error { saw(item); return nil }, durable.Options{})
		require.NoError(t, err)
		defer anys.Close()
		pointers, err := durable.New[*int, string](durable.Memory(), nil,
			func(_ context.Context, item *int) error { saw(item); return nil }, durable.Options{})
		require.NoError(t, err)
		defer pointers.Close()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, err = anys.Enqueue(ctx, nil)
		require.NoError(t, err)
		id, err := pointers.Enqueue(ctx, nil)
		require.NoError(t, err)
		go anys.Run(ctx)
		time.Sleep(time.Minute)
		go pointers.Run(ctx)
		time.Sleep(time.Minute)
		x, err := pointers.Explain(ctx, id)
		require.NoError(t, err)
		assert.Equal(t, durable.Done, x.Item.State)
		mu.Lock()
		defer mu.Unlock()
		assert.Equal(t, []any{nil, nil, (*int)(nil)}, got)
	})
}
