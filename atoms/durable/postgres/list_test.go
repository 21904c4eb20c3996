package postgres

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// fillMany adds a million items: most have ended, 1,000 are in a lane and of a key that are rare.
const fillMany = `
insert into {s}.durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, token, node_name, err, data)
select n, 'q', case when n % 1000 = 0 then 'rare' when state = 1 then 'hot' when n % 2 = 0 then 'key ' || n else '' end, case when n % 1000 = 1 then 'rare' when n % 1000 = 2 then chr(1) || 'stripe' || chr(1) || 'slow' when n % 2 = 0 then 'hot' else 'slow' end, 0, state, '', at, at, at,
	case when state >= 16 then at end, n, 'n', case when n % 100000 = 0 then 'timeout of carrier' else '' end, 'x'
from (
	select n, now() - interval '1 hour' + n / 100 * interval '1 ms' as at,
		case when n % 1000 = 0 then 32 when n % 20 = 3 then 2 when n % 20 = 4 then 1 when n % 1000 = 5 then 8 when n % 20 = 6 then 64 when n % 1000 = 7 then 16 else 32 end as state
	from generate_series(1, 1000000) as n
) as all_of_them`

// A page costs the same wherever it is, also for what is rare among a million items.
func TestPagesOfAMillion(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := open(t)
	require.NoError(t, s.buildOnce(t.Context()))
	exec(t, s, fillMany)
	exec(t, s, "vacuum analyze {s}.durable_item")
	for _, c := range []struct {
		name  string
		q     durable.Query
		items int
	}{
		{"all", durable.Query{}, 1000000}, {"done", durable.Query{State: durable.Done}, 847000}, {"dead and halted", durable.Query{State: durable.Dead | durable.Halted}, 51000},
		{"waiting", durable.Query{State: durable.Ready}, 50000}, {"retrying", durable.Query{State: durable.Retry}, 1000}, {"blocked", durable.Query{State: durable.Blocked}, 50000},
		{"delayed", durable.Query{State: durable.Ready | durable.Retry, Delayed: true}, 0}, {"a rare lane", durable.Query{Lane: "rare"}, 1000}, {"a class", durable.Query{Class: "stripe"}, 1000}, {"a lane", durable.Query{Lane: "hot"}, 499000},
		{"dead of a lane", durable.Query{Lane: "hot", State: durable.Dead}, 50000}, {"a key", durable.Query{Key: "rare"}, 1000}, {"a hot key", durable.Query{Key: "hot"}, 50000}, {"no key", durable.Query{Key: "none"}, 0},
		{"an error", durable.Query{Err: "carrier"}, 10},
	} {
		var took []time.Duration
		items := 0
		for c.q.Limit = 100; ; {
			began := time.Now()
			page, err := s.Items(t.Context(), "q", c.q)
			took = append(took, time.Since(began))
			require.NoError(t, err)
			items += len(page.Items)
			if c.q.After = page.Next; page.Next == "" || len(took) == 300 && c.q.Err == "" {
				break
			}
		}
		if len(took) < 300 {
			assert.Equal(t, c.items, items, c.name)
		}
		slices.Sort(took)
		t.Logf("%s: %d pages, median %v, nine of ten in %v, slowest %v", c.name, len(took), took[len(took)/2], took[len(took)*9/10], took[len(took)-1])
		if c.q.Err == "" { // which looks at 10,000 items
			assert.Less(t, took[len(took)/2], 60*time.Millisecond, c.name) // 20 ms on a machine that does nothing else; a scan takes much longer
		}
	}
}
