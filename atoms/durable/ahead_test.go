package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// While a body runs for long and nothing waits, the process makes no turns: it does not look for items ahead.
func TestNothingToClaimAhead(t *testing.T) {
	inBubble(t, func(s *shop) {
		counted := &counting{Store: s.store}
		s.store = early{counted}
		q := s.serve(func(ctx context.Context, item string) error {
			if item == "long" {
				return sleep(ctx, time.Minute)
			}
			return nil
		}, durable.Options{MaxConcurrency: 1})
		s.enqueue(q, "1", "2", "3", "long")
		time.Sleep(time.Second)
		before := counted.turns.Load()
		time.Sleep(30 * time.Second)
		assert.Equal(t, before, counted.turns.Load())
		s.enqueue(q, "next")
		time.Sleep(30 * time.Second)
		assert.Equal(t, 5, s.stats(q).Done)
	})
}

// early is a store whose nodes claim two items ahead, because a turn takes a millisecond.
type early struct{ durable.Store }

func (early) Ahead(int) int { return 2 }

func (e early) Turn(ctx context.Context, node durable.Node, ends []durable.End, want durable.Want) (durable.Turned, error) {
	time.Sleep(time.Millisecond)
	return e.Store.Turn(ctx, node, ends, want)
}

// While bodies are short, the next items are claimed before a slot is free. If a body takes long,
// they go back after 100 milliseconds, and the attempts do not count. Where limits hold, nothing is
// claimed ahead.
func TestAhead(t *testing.T) {
	for name, c := range map[string]struct {
		opts  durable.Options
		ahead int
	}{"free": {durable.Options{}, 2}, "queue": {durable.Options{MaxCluster: 9}, 0}, "lane": {durable.Options{Lanes: []core.Lane{{Name: "normal", Limit: 9}}}, 0}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(s *shop) {
				s.store = early{s.store}
				c.opts.MaxConcurrency = 1
				free := make(chan struct{})
				q := s.serve(func(_ context.Context, item string) error {
					if item == "long" {
						<-free
					}
					return nil
				}, c.opts)
				s.enqueue(q, "1", "2", "3")
				time.Sleep(10 * time.Millisecond)
				ids, err := q.EnqueueAll(s.Context(), []string{"long", "4", "5", "6"})
				require.NoError(t, err)
				time.Sleep(50 * time.Millisecond)
				assert.Equal(t, 1+c.ahead, s.stats(q).Running)
				if c.ahead > 0 {
					assert.Contains(t, s.explain(q, ids[1]), "is claimed, not started, on ")
					assert.Contains(t, s.explain(q, ids[0]), "runs on ")
				}
				time.Sleep(60 * time.Millisecond)
				assert.Equal(t, "running ready ready ready", s.states(q, ids...))
				x, err := q.Explain(s.Context(), ids[1])
				require.NoError(t, err)
				assert.Zero(t, x.Item.Attempts)
				time.Sleep(800 * time.Millisecond)
				assert.Equal(t, 1, s.stats(q).Running, "for a second, nothing is claimed ahead")
				close(free)
				time.Sleep(time.Second)
				assert.Equal(t, 7, s.stats(q).Done)
			})
		})
	}
}
