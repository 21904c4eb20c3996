package sqlite

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
)

// fillMany adds a million items: most have ended, 1,000 are in a lane and of a key that are rare.
const fillMany = `
with recursive n (n) as (select 1 union all select n + 1 from n where n < 1000000)
insert into durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, token, node_name, err, data)
select n, 'q', case when n % 1000 = 0 then 'rare' when state = 1 then 'hot' when n % 2 = 0 then 'key ' || n else '' end, case when n % 1000 = 1 then 'rare' when n % 1000 = 2 then char(1) || 'stripe' || char(1) || 'slow' when n % 2 = 0 then 'hot' else 'slow' end, 0, state, '', at, at, at,
	iif(state >= 16, at, 0), n, 'n', iif(n % 100000 = 0, 'timeout of carrier', ''), x'00'
from (
	select n, ? + n / 100 * 1000 as at,
		case when n % 1000 = 0 then 32 when n % 20 = 3 then 2 when n % 20 = 4 then 1 when n % 1000 = 5 then 8 when n % 20 = 6 then 64 when n % 1000 = 7 then 16 else 32 end as state
	from n
)`

func TestPagesOfAMillion(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := inTransaction(t, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		_, err := tx.Exec(ctx, fillMany, time.Now().Add(-time.Hour).UnixMicro())
		return err
	})
	durabletest.Pages(t, s, "q")
}
