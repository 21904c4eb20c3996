package postgres

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
)

// fence runs a test of two transactions that meet, on a store as it is, where holds must
// return true, and on one whose statements lack a part, where it must return false.
func fence(t *testing.T, part, without string, holds func(t *testing.T, s *Store) bool) {
	t.Run("with", func(t *testing.T) { assert.True(t, holds(t, open(t))) })
	t.Run("without", func(t *testing.T) {
		s, cut := open(t), false
		s.edit = func(sql string) string {
			cut = cut || strings.Contains(sql, part)
			return strings.ReplaceAll(sql, part, without)
		}
		for _, text := range Migrations(s.opts.Schema) { // functions have statements, too
			if at := strings.Index(text, "create function"); at >= 0 {
				text = strings.ReplaceAll(text[at:], s.in, "{s}")
				exec(t, s, strings.ReplaceAll(text, "create function", "create or replace function"))
			}
		}
		assert.False(t, holds(t, s))
		assert.True(t, cut, "no statement has %q", part)
	})
}

// nodeLanes are those of a queue without lanes.
var nodeLanes = []core.Lane{{}}

// node is what a node of queue "q" says, joined with a lease.
func node(t *testing.T, s *Store, lease time.Duration, cluster int) durable.Node {
	n := durable.Node{Queue: "q", Name: "n", Lease: lease, MaxCluster: cluster, Lanes: nodeLanes}
	var err error
	n.ID, err = s.Join(t.Context(), n)
	require.NoError(t, err)
	return n
}

// expire ends the lease of a node.
func expire(t *testing.T, s *Store, n durable.Node) {
	exec(t, s, "update {s}.durable_node set expires = now() - interval '1 second' where id = $1", n.ID)
}

func insert(t *testing.T, s *Store, keys ...string) {
	var items []durable.Insert
	for _, key := range keys {
		items = append(items, durable.Insert{Key: key, Data: []byte("1")})
	}
	_, err := s.Insert(t.Context(), "q", items)
	require.NoError(t, err)
}

func claim(t testing.TB, s *Store, n durable.Node, most int) []durable.Item {
	turned, err := s.Turn(t.Context(), n, nil, durable.Want{Max: most})
	require.NoError(t, err)
	return turned.Items
}

// endAll ends claims and claims nothing.
func endAll(t testing.TB, s *Store, n durable.Node, ends []durable.End) []durable.Ended {
	turned, err := s.Turn(context.Background(), n, ends, durable.Want{})
	require.NoError(t, err)
	return turned.Ends
}

// meanwhile runs first in a transaction, and second beside it. The transaction is committed
// when second waits for it, which is returned, or has ended.
func meanwhile(t *testing.T, s *Store, first func(p *pipeline), second func()) (waited bool) {
	t.Helper()
	tx, err := s.pool.Begin(context.Background())
	require.NoError(t, err)
	defer tx.Rollback(context.Background())
	require.NoError(t, s.within(context.Background(), tx, first))
	ended := make(chan struct{})
	go func() { defer close(ended); second() }()
	waited = untilBlocked(t, s, tx, ended)
	require.NoError(t, tx.Commit(context.Background()))
	<-ended
	return waited
}

// untilBlocked asks the server until another session waits for tx, or ended is closed.
func untilBlocked(t *testing.T, s *Store, tx pgx.Tx, ended <-chan struct{}) (blocked bool) {
	t.Helper()
	for !blocked {
		select {
		case <-ended:
			return false
		default:
		}
		const sql = "select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))"
		require.NoError(t, s.pool.QueryRow(context.Background(), sql, int32(tx.Conn().PgConn().PID())).Scan(&blocked))
	}
	return true
}

func end(item durable.Item, kind durable.EndKind) []durable.End {
	return []durable.End{{ID: item.ID, Key: item.Key, Token: item.Token, Kind: kind}}
}

