package sqlite_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// must is for child processes.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

func openChild(dir string) *sqlite.Store {
	w := must(sqlitewriter.Open(context.Background(), filepath.Join(dir, "work.db"), sqlitewriter.Options{}))
	return must(sqlite.Open(context.Background(), w, sqlite.Options{}))
}

// What was acknowledged survives SIGKILL: inserted items are there, ended items are done, no
// token is used twice, and the items of each key were done in order.
func TestKill(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, coretest.Kill{Child: func(dir string, round int, ack func(string)) { work(dir, ack) }, Check: check}))
}

// The same test fails if an end is acknowledged before it is made.
func TestKillFindsEarlyAcknowledgement(t *testing.T) {
	early := func(dir string, round int, ack func(string)) {
		work(dir, func(item string) {
			var id durable.ItemID
			if n, _ := fmt.Sscanf(item, "insert %d", &id); n == 1 {
				ack(fmt.Sprint("end ", id))
			}
		})
	}
	require.ErrorContains(t, coretest.KillLoop(t, coretest.Kill{Child: early, Check: check, Rounds: 50}), "acknowledged as ended")
}

const killKeys = 5

// work inserts, claims and ends items in goroutines, with leases that often end.
func work(dir string, ack func(string)) {
	ctx, s := context.Background(), openChild(dir)
	var mu sync.Mutex
	say := func(args ...any) {
		mu.Lock()
		defer mu.Unlock()
		ack(fmt.Sprintln(args...))
	}
	for g := range 2 {
		go func() {
			for n := g; ; n++ {
				for _, i := range must(s.Insert(ctx, q, []durable.Insert{{Key: fmt.Sprint(n % killKeys)}, {Key: "hot"}})) {
					say("insert", i.ID)
				}
			}
		}()
		go func() {
			n := durable.Node{Queue: q, Lease: 20 * time.Millisecond, Lanes: []core.Lane{{}}}
			for {
				n.ID = must(s.Join(ctx, n))
				var ends []durable.End
				for {
					_, err := s.Beat(ctx, n, "")
					var t durable.Turned
					if err == nil {
						t, err = s.Turn(ctx, n, ends, durable.Want{Max: 3})
					}
					for n, e := range t.Ends {
						if e.Outcome == durable.OutcomeEnded {
							say("end", ends[n].ID)
						}
					}
					ends = ends[:0]
					if errors.Is(err, durable.ErrLeaseLost) {
						break
					}
					for _, i := range must(t.Items, err) {
						say("token", i.Token)
						ends = append(ends, durable.End{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndDone})
					}
				}
			}
		}()
	}
}

func check(dir string, acked []string) error {
	w, err := sqlitewriter.Open(context.Background(), filepath.Join(dir, "work.db"), sqlitewriter.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := sqlite.Open(context.Background(), w, sqlite.Options{})
	if err != nil {
		return err
	}
	states, last := map[durable.ItemID]durable.State{}, map[string]durable.State{}
	var items []durable.Item
	for query := (durable.Query{Limit: durable.MaxBatch}); query.Limit > 0; {
		page, err := s.Items(context.Background(), q, query)
		if err != nil {
			return err
		}
		items = append(items, page.Items...)
		if query.After = page.Next; page.Next == "" {
			query.Limit = 0
		}
	}
	slices.SortFunc(items, func(a, b durable.Item) int { return cmp.Compare(a.ID, b.ID) })
	for _, i := range items {
		before, any := last[i.Key]
		if i.State == durable.Done && any && before != durable.Done || (i.State == durable.Blocked) == (!any || before == durable.Done) {
			return fmt.Errorf("item %d of key %s is in state %d, the one before it in %d", i.ID, i.Key, i.State, before)
		}
		states[i.ID], last[i.Key] = i.State, i.State
	}
	tokens := map[int64]bool{}
	for _, line := range acked {
		var what string
		var n int64
		if _, err := fmt.Sscan(line, &what, &n); err != nil {
			return err
		}
		state := states[durable.ItemID(n)]
		switch {
		case what == "token" && tokens[n]:
			return fmt.Errorf("token %d was given out twice", n)
		case what == "insert" && state == 0:
			return fmt.Errorf("item %d was acknowledged and is lost", n)
		case what == "end" && state != durable.Done:
			return fmt.Errorf("item %d was acknowledged as ended and is in state %d", n, state)
		}
		tokens[n] = tokens[n] || what == "token"
	}
	return nil
}

const childEnv = "DURABLE_SQLITE_CHILD"

// fiveItems is how many items the processes end together.
const fiveItems = 100

// five claims and ends items until all are done, and says what it has ended. It looks for
// items only when it is woken.
func five(dir string) {
	ctx, s, woken := context.Background(), openChild(dir), make(chan struct{}, 1)
	n := durable.Node{Queue: q, Lease: time.Minute, MaxCluster: 4, Lanes: []core.Lane{{}}}
	n.ID = must(s.Join(ctx, n))
	defer s.OnWake(q, func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})()
	for must(s.Stats(ctx, q)).Done < fiveItems {
		items := must(s.Turn(ctx, n, nil, durable.Want{Max: 2})).Items
		if len(items) == 0 {
			<-woken
		}
		for len(items) > 0 {
			i := items[0]
			ended := must(s.Turn(ctx, n, []durable.End{{ID: i.ID, Key: i.Key, Token: i.Token, Kind: durable.EndDone, HandOver: true}}, durable.Want{})).Ends[0]
			if ended.Outcome == durable.OutcomeEnded {
				fmt.Println("ended", i.ID, i.Token, i.Key, os.Getpid())
			}
			if items = items[1:]; ended.Next != nil {
				items = append(items, *ended.Next)
			}
		}
	}
	os.Exit(0)
}

// Five processes run the items of one file: each item is ended once, in the order of its key,
// and claims never exceed the limit.
func TestFiveProcesses(t *testing.T) {
	if dir, ok := os.LookupEnv(childEnv); ok {
		five(dir)
	}
	dir := t.TempDir()
	s, _ := open(t, filepath.Join(dir, "work.db"), sqlite.Options{})
	var outs [5]strings.Builder
	var children []*exec.Cmd
	for n := range outs {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFiveProcesses$")
		child.Env, child.Stdout, child.Stderr = append(os.Environ(), childEnv+"="+dir), &outs[n], os.Stderr
		require.NoError(t, child.Start())
		children = append(children, child)
	}
	for n := range fiveItems / 2 { // while they run
		insert(t, s, fmt.Sprint("key", n%7), fmt.Sprint("key", n%50))
		stats, err := s.Stats(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, stats.Running, 4)
	}
	for _, child := range children {
		require.NoError(t, child.Wait())
	}
	type end struct {
		id, token, pid int
		key            string
	}
	var ends []end
	for n := range outs {
		for line := range strings.Lines(outs[n].String()) {
			var e end
			if _, err := fmt.Sscanf(line, "ended %d %d %s %d", &e.id, &e.token, &e.key, &e.pid); err == nil {
				ends = append(ends, e)
			}
		}
	}
	require.Len(t, ends, fiveItems)
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.token, b.token) })
	last, pids := map[string]int{}, map[int]bool{}
	for n, e := range ends {
		require.True(t, n == 0 || e.token > ends[n-1].token, "token %d twice", e.token)
		require.Greater(t, e.id, last[e.key], "key %s", e.key)
		last[e.key], pids[e.pid] = e.id, true
	}
	require.Greater(t, len(pids), 1)
}
