package sqlite

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// The tokens are those of package bucket, but for a microsecond, in which the clock counts.
func TestTokens(t *testing.T) {
	for range 300 {
		c := &class{}
		now := time.Now().UnixMicro()
		rate := core.Rate{PerSecond: []float64{1, 3, 0.1, 7.3, 100, 1000, 1e6}[rand.IntN(7)], Burst: 1 + rand.IntN(30)}
		c.use(durable.Class{Rate: rate}, now)
		meter := bucket.Start(now*1000, rate.PerSecond, int64(rate.Burst))
		var mark bucket.Mark
		for n := range 100 {
			now += int64(rand.ExpFloat64() / rate.PerSecond * 1e6)
			tried, wait := mark, c.until(calls, 1, now)
			if c.room(now) > 0 {
				require.True(t, meter.Take(&tried, now*1000+1000, 1), "%+v, take %d", rate, n)
				meter.Book(&mark, 1, now*1000, now*1000)
				c.take(calls, 1, now)
			} else {
				require.False(t, meter.Take(&tried, now*1000-1000, 1), "%+v, take %d", rate, n)
				require.InDelta(t, meter.Due(mark, 1, now*1000)-now*1000, wait, 2000)
			}
			if n == 50 { // as a Meter that goes on
				rate = core.Rate{PerSecond: rate.PerSecond * 2, Burst: max(1, rate.Burst/2)}
				c.use(durable.Class{Rate: rate}, now)
				meter.SetRate(now*1000, rate.PerSecond)
				meter.SetBurst(now*1000, int64(rate.Burst))
			}
		}
	}
}

// If the clock was ahead for ten years, tokens come in again when it is back.
func TestClockOfAClass(t *testing.T) {
	s := inTransaction(t, func(context.Context, *sqlitewriter.Tx) error { return nil })
	require.NoError(t, s.SetClass(t.Context(), "q", durable.Class{Name: "c", Rate: core.Rate{PerSecond: 1000, Burst: 1}}))
	_, err := s.Insert(t.Context(), "q", []durable.Insert{{Class: "c"}, {Class: "c"}})
	require.NoError(t, err)
	n := durable.Node{Queue: "q", Lease: time.Hour, Lanes: []core.Lane{{}}, Classes: []durable.Class{{}}}
	n.ID, err = s.Join(t.Context(), durable.Node{Queue: "q", Lease: time.Hour, Lanes: n.Lanes})
	require.NoError(t, err)
	require.NoError(t, s.run(t.Context(), "q", "update durable_class set since = since + 1e6 * 86400 * 3650, seen = since + 1e6 * 86400 * 3650, mark = 0"))
	claimed := func() int {
		turned, err := s.Turn(t.Context(), n, nil, durable.Want{Max: 2})
		require.NoError(t, err)
		return len(turned.Items)
	}
	assert.Zero(t, claimed())
	time.Sleep(2 * time.Millisecond)
	assert.Equal(t, 1, claimed())
}
