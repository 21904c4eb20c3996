package postgres

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// A million parked flows make no call slow: not claims, beats, depths, the first page, nor a signal.
func TestAMillionParkedFlows(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := open(t)
	n := node(t, s, time.Hour, 0)
	turns := func() time.Duration { // for 100 items
		var items []durable.Insert
		for range 100 {
			items = append(items, durable.Insert{Data: []byte("x")})
		}
		_, err := s.Insert(t.Context(), "q", items)
		require.NoError(t, err)
		began := time.Now()
		var ends []durable.End
		for done := 0; done < 100; {
			turned, err := s.Turn(t.Context(), n, ends, durable.Want{Max: 10})
			require.NoError(t, err)
			ends = nil
			for _, i := range turned.Items {
				ends = append(ends, end(i, durable.EndDone)...)
			}
			done += len(turned.Items)
		}
		endAll(t, s, n, ends)
		return time.Since(began)
	}
	most := func() time.Duration { // the shortest of several
		least := time.Hour
		for range 30 {
			least = min(least, turns())
		}
		return least
	}
	turns()
	without := most()
	exec(t, s, `insert into {s}.durable_item (id, queue, key, lane, rank, state, flow, unique_id, enqueued, run_at, started, token, node_name, data)
		select nextval('{s}.durable_item_id'), 'q', 'order ' || n, '', 0, 2, 1, '', now(), now() + interval '1 day' + n * interval '1 ms', now(), n, 'n', 'x' from generate_series(1, 1000000) as n`)
	exec(t, s, `insert into {s}.durable_flow (queue, item, version, class, step, pattern, likes, since, until)
		select 'q', id, 1, '', 'approval', 'approval.*', 'approval.%', now(), run_at from {s}.durable_item where flow = 1`)
	exec(t, s, `insert into {s}.durable_step (queue, item, name, seq, state, compensates, attempt, took, at, signal)
		select 'q', id, 'approval', 1, 1, false, 1, 0, now(), '' from {s}.durable_item where flow = 1`)
	exec(t, s, "vacuum analyze {s}.durable_item, {s}.durable_flow, {s}.durable_step")
	exec(t, s, "checkpoint") // or pages are written whole
	with := most()
	t.Logf("100 items: %v, with the parked flows %v", without, with)
	cost := func(what string, limit time.Duration, call func() error) {
		least := time.Hour
		for range 3 {
			began := time.Now()
			require.NoError(t, call())
			least = min(least, time.Since(began))
		}
		t.Logf("%s: %v", what, least)
		assert.Less(t, least, limit, what)
	}
	cost("depths", 500*time.Millisecond, func() error { _, err := s.Depths(t.Context(), "q"); return err })
	cost("the first page", 500*time.Millisecond, func() error { _, err := s.Items(t.Context(), "q", durable.Query{Limit: 100}); return err })
	cost("a beat", 100*time.Millisecond, func() error { _, err := s.Beat(t.Context(), n, ""); return err })
	cost("a signal", 100*time.Millisecond, func() error {
		_, err := s.Signal(t.Context(), "q", []durable.Signal{{Key: "order 77", Name: "approval.given"}})
		return err
	})
	cost("prune", 500*time.Millisecond, func() error { _, _, err := s.Prune(t.Context(), "q", durable.Keep{}, 100); return err })
	assert.Less(t, with, without*13/10) // 1.1 on a machine that does nothing else
}
