package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/durabletest"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
)

// inTransaction calls fn in a transaction of the file of a new store.
func inTransaction(t *testing.T, fn func(ctx context.Context, tx *sqlitewriter.Tx) error) *Store {
	w, err := sqlitewriter.Open(t.Context(), filepath.Join(t.TempDir(), "work.db"), sqlitewriter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	s, err := Open(t.Context(), w, Options{})
	require.NoError(t, err)
	require.NoError(t, w.Tx(t.Context(), fn))
	return s
}

// What a decision costs does not depend on how many items there are: each statement finds its
// rows by an index, without statistics and with those of other items.
func TestPlans(t *testing.T) {
	for _, analyze := range []string{"", "analyze"} {
		testPlans(t, analyze)
	}
}

func testPlans(t *testing.T, analyze string) {
	inTransaction(t, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		for range 300 {
			newMoment(ctx, tx.Query, "q").insert(durable.Insert{})
		}
		_, err := tx.Exec(ctx, "update durable_item set state = 32, ended = 1; insert into durable_unique (queue, unique_id, item, until) select queue, id, id, 1 from durable_item")
		require.NoError(t, err)
		_, err = tx.Exec(ctx, analyze)
		require.NoError(t, err)
		plans := map[string]string{}
		m := newMoment(ctx, func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
			rows, err := tx.Query(ctx, "explain query plan "+query, args...)
			for err == nil && rows.Next() {
				var none int
				var detail string
				err = rows.Scan(&none, &none, &none, &detail)
				plans[query] += detail + "\n"
			}
			require.NoError(t, err, query)
			require.NoError(t, rows.Close())
			return tx.Query(ctx, query, args...)
		}, "q")
		node := durable.Node{Queue: "q", Name: "n", Lanes: []core.Lane{{Limit: 2}}, MaxCluster: 2}
		m.get(list{&node.ID}, "insert into durable_node (queue, name, expires, node) values ('q', 'n', ?, '{}') returning id", m.in(time.Hour))
		for range 3 {
			m.insert(durable.Insert{Key: "ada", Unique: "u", UniqueFor: time.Hour})
			m.insert(durable.Insert{Key: "ada"})
		}
		n := claimer{id: node.ID}
		m.change("stripe", func(c *class) { c.use(durable.Class{Limit: 2, Rate: core.Rate{PerSecond: 1, Burst: 2}}, m.now) })
		for range 3 {
			m.insert(durable.Insert{Class: "stripe"})
		}
		found, _ := m.claim(node, durable.Want{Max: 5, Aged: time.Second}, m.places())
		claimed := m.take(n, found)
		m.charge()
		ended := m.end([]durable.End{{ID: claimed[0].ID, Token: claimed[0].Token, Kind: durable.EndDone, HandOver: true}}, n).Ends[0]
		require.NotNil(t, ended.Next)
		m.explain(m.find(ended.Next.ID + 1)[ended.Next.ID+1])
		m.flows(t, claimed[1])
		m.free(node.ID, true)
		m.waiting()
		m.explain(m.find(ended.Next.ID)[ended.Next.ID])
		m.stats()
		for query, plan := range plans {
			for _, bad := range []string{"SCAN durable_item", "SCAN i", "SCAN durable_step", "SCAN durable_flow", "SCAN durable_signal", "SCAN s", "TEMP B-TREE", "durable_item_waits", "durable_item_past", "durable_item_lane"} {
				if few := bad == "TEMP B-TREE" && strings.Contains(query, "from durable_node"); !few && (bad != "durable_item_past" || !strings.Contains(query, "i.ended >")) {
					assert.NotContains(t, plan, bad, query)
				}
			}
		}
		return m.err
	})
}

