package durable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// Items of a key run one at a time, in order; others beside them. Items are there before
// anybody serves the queue.
func TestOrderOfKeys(t *testing.T) {
	inBubble(t, func(s *shop) {
		var l log
		q := s.queue(l.sleeps, durable.Options{MaxConcurrency: 3})
		ids := s.enqueue(q, "ada/1", "ada/2", "bob/1", "x", "y")
		assert.Equal(t, "ready blocked ready ready ready", s.states(q, ids...))
		s.run(q)
		assert.ElementsMatch(t, []string{"ada/1", "bob/1", "x"}, split(l.take()))
		time.Sleep(time.Second)
		assert.ElementsMatch(t, []string{"ada/2", "y"}, split(l.take()))
		time.Sleep(time.Second)
		assert.Equal(t, "done done done done done", s.states(q, ids...))
		s.enqueue(q, "late")
		assert.Equal(t, "late", l.take(), "an Enqueue wakes up this process")
	})
}

func split(words string) []string { return strings.Fields(words) }

func TestRetries(t *testing.T) {
	inBubble(t, func(s *shop) {
		var starts []time.Time
		q := s.serve(func(ctx context.Context, _ string) error {
			starts = append(starts, time.Now())
			assert.Equal(t, len(starts), durable.ClaimFrom(ctx).Attempt)
			return errOnPurpose
		}, durable.Options{MaxAttempts: 6, Backoff: 10 * time.Second, MaxBackoff: time.Minute})
		signals := watch(s, q, "durable.*")
		ids := s.enqueue(q, "a/1", "a/2")
		_, err := q.Cancel(s.Context(), ids[1], "not of interest")
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		for n, most := range []time.Duration{10, 20, 40, 60, 60} {
			d := starts[n+1].Sub(starts[n])
			assert.True(t, d >= most*time.Second/2 && d <= most*time.Second+time.Second, "attempt %d after %v", n+2, d)
		}
		assert.Len(t, starts, 6)
		dead := signals.Expect("durable.retried", "durable.retried", "durable.retried", "durable.retried", "durable.retried", "durable.dead")
		item, _ := durable.ItemDead.From(dead[5])
		assert.Equal(t, "on purpose", item.Err)
		assert.Regexp(t, `^dead \d+m\d+s ago: on purpose$`, s.explain(q, ids[0]))
	})
}