// While the head of a key leaves, another transaction adds an item for the key. Without the
// lock of the key it is blocked by a head that is gone, for ever.
func TestLockOfTheKey(t *testing.T) {
	fence(t, "pg_catalog.pg_try_advisory_xact_lock(h)", "(h = h)", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 0)
		insert(t, s, "ada")
		head := claim(t, s, n, 1)[0]
		meanwhile(t, s, func(p *pipeline) {
			p.turn(n, end(head, durable.EndDone), durable.Want{}, false, new(durable.Turned), new(bool))
		}, func() { insert(t, s, "ada") })
		return len(claim(t, s, n, 1)) == 1
	})
}

// Two queues of one name, in two schemas, do not wait for each other.
func TestLocksBelongToASchema(t *testing.T) {
	fence(t, "'{s}' || ", "", func(t *testing.T, s *Store) bool {
		other := open(t)
		other.edit = s.edit
		item := []durable.Insert{{Key: "ada", Unique: "order 1", Data: []byte("1")}}
		n, m := node(t, s, time.Hour, 1), node(t, other, time.Hour, 1)
		locks := meanwhile(t, s, func(p *pipeline) { p.insert("q", item, new([]durable.Inserted)) }, func() {
			_, err := other.Insert(t.Context(), "q", item)
			assert.NoError(t, err)
		})
		turns := meanwhile(t, s, func(p *pipeline) {
			p.turn(n, nil, durable.Want{Max: 1}, false, new(durable.Turned), new(bool))
		}, func() { assert.Len(t, claim(t, other, m, 1), 1) })
		return !locks && !turns
	})
}

// Two transactions count what runs at the same moment. Without the lock of the queue both
// find room for one.
func TestLockOfTheQueue(t *testing.T) {
	fence(t, "pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{s}' || p_queue, 2))", "1", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 1)
		insert(t, s, "", "")
		var first durable.Turned
		var second []durable.Item
		meanwhile(t, s, func(p *pipeline) { p.turn(n, nil, durable.Want{Max: 1}, false, &first, new(bool)) }, func() { second = claim(t, s, n, 1) })
		return len(first.Items)+len(second) == 1
	})
}

// A turn reads what is paused, and then waits for the lock of a key. Pause returns meanwhile, or SetClass, and the turn must not go by the state before.
func TestPauseMeetsTurn(t *testing.T) {
	holds := func(claims int, change func(s *Store) error) func(t *testing.T, s *Store) bool {
		return func(t *testing.T, s *Store) bool {
			n := classed(t, s, durable.Class{}, 0)
			insert(t, s, "ada", "ada")
			ends := end(claim(t, s, n, 1)[0], durable.EndDone)
			ends[0].Patience, ends[0].HandOver = time.Hour, true
			insert(t, s, "bob")
			for range 2 {
				_, err := s.Insert(t.Context(), "q", []durable.Insert{{Class: "c"}})
				require.NoError(t, err)
			}
			tx, err := s.pool.Begin(t.Context())
			require.NoError(t, err)
			defer tx.Rollback(context.Background())
			require.NoError(t, s.within(t.Context(), tx, func(p *pipeline) { p.lockKeys("q", []string{"ada"}) }))
			var turned durable.Turned
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				turned, err = s.Turn(context.Background(), n, ends, durable.Want{Max: 10})
			}()
			require.True(t, untilBlocked(t, s, tx, ended))
			changed := change(s)
			require.NoError(t, tx.Commit(t.Context()))
			<-ended
			require.NoError(t, err)
			require.NoError(t, changed)
			require.Equal(t, durable.OutcomeEnded, turned.Ends[0].Outcome)
			if turned.Ends[0].Next != nil {
				turned.Items = append(turned.Items, *turned.Ends[0].Next)
			}
			return len(turned.Items) == claims
		}
	}
	pause := func(p durable.Pause) func(s *Store) error {
		return func(s *Store) error { return s.Pause(context.Background(), "q", p, true) }
	}
	const read, without = "v_held := coalesce((select q.pauses", "v_held := v_held and coalesce((select q.pauses"
	t.Run("queue", func(t *testing.T) { fence(t, read, without, holds(0, pause(durable.Pause{}))) })
	t.Run("key", func(t *testing.T) { fence(t, read, without, holds(3, pause(durable.Pause{Key: "bob"}))) })
	t.Run("key of a hand-over", func(t *testing.T) { fence(t, read, without, holds(3, pause(durable.Pause{Key: "ada"}))) })
	t.Run("class", func(t *testing.T) {
		fence(t, "where v_held and p.queue", "where false and p.queue", holds(2, pause(durable.Pause{Class: "c"})))
	})
	t.Run("limit", func(t *testing.T) {
		fence(t, "c.name = any(v_free) and (c.lim", "false and (c.lim", holds(2, func(s *Store) error { return s.SetClass(context.Background(), "q", durable.Class{Name: "c", Limit: 1}) }))
	})
}