// flows runs the statements of flows.
func (t *moment) flows(test *testing.T, i durable.Item) {
	require.True(test, t.recordAt(durable.Record{ID: i.ID, Token: i.Token, Version: 1, Steps: []durable.Step{{Name: "a", Seq: 1, State: durable.StepDone, Compensates: true}}}))
	for range 3 { // parked twice
		require.False(test, t.signal(durable.Signal{Item: i.ID, Name: "c", UniqueID: "u"}).Woken)
		e := durable.End{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndParked, Version: 1, Park: durable.Park{Step: "b", Seq: 2, Pattern: "x, b*", For: time.Hour}}
		require.Equal(test, durable.OutcomeEnded, t.end([]durable.End{e}, claimer{}).Ends[0].Outcome)
		all := t.find(i.ID)
		t.journal(all[i.ID], true)
		require.NoError(test, t.err)
		i = t.take(claimer{}, []*item{all[i.ID]})[0]
	}
	t.end([]durable.End{{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndParked, Park: durable.Park{Step: "d", Seq: 3, Pattern: "d", For: time.Hour}}}, claimer{})
	require.True(test, t.signal(durable.Signal{Item: i.ID, Name: "d"}).Woken)
	t.signal(durable.Signal{Key: "ada", Name: "b"})
	t.signals("ada", 0, 10)
	require.True(test, t.cancelFlow(t.find(i.ID)[i.ID], "left"))
	t.forget(t.find(i.ID)[i.ID])
	t.pruneFlows(t.pruneItems("delete from durable_item where id = ? returning id, 1", i.ID))
	t.pruneSignals(time.Nanosecond, 10)
	require.NoError(test, t.err)
}

// If the commit fails, it cannot be said whether a change was made. A foreign key that is
// checked at the end makes it fail.
func TestUndecided(t *testing.T) {
	s := inTransaction(t, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		_, err := tx.Exec(ctx, "create table late (parent integer references durable_node (id) deferrable initially deferred) strict")
		return err
	})
	for statement, undecided := range map[string]bool{"insert into late values (7)": true, "insert into late values ('x')": false} {
		err := s.run(t.Context(), "q", statement)
		require.ErrorContains(t, err, "constraint failed")
		require.Equal(t, undecided, errors.Is(err, durable.ErrUndecided), "%v", err)
	}
}

// A file of an older program gets the steps that it lacks, once, and keeps its items. The steps run in the order of their numbers.
func TestNextStep(t *testing.T) {
	schema, err := migrations.ReadFile("migrations/1_schema.sql")
	require.NoError(t, err)
	newer := fstest.MapFS{"migrations/1_schema.sql": {Data: schema}, "migrations/2_colour.sql": {Data: []byte("alter table durable_item add column colour text not null default 'red'")}}
	for n := 3; n < 12; n++ {
		newer[fmt.Sprintf("migrations/%d_next.sql", n)] = &fstest.MapFile{Data: []byte("update durable_item set colour = colour || ' " + fmt.Sprint(n) + "'; create table t" + fmt.Sprint(n) + " (x int)")}
	}
	s := inTransaction(t, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		newMoment(ctx, tx.Query, "q").insert(durable.Insert{Key: "ada"})
		return nil
	})
	for range 2 {
		require.NoError(t, s.w.Tx(t.Context(), migrate(newer)))
	}
	require.NoError(t, s.w.Tx(t.Context(), migrate(migrations)))
	var colour string
	require.NoError(t, s.w.DB().QueryRowContext(t.Context(), "select colour from durable_item where key = 'ada'").Scan(&colour))
	assert.Equal(t, "red 3 4 5 6 7 8 9 10 11", colour)
	_, err = s.Insert(t.Context(), "q", []durable.Insert{{Key: "ada"}})
	require.NoError(t, err)
}

// fillMany adds 200,000 items: most have ended, 200 are in a lane and of a key that are rare.
const fillMany = `
with recursive n (n) as (select 1 union all select n + 1 from n where n < 200000)
insert into durable_item (id, queue, key, lane, rank, state, unique_id, enqueued, run_at, started, ended, token, node_name, err, data)
select n, 'q', case when n % 1000 = 0 then 'rare' when state = 1 then 'hot' when n % 2 = 0 then 'key ' || n else '' end, case when n % 1000 = 1 then 'rare' when n % 1000 = 2 then char(1) || 'stripe' || char(1) || 'slow' when n % 2 = 0 then 'hot' else 'slow' end, 0, state, '', at, at, at,
	iif(state >= 16, at, 0), n, 'n', iif(n % 100000 = 0, 'timeout of carrier', ''), x'00'
from (
	select n, ? + n / 100 * 1000 as at,
		case when n % 1000 = 0 then 32 when n % 20 = 3 then 2 when n % 20 = 4 then 1 when n % 1000 = 5 then 8 when n % 20 = 6 then 64 when n % 1000 = 7 then 16 else 32 end as state
	from n
)`

func TestPagesOfMany(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("EPHEMERAL_LONG=1 runs it")
	}
	s := inTransaction(t, func(ctx context.Context, tx *sqlitewriter.Tx) error {
		_, err := tx.Exec(ctx, fillMany, time.Now().Add(-time.Hour).UnixMicro())
		return err
	})
	durabletest.Pages(t, s, "q")
}
