package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A flow waits for the signals that its pattern matches, also if it has characters that LIKE reads in its own way.
func TestPatterns(t *testing.T) {
	s := open(t)
	names := []string{"", "a", "ab", "a.b", "a:b.c", "aé", "é", "a_b", "a%b", `a\b`, `a\%b`, "axb", "a b", " a", "a\nb", "approval.given", "approval.refused", "A", "*", "?", "日本"}
	for _, pattern := range []string{"", "*", "?", "a", "a*", "*b", "a?b", "a??b", "*.*", "a_b", "a%b", `a\b`, `a\*`, `a\?b`, " a , *b ,", ",,", "\u00a0a\u00a0", "approval.given, approval.refused", "approval.*", "?b", "日?", "a b", "**", "*?"} {
		var matches []string
		rows, err := s.pool.Query(t.Context(), "select name from unnest($1::text[]) as name where name like any(string_to_array($2, ','))", names, likes(pattern))
		require.NoError(t, err)
		for rows.Next() {
			var name string
			require.NoError(t, rows.Scan(&name))
			matches = append(matches, name)
		}
		require.NoError(t, rows.Err())
		var want []string
		for _, name := range names {
			if signals.Match(pattern, name) {
				want = append(want, name)
			}
		}
		assert.Equal(t, want, matches, "%q", pattern)
	}
}

// The effect and the record of a step are committed together: with an error, a panic, or a lost claim, neither is there. After that the step does not run again.
func TestStep(t *testing.T) {
	s := open(t)
	exec(t, s, "create table {s}.effect (name text)")
	effects := func() (names []string) {
		require.NoError(t, s.pool.QueryRow(context.Background(), s.sql("select array_agg(name order by name) from {s}.effect")).Scan(&names))
		return names
	}
	effect := func(name string, err error) func(tx pgx.Tx) error {
		return func(tx pgx.Tx) error {
			_, failed := tx.Exec(context.Background(), s.sql("insert into {s}.effect (name) values ($1)"), name)
			return cmp.Or(failed, err)
		}
	}
	run := 0
	failed := errors.New("no")
	var errs []error
	q := queue(t, s, func(ctx context.Context, item string) error {
		run++
		if _, err := durable.FlowFrom(ctx).Do(ctx, durable.Call{Name: "before", Do: func(context.Context) ([]byte, error) { return []byte("1"), nil }}); err != nil {
			return err
		}
		if err := Step(ctx, s.pool, "one", effect("one", nil)); err != nil {
			return err
		}
		j, _, err := s.Journal(ctx, durable.ClaimFrom(ctx).Queue, durable.ClaimFrom(ctx).ID, true)
		require.NoError(t, err)
		require.Equal(t, []string{"before", "one"}, []string{j.Steps[0].Name, j.Steps[1].Name}) // also what was to be written
		switch run {
		case 1:
			errs = append(errs, Step(ctx, s.pool, "two", effect("two", failed)))
			return failed
		case 2:
			defer func() { errs = append(errs, fmt.Errorf("%v", recover())); panic("no") }()
			return Step(ctx, s.pool, "two", func(tx pgx.Tx) error { effect("two", nil)(tx); panic("no") })
		case 3:
			exec(t, s, "update {s}.durable_item set token = token + 1000")
			errs = append(errs, Step(ctx, s.pool, "two", effect("two", nil)))
			exec(t, s, "update {s}.durable_item set token = token - 1000")
			return failed
		}
		errs = append(errs, Step(ctx, s.pool, "one", effect("one", nil)))
		return Step(ctx, s.pool, "two", effect("two", nil))
	}, durable.Options{Backoff: time.Millisecond, Poll: 10 * time.Millisecond})
	ended := make(chan signals.Signal, 1)
	defer q.Sink().Subscribe(durable.SignalSucceeded, func(s signals.Signal) { ended <- s })()
	require.ErrorContains(t, Step(t.Context(), s.pool, "outside", effect("outside", nil)), "for the body of an item")
	_, err := q.Enqueue(t.Context(), "ada")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go q.Run(ctx)
	<-ended
	assert.Equal(t, 4, run)
	assert.ErrorIs(t, errs[0], failed)
	assert.EqualError(t, errs[1], "no")
	assert.ErrorIs(t, errs[2], durable.ErrLeaseLost)
	assert.ErrorContains(t, errs[3], "used twice in one run")
	assert.ErrorContains(t, errs[3], "flow_test.go:")
	assert.Equal(t, []string{"one", "two"}, effects())
}

// A signal is sent with the sender's transaction, or not at all.
func TestSignalOfATransaction(t *testing.T) {
	s := open(t)
	q := queue(t, s, nothing, durable.Options{Name: "q"})
	n := node(t, s, time.Hour, 0)
	mine := flowing(t, s, n, "ada")
	endAll(t, s, n, parks(mine))
	send := func(err error) error {
		return pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			require.NoError(t, Signal(t.Context(), tx, q, "ada", "go", map[string]int{"n": 1}, "id"))
			return err
		})
	}
	failed := errors.New("no")
	require.ErrorIs(t, send(failed), failed)
	assert.Empty(t, claim(t, s, n, 1))
	require.NoError(t, send(nil))
	require.NoError(t, send(nil)) // with the same id
	j, _ := journal(t, s, mine.ID)
	assert.JSONEq(t, `{"n":1}`, string(j.Steps[1].Data))
	assert.Len(t, claim(t, s, n, 1), 1)
	all, err := s.Signals(t.Context(), "q", "ada", 0, 10)
	require.NoError(t, err)
	assert.Len(t, all, 1)
	exec(t, s, "insert into {s}.durable_signal (seq, item, at, checked, queue, key, name, unique_id) select nextval('{s}.durable_signal_seq'), 0, now(), now(), 'q', 'ada', 'n', '' from generate_series(2, $1)", durable.MaxSignals)
	require.NoError(t, pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		require.ErrorIs(t, Signal(t.Context(), tx, q, "ada", "go", nil), core.ErrFull)
		return Signal(t.Context(), tx, q, "bob", "go", nil) // it goes on
	}))
	memory := queue(t, durable.Memory(), nothing, durable.Options{})
	assert.ErrorContains(t, Signal(t.Context(), nil, memory, "ada", "go", nil), "not on a store of PostgreSQL")
}