// Prune sees that nothing is paused any more, and then waits for a Pause, whose transaction has begun before.
func TestPauseMeetsPrune(t *testing.T) {
	fence(t, " and u.ctid = q.place", "", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 0)
		for _, on := range []bool{true, false} {
			require.NoError(t, s.Pause(t.Context(), "q", durable.Pause{Key: "ada"}, on))
		}
		meanwhile(t, s, func(p *pipeline) { p.pause("q", durable.Pause{Key: "ada"}, true) }, func() {
			_, _, err := s.Prune(t.Context(), "q", durable.Keep{}, 10)
			require.NoError(t, err)
		})
		insert(t, s, "ada")
		return len(claim(t, s, n, 1)) == 0
	})
}

// A node that was thought dead ends an item that another one runs by now.
func TestTokenOfTheEnd(t *testing.T) {
	fence(t, "current = token", "true", func(t *testing.T, s *Store) bool {
		late, other := node(t, s, time.Hour, 0), node(t, s, time.Hour, 0)
		insert(t, s, "ada")
		mine := claim(t, s, late, 1)[0]
		expire(t, s, late)
		_, err := s.Beat(t.Context(), other, "")
		require.NoError(t, err)
		theirs := claim(t, s, other, 1)[0]
		require.Greater(t, theirs.Token, mine.Token)
		endAll(t, s, late, end(mine, durable.EndRetry))
		return endAll(t, s, other, end(theirs, durable.EndDone))[0].Outcome == durable.OutcomeEnded
	})
}

// A node whose lease is over claims nothing, also if nobody has ended it yet.
func TestLeaseOfTheNode(t *testing.T) {
	fence(t, "n.id = p_node and n.expires > ", "n.id = p_node and 'infinity'::timestamptz > ", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 0)
		insert(t, s, "ada")
		expire(t, s, n)
		_, err := s.Turn(t.Context(), n, nil, durable.Want{Max: 1})
		return err == durable.ErrLeaseLost
	})
}

// Two transactions give out the same item. Without SKIP LOCKED the second waits for the first.
func TestClaimsDoNotWait(t *testing.T) {
	fence(t, "limit v_k for update skip locked", "limit v_k for update", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 0)
		insert(t, s, "", "")
		var first durable.Turned
		var second []durable.Item
		waited := meanwhile(t, s, func(p *pipeline) { p.turn(n, nil, durable.Want{Max: 1}, false, &first, new(bool)) }, func() { second = claim(t, s, n, 1) })
		return len(second) == 1 && second[0].ID != first.Items[0].ID && !waited
	})
}

