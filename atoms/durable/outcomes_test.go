package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// later is an error of a server that says when it can be asked again.
type later time.Duration

func (later) Error() string               { return "later" }
func (l later) RetryAfter() time.Duration { return time.Duration(l) }

// With the defaults, an item that always fails has 25 attempts over days, and the signals say since when it has failed. The
// other side may be away for ten minutes, or for a day.
func TestPatience(t *testing.T) {
	inBubble(t, func(s *shop) {
		var starts []time.Time
		q := s.serve(func(context.Context, string) error {
			starts = append(starts, time.Now())
			return errOnPurpose
		}, durable.Options{Lease: time.Hour, Poll: 20 * time.Minute}) // few heartbeats, so that days pass quickly
		raised := watch(s, q, "durable.*")
		began := time.Now()
		id := s.enqueue(q, "a/1")[0]
		time.Sleep(10 * 24 * time.Hour)
		assert.Equal(t, "dead", s.states(q, id))
		assert.Len(t, starts, 25)
		life := starts[24].Sub(began)
		assert.True(t, life > 4*24*time.Hour && life < 9*24*time.Hour, "it was dead after %v", life)
		names := strings.Split(strings.Repeat("durable.retried ", 24)+"durable.failed", " ")
		for n, raised := range raised.Expect(names...) {
			item, ok := durable.ItemRetried.From(raised)
			if n == 24 {
				item, ok = durable.ItemFailed.From(raised)
			}
			require.True(t, ok)
			assert.Equal(t, starts[0], item.Failing.Round(time.Second), "attempt %d", n+1)
		}
		x, err := q.Explain(s.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, starts[0], x.Item.Failing.Round(time.Second))
		_, err = q.Again(s.Context(), id)
		require.NoError(t, err)
		synctest.Wait()
		x, err = q.Explain(s.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, starts[25], x.Item.Failing.Round(time.Second), "since Again")
	})
}

// The pause is what the error asks for, or what BackoffFunc says, and at most MaxBackoff. A panic is no answer.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		of   func(attempt int, err error) time.Duration
		want [2]time.Duration // after the attempts 1 and 2
	}{
		"asked":           {err: fmt.Errorf("wrapped: %w", later(time.Minute)), want: [2]time.Duration{time.Minute, time.Minute}},
		"asked for long":  {err: later(time.Hour * 24), want: [2]time.Duration{5 * time.Minute, 5 * time.Minute}},
		"asked for 0":     {err: later(0), of: func(int, error) time.Duration { return time.Minute }, want: [2]time.Duration{time.Minute, time.Minute}},
		"asked and own":   {err: later(2 * time.Minute), of: func(int, error) time.Duration { return time.Minute }, want: [2]time.Duration{2 * time.Minute, 2 * time.Minute}},
		"own":             {err: errOnPurpose, of: func(n int, err error) time.Duration { return time.Duration(n*len(err.Error())) * time.Second }, want: [2]time.Duration{10 * time.Second, 20 * time.Second}},
		"own is long":     {err: errOnPurpose, of: func(int, error) time.Duration { return 1 << 62 }, want: [2]time.Duration{5 * time.Minute, 5 * time.Minute}},
		"own is negative": {err: errOnPurpose, of: func(int, error) time.Duration { return -1 }},
		"own panics":      {err: errOnPurpose, of: func(int, error) time.Duration { panic("no") }, want: [2]time.Duration{7 * time.Second, 14 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *shop) {
				var starts []time.Time
				q := s.serve(func(context.Context, string) error {
					if starts = append(starts, time.Now()); len(starts) < 3 {
						return c.err
					}
					return nil
				}, durable.Options{Backoff: 7 * time.Second, MaxBackoff: 5 * time.Minute, BackoffFunc: c.of})
				s.enqueue(q, "a/1")
				time.Sleep(20 * time.Minute)
				require.Len(t, starts, 3)
				for n, want := range c.want {
					got, least := starts[n+1].Sub(starts[n]), want
					if name == "own panics" {
						least = want / 2
					}
					assert.True(t, got >= least && got <= want+time.Second, "%v after attempt %d, want %v", got, n+1, want)
				}
			})
		})
	}
}

// An item whose body returns Cancel is cancelled: it is no dead letter, and its key goes on, also with HaltOnDead. Neither that nor a
// snooze is a failure.
func TestOutcomesThatAreNoFailures(t *testing.T) {
	cancel, snooze := fmt.Errorf("wrapped: %w", durable.Cancel(errOnPurpose)), fmt.Errorf("wrapped: %w", durable.Snooze(time.Hour))
	assert.False(t, guard.Failed(cancel))
	assert.False(t, guard.Failed(snooze))
	assert.True(t, guard.Failed(durable.Permanent(errOnPurpose)))
	assert.True(t, durable.IsSnooze(snooze))
	assert.False(t, durable.IsSnooze(cancel))
	assert.False(t, durable.IsSnooze(nil))
	assert.NoError(t, durable.Cancel(nil))
	assert.ErrorIs(t, cancel, errOnPurpose)
	inBubble(t, func(s *shop) {
		q := s.serve(func(_ context.Context, item string) error {
			if item == "a/1" {
				return cancel
			}
			return nil
		}, durable.Options{HaltOnDead: true})
		raised := watch(s, q, "durable.*")
		ids := s.enqueue(q, "a/1", "a/2")
		assert.Equal(t, "cancelled done", s.states(q, ids...))
		item, _ := durable.ItemCancelled.From(raised.Expect(durable.SignalCancelled)[0])
		assert.Equal(t, "wrapped: on purpose", item.Err)
		assert.Zero(t, item.Failing)
		assert.Regexp(t, "^cancelled .* ago: wrapped: on purpose$", s.explain(q, ids[0]))
	})
}

// A dead letter says what it is, in its signal and on pages, if Show says it.
func TestShow(t *testing.T) {
	inBubble(t, func(s *shop) {
		work := func(context.Context, string) error { return durable.Permanent(errors.New("no")) }
		q := s.serve(work, durable.Options{Show: func(item any) string {
			if item == "panics" {
				panic("no")
			}
			return "the item " + item.(string)
		}})
		raised := watch(s, q, "durable.*")
		ids := s.enqueue(q, "a/1", "panics")
		synctest.Wait()
		texts := map[durable.ItemID]string{}
		for _, raised := range raised.Expect(durable.SignalFailed, durable.SignalFailed) {
			item, _ := durable.ItemFailed.From(raised)
			texts[item.ID] = item.Text
		}
		assert.Equal(t, map[durable.ItemID]string{ids[0]: "the item a/1", ids[1]: ""}, texts)
		_, err := s.store.Insert(s.Context(), q.Name(), []durable.Insert{{Key: "broken", Data: []byte("{")}})
		require.NoError(t, err)
		page, err := q.Inspect().Items(s.Context(), inspect.ItemQuery{Limit: 10})
		require.NoError(t, err)
		var shown []string
		for _, i := range page.Items {
			shown = append(shown, i.Text)
		}
		assert.ElementsMatch(t, []string{"the item a/1", "", ""}, shown)
		detail, ok, err := q.Inspect().Item(s.Context(), int64(ids[0]))
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, "the item a/1", detail.Text)
	})
}
