package postgres

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// The tokens are those of package bucket, but for a microsecond, in which the clock counts.
func TestTokens(t *testing.T) {
	s := open(t)
	for range 30 {
		rate, burst := []float64{1, 3, 0.1, 7.3, 100, 1000, 1e6}[rand.IntN(7)], 1+rand.Int64N(30)
		start := time.UnixMicro(time.Now().UnixMicro())
		meter, sum := bucket.Start(start.UnixNano(), rate, burst), time.Duration(0)
		var full, mark bucket.Mark
		var times []time.Time
		for range 100 {
			sum += time.Duration(rand.ExpFloat64() / rate * 1e9).Truncate(time.Microsecond)
			times = append(times, start.Add(sum))
		}
		rows, err := s.pool.Query(t.Context(), s.sql(`
with recursive takes (n, mark, took) as (
	select 0, -($3::bigint)::double precision, 0
	union all
	select n + 1, case when {s}.durable_tokens_1(come, mark, $3) >= 1 then {s}.durable_take_1(come, mark, $3, 1) else mark end, ({s}.durable_tokens_1(come, mark, $3) >= 1)::int
	from (select n, mark, {s}.durable_come_1($2, $1, ($4::timestamptz[])[n + 1]) as come from takes where n < 100) as t
) select took from takes where n > 0 order by n`), start, rate, burst, times)
		require.NoError(t, err)
		for n := 0; rows.Next(); n++ {
			var took int
			require.NoError(t, rows.Scan(&took))
			at := times[n].UnixNano()
			early, late := mark, mark
			switch {
			case took == 1:
				require.True(t, meter.Take(&late, at+1000, 1), "rate %g, burst %d, take %d at %v", rate, burst, n, times[n])
				meter.Book(&mark, 1, at, at)
			default:
				require.False(t, meter.Take(&early, at-1000, 1), "rate %g, burst %d, take %d at %v", rate, burst, n, times[n])
			}
		}
		require.NoError(t, rows.Err())
		assert.True(t, full.Less(mark))
	}
}

// classed adds a class and items of it to queue "q", and joins a node.
func classed(t *testing.T, s *Store, c durable.Class, items int) durable.Node {
	c.Name = "c"
	require.NoError(t, s.SetClass(t.Context(), "q", c))
	for range items {
		_, err := s.Insert(t.Context(), "q", []durable.Insert{{Class: "c"}})
		require.NoError(t, err)
	}
	n := node(t, s, time.Hour, 0)
	n.Classes = []durable.Class{c} // of which it has not told the store
	return n
}

// Two transactions claim items of a class at the same moment, or after each other. Without the lock of
// the queue or the room of the class, both find room for one. Without its tokens, a rate bounds nothing.
func TestRoomOfAClass(t *testing.T) {
	claims := func(c durable.Class) func(t *testing.T, s *Store) bool {
		return func(t *testing.T, s *Store) bool {
			n := classed(t, s, c, 3)
			var first durable.Turned
			var second []durable.Item
			meanwhile(t, s, func(p *pipeline) { p.turn(n, nil, durable.Want{Max: 1}, false, &first, new(bool)) }, func() { second = claim(t, s, n, 1) })
			return len(first.Items)+len(second) == 1
		}
	}
	rate := durable.Class{Rate: core.Rate{PerSecond: 1e-6, Burst: 1}}
	t.Run("lock", func(t *testing.T) {
		fence(t, "any(p_limits)) or v_counted or", "any(p_limits)) or", claims(durable.Class{Limit: 1}))
	})
	t.Run("limit", func(t *testing.T) {
		fence(t, "case when c.lim > 0 then c.lim - ", "case when c.lim > 0 then c.lim - 0 * ", claims(durable.Class{Limit: 1}))
	})
	t.Run("token", func(t *testing.T) {
		fence(t, "durable_take_1(u.come, c.mark, c.burst, u.n)", "durable_take_1(u.come, c.mark, c.burst, 0)", claims(rate))
	})
	t.Run("hand-over", func(t *testing.T) {
		fence(t, "v_take[v_n] := v_room[v_c] > 0 and", "v_take[v_n] :=", func(t *testing.T, s *Store) bool {
			n := classed(t, s, rate, 0)
			for range 2 {
				_, err := s.Insert(t.Context(), "q", []durable.Insert{{Key: "ada", Class: "c"}})
				require.NoError(t, err)
			}
			ends := end(claim(t, s, n, 1)[0], durable.EndDone)
			ends[0].HandOver = true
			ended := endAll(t, s, n, ends)[0]
			return ended.Next == nil && ended.Promoted
		})
	})
}

// A turn that began before a limit was set may not know it. SetClass waits until it has ended.
func TestSetClassWaitsForTurns(t *testing.T) {
	fence(t, "select from {s}.durable_node where queue = $1 order by id for update", "select $1::text", func(t *testing.T, s *Store) bool {
		n := classed(t, s, durable.Class{}, 1)
		return meanwhile(t, s, func(p *pipeline) { p.turn(n, nil, durable.Want{Max: 1}, false, new(durable.Turned), new(bool)) }, func() {
			assert.NoError(t, s.SetClass(t.Context(), "q", durable.Class{Name: "c", Limit: 1}))
		})
	})
}

// If the clock was ahead for ten years, tokens come in again when it is back.
func TestClockOfAClass(t *testing.T) {
	s := open(t)
	n := classed(t, s, durable.Class{Rate: core.Rate{PerSecond: 1000, Burst: 1}}, 2)
	exec(t, s, "update {s}.durable_class set since = since + interval '3650 days', seen = since + interval '3650 days', mark = 0")
	assert.Empty(t, claim(t, s, n, 2))
	time.Sleep(2 * time.Millisecond)
	assert.Len(t, claim(t, s, n, 2), 1)
}
