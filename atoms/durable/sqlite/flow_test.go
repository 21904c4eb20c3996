package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/atoms/durable/sqlite"
	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// runFlow runs a queue with a body until the test ends.
func runFlow(t *testing.T, s durable.Store, body func(ctx context.Context, item string) error) *durable.Queue[string] {
	queue, err := durable.New(s, func(item string) string { return item }, body, durable.Options{Name: q, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
	require.NoError(t, err)
	ran := make(chan error)
	go func() { ran <- queue.Run(context.Background()) }()
	t.Cleanup(func() {
		require.NoError(t, queue.Close())
		require.NoError(t, <-ran)
	})
	return queue
}

func effects(t *testing.T, w *sqlitewriter.Writer) (n int) {
	require.NoError(t, w.DB().QueryRow("select count(*) from effect").Scan(&n))
	return n
}

func do(ctx context.Context, name string, fn func() error) error {
	_, err := durable.FlowFrom(ctx).Do(ctx, durable.Call{Name: name, Do: func(context.Context) ([]byte, error) { return []byte("1"), fn() }})
	return err
}

// The effect of a Step happens once, also if the step fails first and the body fails afterwards. The records of earlier steps
// are in its transaction.
func TestStep(t *testing.T) {
	s, w := open(t, filepath.Join(t.TempDir(), "work.db"), sqlite.Options{})
	_, err := w.Exec(t.Context(), "create table effect (item text) strict")
	require.NoError(t, err)
	onPurpose, before, during, done := errors.New("on purpose"), 0, 0, make(chan durable.Journal, 1)
	id := make(chan durable.ItemID, 1)
	flow := runFlow(t, s, func(ctx context.Context, item string) error {
		if err := do(ctx, "before", func() error { before++; return nil }); err != nil {
			return err
		}
		during++
		if err := sqlite.Step(ctx, w, "effect", func(tx *sqlitewriter.Tx) error {
			_, err := tx.Exec(ctx, "insert into effect values (?)", item)
			if during == 1 && err == nil {
				err = onPurpose
			}
			return err
		}); err != nil {
			return err
		}
		if during == 2 {
			j, _, err := s.Journal(ctx, q, durable.ClaimFrom(ctx).ID, true)
			done <- j
			return errors.Join(err, onPurpose)
		}
		id <- durable.ClaimFrom(ctx).ID
		return durable.Return(ctx, 0)
	})
	_, err = flow.Enqueue(t.Context(), "ada")
	require.NoError(t, err)
	j := <-done
	require.Equal(t, []string{"before 1 done 1", "effect 2 done null"}, shown(j))
	_, err = durable.Wait[int](t.Context(), flow, <-id)
	require.NoError(t, err)
	require.Equal(t, []int{1, 3, 1}, []int{before, during, effects(t, w)})
}

func shown(j durable.Journal) (all []string) {
	for _, s := range j.Steps {
		all = append(all, fmt.Sprint(s.Name, " ", s.Seq, " ", s.State, " ", string(s.Data)))
	}
	return all
}

// A signal in a transaction is there if that is committed: then a parked flow of another process goes on. In the function of a
// transaction, calls that would wait for it fail at once.
func TestSignal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "work.db")
	s, w := open(t, path, sqlite.Options{})
	there, _ := open(t, path, sqlite.Options{})
	flow := runFlow(t, there, func(ctx context.Context, item string) error {
		said, err := durable.FlowFrom(ctx).Await("approval", "approval.*", time.Hour)
		if err == nil {
			err = durable.Return(ctx, said.Signal+string(said.Data))
		}
		return err
	})
	here, err := durable.New(s, func(item string) string { return item }, func(context.Context, string) error { return nil }, durable.Options{Name: q})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, here.Close()) })
	parked := make(chan struct{}, 100)
	flow.Sink().Subscribe(durable.SignalSnoozed, func(signals.Signal) { parked <- struct{}{} })
	id, err := flow.Enqueue(t.Context(), "ada")
	require.NoError(t, err)
	<-parked
	j, err := here.History(t.Context(), id)
	require.NoError(t, err)
	require.NotNil(t, j.Wait)
	onPurpose := errors.New("on purpose")
	send := func(name string, result error) error {
		return w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
			return errors.Join(sqlite.Signal(ctx, tx, here, "ada", name, 7, "u"), result)
		})
	}
	require.ErrorIs(t, send("approval.refused", onPurpose), onPurpose)
	require.NoError(t, send("approval.given", nil))
	require.NoError(t, send("approval.twice", nil))
	said, err := durable.Wait[string](t.Context(), here, id)
	require.NoError(t, err)
	require.Equal(t, "approval.given7", said)

	require.ErrorContains(t, w.Tx(t.Context(), func(ctx context.Context, tx *sqlitewriter.Tx) error {
		return sqlite.Signal(ctx, tx, here, "ada", "a*", nil)
	}), "no pattern")
	require.NoError(t, w.Tx(t.Context(), func(ctx context.Context, _ *sqlitewriter.Tx) error {
		_, record := s.Record(ctx, q, []durable.Record{{ID: id, Token: 1}})
		for _, err := range []error{record, here.Signal(context.Background(), "ada", "it.would.wait", nil), here.SignalItem(context.Background(), id, "it.would.wait", nil)} {
			require.ErrorIs(t, err, core.ErrWouldDeadlock)
		}
		return nil
	}))
}

