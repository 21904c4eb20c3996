package durable_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// together is a store that takes several beats at once, and counts transactions.
type together struct {
	counting
	calls atomic.Int64
}

func (s *together) Beats(ctx context.Context, all []durable.Beating) ([]durable.Beaten, error) {
	s.calls.Add(1)
	time.Sleep(time.Millisecond)
	done := make([]durable.Beaten, len(all))
	for n, b := range all {
		done[n], _ = s.Beat(ctx, b.Node, b.Note)
	}
	return done, nil
}

// Queues of one store in one process share their beats, and an idle queue does nothing else.
func TestIdleQueues(t *testing.T) {
	inBubble(t, func(s *shop) {
		store := &together{counting: counting{Store: s.store}}
		s.store = store
		var l log
		for n := range 100 {
			s.serve(l.work, durable.Options{Name: fmt.Sprint("queue ", n)})
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		before, turns := store.calls.Load(), store.turns.Load()
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, store.calls.Load()-before, int64(30))
		assert.Zero(t, store.turns.Load()-turns)
		s.enqueue(s.queues[7], "a")
		assert.Equal(t, "a", l.take())
	})
}
