package postgres

import (
	"os"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
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

func TestPagesOfAMillion(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := open(t)
	exec(t, s, "alter table {s}.durable_item set unlogged") // which is faster to fill
	exec(t, s, fillMany)
	exec(t, s, "vacuum analyze {s}.durable_item")
	durabletest.Pages(t, s, "q")
}