// In the transaction of a Step, calls that would wait for it fail at once.
func TestInsideStep(t *testing.T) {
	s, w := open(t, filepath.Join(t.TempDir(), "work.db"), sqlite.Options{})
	got := make(chan []error, 1)
	var flow *durable.Queue[string]
	flow = runFlow(t, s, func(ctx context.Context, item string) error {
		return sqlite.Step(ctx, w, "outer", func(*sqlitewriter.Tx) error {
			_, compensated := durable.FlowFrom(ctx).Do(ctx, durable.Call{Name: "compensated", Do: func(context.Context) ([]byte, error) { return nil, nil },
				Undo: func(context.Context, []byte, bool) error { return nil }})
			got <- []error{
				flow.Signal(ctx, "ada", "it.would.wait", nil), compensated,
				sqlite.Step(ctx, w, "inner", func(*sqlitewriter.Tx) error { return nil }),
			}
			return nil
		})
	})
	_, err := flow.Enqueue(t.Context(), "ada")
	require.NoError(t, err)
	for _, err := range <-got {
		require.ErrorIs(t, err, core.ErrWouldDeadlock)
	}
}

// After SIGKILL, a step that returned and was followed by another does not run again, and the effect of a Step is there once.
func TestKillFlow(t *testing.T) {
	require.NoError(t, coretest.KillLoop(t, coretest.Kill{Child: flowing, Check: checkFlows}))
}

// flowing runs flows of several steps. Each step says that it runs.
func flowing(dir string, round int, ack func(string)) {
	ctx := context.Background()
	w := must(sqlitewriter.Open(ctx, filepath.Join(dir, "work.db"), sqlitewriter.Options{}))
	must(w.Exec(ctx, "create table if not exists effect (item text) strict"))
	s := must(sqlite.Open(ctx, w, sqlite.Options{}))
	must(w.Exec(ctx, "update durable_node set expires = 1")) // of the child that was killed
	queue := must(durable.New(s, func(string) string { return "" }, func(ctx context.Context, item string) error {
		id := durable.ClaimFrom(ctx).ID
		step := func(n int) error {
			return do(ctx, fmt.Sprint("step ", n), func() error { ack(fmt.Sprint(id, " ", n)); return nil })
		}
		if err := errors.Join(step(1), step(2)); err != nil {
			return err
		}
		if _, err := durable.FlowFrom(ctx).Await("said", "go", time.Hour); err != nil {
			return err
		}
		if err := step(3); err != nil {
			return err
		}
		if err := sqlite.Step(ctx, w, "effect", func(tx *sqlitewriter.Tx) error {
			_, err := tx.Exec(ctx, "insert into effect values (?)", fmt.Sprint(id))
			return err
		}); err != nil {
			return err
		}
		ack(fmt.Sprint(id, " ", 4))
		return errors.Join(step(5), step(6))
	}, durable.Options{Name: q, MaxConcurrency: 4, Lease: time.Second}))
	go queue.Run(ctx)
	for n := range 20 {
		must(0, queue.SignalItem(ctx, must(queue.Enqueue(ctx, fmt.Sprint(round, n))), "go", nil))
	}
}

func checkFlows(dir string, acked []string) error {
	w, err := sqlitewriter.Open(context.Background(), filepath.Join(dir, "work.db"), sqlitewriter.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	if len(acked) > 0 {
		var wrong int // effects that are there twice, or whose record is not there
		if err := w.DB().QueryRow(`select (select count(*) - count(distinct item) from effect) + (select count(*) from effect
	where not exists (select 1 from durable_step as s where s.item = effect.item and s.name = 'effect' and s.state = 2))`).Scan(&wrong); err != nil || wrong > 0 {
			return fmt.Errorf("%d effects are wrong, %w", wrong, err)
		}
	}
	last := map[int]int{}
	for _, line := range acked {
		var id, n int
		if _, err := fmt.Sscan(line, &id, &n); err != nil {
			return err
		}
		if n < last[id] && n != 4 { // what says 4 is no step
			return fmt.Errorf("item %d: step %d ran after step %d", id, n, last[id])
		}
		last[id] = max(n, last[id])
	}
	return nil
}