// A process stops while a transaction of its own that has called Finish is open, and loses its
// lease. Without SKIP LOCKED the beats of all others wait for that transaction, and they lose theirs.
func TestBeatsDoNotWait(t *testing.T) {
	fence(t, "order by i.id for update skip locked", "order by i.id for update", func(t *testing.T, s *Store) bool {
		stopped, other := node(t, s, time.Hour, 0), node(t, s, time.Hour, 0)
		insert(t, s, "ada", "bob")
		mine := claim(t, s, stopped, 2)
		expire(t, s, stopped)
		tx, err := s.pool.Begin(t.Context())
		require.NoError(t, err)
		defer tx.Rollback(context.Background())
		require.NoError(t, s.within(t.Context(), tx, func(p *pipeline) {
			p.turn(stopped, end(mine[0], durable.EndDone), durable.Want{}, true, new(durable.Turned), new(bool))
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		beaten, err := s.Beat(ctx, other, "")
		if err != nil {
			return false
		}
		free := claim(t, s, other, 2)
		require.NoError(t, tx.Rollback(t.Context()))
		_, err = s.Beat(t.Context(), other, "")
		require.NoError(t, err)
		return len(beaten.Lost) == 1 && len(free) == 1 && len(claim(t, s, other, 2)) == 1 // bob's at once, ada's at the next beat
	})
}

// flowing claims an item of a key for a node, and writes a step of it.
func flowing(t *testing.T, s *Store, n durable.Node, key string) durable.Item {
	insert(t, s, key)
	i := claim(t, s, n, 1)[0]
	require.True(t, record(t, s, i, "first"))
	return i
}

func record(t *testing.T, s *Store, i durable.Item, name string) bool {
	current, err := s.Record(t.Context(), "q", []durable.Record{recordOf(i, name)})
	require.NoError(t, err)
	return current[0]
}

func recordOf(i durable.Item, name string) durable.Record {
	return durable.Record{ID: i.ID, Token: i.Token, Steps: []durable.Step{{Name: name, Seq: 1, State: durable.StepDone, Compensates: true, Data: []byte("1")}}}
}

func parks(i durable.Item) []durable.End {
	ends := end(i, durable.EndParked)
	ends[0].Park = durable.Park{Step: "wait", Seq: 2, Pattern: "go", For: time.Hour}
	return ends
}

func journal(t *testing.T, s *Store, id durable.ItemID) (durable.Journal, string) {
	j, ok, err := s.Journal(t.Context(), "q", id, true)
	require.NoError(t, err)
	require.True(t, ok)
	names := ""
	for _, step := range j.Steps {
		names += step.Name + " "
	}
	return j, names
}

func signal(t *testing.T, s *Store, key string) durable.Signalled {
	done, err := s.Signal(t.Context(), "q", []durable.Signal{{Key: key, Name: "go"}})
	require.NoError(t, err)
	return done[0]
}

// outlived returns the claim of a process that was thought dead, and that of the process which runs the item by now.
func outlived(t *testing.T, s *Store) (late, other durable.Node, mine, theirs durable.Item) {
	late, other = node(t, s, time.Hour, 0), node(t, s, time.Hour, 0)
	mine = flowing(t, s, late, "ada")
	expire(t, s, late)
	_, err := s.Beat(t.Context(), other, "")
	require.NoError(t, err)
	return late, other, mine, claim(t, s, other, 1)[0]
}

// A process that was thought dead writes a step of an item that another one runs by now.
func TestTokenOfTheRecord(t *testing.T) {
	fence(t, "i.token = r.token", "true", func(t *testing.T, s *Store) bool {
		_, _, mine, theirs := outlived(t, s)
		current := record(t, s, mine, "late")
		_, names := journal(t, s, theirs.ID)
		return !current && names == "first "
	})
}

// A process loses its item while it writes a step. Without the lock of the item, the next process may read the steps before, and run that step again.
func TestLockOfTheRecord(t *testing.T) {
	fence(t, "as r (id bigint))) order by i.id for no key update", "as r (id bigint)))", func(t *testing.T, s *Store) bool {
		late, other := node(t, s, time.Hour, 0), node(t, s, time.Hour, 0)
		mine := flowing(t, s, late, "ada")
		expire(t, s, late)
		names, claimed := "", 0
		var current []bool
		meanwhile(t, s, func(p *pipeline) { p.record("q", []durable.Record{recordOf(mine, "second")}, &current) }, func() {
			_, err := s.Beat(context.Background(), other, "")
			require.NoError(t, err)
			claimed = len(claim(t, s, other, 1))
			_, names = journal(t, s, mine.ID)
		})
		require.Equal(t, []bool{true}, current)
		return claimed == 0 || names == "first second "
	})
}

// A process that was thought dead parks an item, or ends it, so that it is to be undone, while another one runs it.
func TestTokenOfFlowEnds(t *testing.T) {
	fence(t, "where current = token and state = 4 and kind > 1", "where kind > 1", func(t *testing.T, s *Store) bool {
		late, other, mine, theirs := outlived(t, s)
		for _, ends := range [][]durable.End{parks(mine), end(mine, durable.EndDead), end(mine, durable.EndHalfUndone)} {
			if endAll(t, s, late, ends)[0].Outcome != durable.OutcomeFenced {
				return false
			}
		}
		j, names := journal(t, s, mine.ID)
		return j.Undo == 0 && names == "first " && endAll(t, s, other, end(theirs, durable.EndDone))[0].Outcome == durable.OutcomeEnded
	})
}

// A signal comes while a flow parks. Without the lock of the key neither sees the other, and the flow waits for ever.
func TestSignalMeetsPark(t *testing.T) {
	fence(t, "from pg_catalog.unnest(p_keys) as key union all select i.key", "from pg_catalog.unnest('{}'::text[]) as key union all select i.key", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 0)
		mine := flowing(t, s, n, "ada")
		woken := false
		meanwhile(t, s, func(p *pipeline) {
			p.turn(n, parks(mine), durable.Want{}, false, new(durable.Turned), new(bool))
		}, func() { woken = signal(t, s, "ada").Woken })
		return woken && len(claim(t, s, n, 1)) == 1
	})
}

// A flow parks while a transaction that has sent a signal is open: its end waits, and then takes the signal.
func TestParkMeetsSignal(t *testing.T) {
	s := open(t)
	n := node(t, s, time.Hour, 0)
	for _, key := range []string{"ada", ""} {
		mine := flowing(t, s, n, key)
		to := []durable.Signal{{Key: key, Name: "go"}}
		if key == "" {
			to[0].Item = mine.ID
		}
		var done []durable.Signalled
		var wrong error
		meanwhile(t, s, func(p *pipeline) { p.signal("q", to, &done, &wrong) }, func() {
			assert.Equal(t, durable.OutcomeBusy, endAll(t, s, n, parks(mine))[0].Outcome)
		})
		require.NoError(t, wrong)
		assert.Equal(t, durable.Ended{Outcome: durable.OutcomeEnded, State: durable.Ready}, endAll(t, s, n, parks(mine))[0])
		j, _ := journal(t, s, mine.ID)
		assert.Nil(t, j.Wait)
		assert.Equal(t, "go", j.Steps[1].Signal)
		again := claim(t, s, n, 1)
		require.Len(t, again, 1)
		endAll(t, s, n, end(again[0], durable.EndDone))
	}
}

// A signal comes when the deadline has passed, and when the flow is claimed at that moment: the flow is late, and the signal is not taken.
func TestSignalMeetsDeadline(t *testing.T) {
	fence(t, "f.until > v_now", "true", func(t *testing.T, s *Store) bool {
		n := node(t, s, time.Hour, 0)
		ends := parks(flowing(t, s, n, "ada"))
		ends[0].Park.For = 0
		endAll(t, s, n, ends)
		before := signal(t, s, "ada").Woken
		var turned durable.Turned
		meanwhile(t, s, func(p *pipeline) { p.turn(n, nil, durable.Want{Max: 1}, false, &turned, new(bool)) }, func() { before = signal(t, s, "ada").Woken || before })
		require.Len(t, turned.Items, 1)
		j, _ := journal(t, s, turned.Items[0].ID)
		return !before && j.Steps[1].State == durable.StepBegun && !j.Steps[1].Until.After(j.Time)
	})
}
