package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// Concurrent saves share transactions.
func TestSaversShareTransactions(t *testing.T) {
	f := newFixture(t)
	e := f.open()
	const savers, each = 32, 10
	atOnce(t, savers, func(i int) error {
		for n := range each {
			if err := e.Save(t.Context(), pairs(fmt.Sprint(i, " ", n), "1")); err != nil {
				return err
			}
		}
		return nil
	})
	assert.Equal(t, savers*each, one[int](f, "select count(*) from "+e.table))
	assert.Less(t, one[int](f, "select count(distinct xmin::text) from "+e.table), savers*each/2)
}

// Of equal keys in a transaction, the last is kept, and all callers have succeeded.
func TestEqualKeysInATransaction(t *testing.T) {
	f := newFixture(t)
	e := f.open()
	calls := [][]data.Item{pairs("b", "1", "a", "1"), pairs("b", "2"), pairs("c", "3", "b", "3", "c", "4")}
	errs := make([]error, len(calls))
	require.NoError(t, e.commit(t.Context(), calls, errs))
	require.NoError(t, errors.Join(errs...))
	assert.Equal(t, []string{"a", "1", "b", "3", "c", "4"}, list(t, e.List(t.Context(), "", true)))
	assert.Equal(t, 1, one[int](f, "select count(distinct xmin::text) from "+e.table))
	require.NoError(t, e.Save(t.Context(), pairs("b", "5")))
	assert.Equal(t, []string{"b"}, one[[]string](f, "select array_agg(convert_from(key, 'UTF8')) from "+e.table+" where updated_at > created_at"))
}

// If the table refuses a value, the whole call with that value fails, and no other call.
func TestRefusedValueFailsAlone(t *testing.T) {
	f := newFixture(t)
	e := f.open()
	f.exec("alter table " + e.table + " add check (value <> '\"never\"')")
	refused := map[int]struct{ value, want string }{
		3:  {`"\u0000"`, `\u0000 cannot be converted to text`},
		4:  {strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), "stack depth limit exceeded"},
		20: {`{`, "invalid input syntax for type json"},
		21: {"\"\xff\"", "invalid byte sequence"},
		40: {`1e200000`, "overflow"},
		41: {`"never"`, "check constraint"},
	}
	calls, errs := make([][]data.Item, 64), make([]error, 64)
	for i := range calls {
		value := fmt.Sprint(100 + i)
		if r, ok := refused[i]; ok {
			value = r.value
		}
		calls[i] = pairs(fmt.Sprintf("a%02d", i), fmt.Sprint(i), fmt.Sprintf("b%02d", i), value)
	}
	calls[22] = pairs("b21", `"the value before remains"`)
	require.NoError(t, e.commit(t.Context(), calls, errs))
	for i, err := range errs {
		key := fmt.Sprintf("a%02d", i)
		ok, loadErr := e.Has(t.Context(), key)
		require.NoError(t, loadErr)
		if r, bad := refused[i]; bad {
			assert.ErrorContains(t, err, "postgres: the column value (jsonb) of table "+e.table+" refuses the value: ")
			assert.ErrorContains(t, err, r.want)
			assert.Less(t, len(err.Error()), 1000)
			assert.NotErrorIs(t, err, data.ErrUndecided)
			assert.False(t, ok, key)
			_, err := e.Swap(t.Context(), "swap", nil, false, []byte(r.value))
			assert.ErrorContains(t, err, "refuses the value")
		} else {
			assert.NoError(t, err)
			assert.Equal(t, i != 22, ok, key)
		}
	}
	value, _, err := e.Load(t.Context(), "b21")
	require.NoError(t, err)
	assert.Equal(t, `"the value before remains"`, string(value))
	f.exec("drop table " + e.table)
	require.NoError(t, e.commit(t.Context(), calls[:3], errs))
	assert.ErrorContains(t, errs[0], "42P01")
}

// Savers of several processes with the same keys in any order do not deadlock, nor does
// Clear. No deadlock is hidden: nothing is tried again.
func TestProcessesDoNotDeadlock(t *testing.T) {
	f := newFixture(t)
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprint(i), fmt.Sprint(i))
	}
	forward := pairs(keys...)
	backward := slices.Clone(forward)
	slices.Reverse(backward)
	engines := []*engine{f.open(noRetry), f.open(noRetry), f.open(noRetry), f.open(noRetry), f.open(noRetry)}
	atOnce(t, 10, func(i int) error {
		for n := range 30 {
			items, e := forward, engines[i%4]
			if i%2 == 0 {
				items = backward
			}
			if i == 9 && n%5 == 0 {
				if err := engines[4].Clear(t.Context()); err != nil {
					return err
				}
			}
			if err := e.Save(t.Context(), items); err != nil {
				return err
			}
		}
		return nil
	})
}

// Items that do not fit into one statement are still saved in one transaction.
func TestManyItemsAreSavedTogether(t *testing.T) {
	f := newFixture(t)
	e := f.open()
	var texts []string
	for i := range 2*maxRows + 1 {
		texts = append(texts, fmt.Sprintf("%05d", i), fmt.Sprint(i))
	}
	texts[1] = `"` + strings.Repeat("x", maxBytes) + `"`
	items := pairs(texts...)
	items[2*maxRows].Value = []byte("not JSON")
	require.Error(t, e.Save(t.Context(), items))
	require.Empty(t, list(t, e.List(t.Context(), "", true)))
	items[2*maxRows].Value = []byte("1")
	texts[len(texts)-1] = "1"
	slices.Reverse(items)
	require.NoError(t, e.Save(t.Context(), items))
	assert.True(t, slices.Equal(texts, list(t, e.List(t.Context(), "", true))))
	assert.Equal(t, 1, one[int](f, "select count(distinct xmin::text) from "+e.table))
}

// A page ends with its rows or its bytes, and the body of a loop has the pool for itself.
func TestListHoldsNoConnection(t *testing.T) {
	f := newFixture(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
	e := f.open()
	var texts []string
	for i := range 2*pageRows + 1 {
		value := "1"
		if i%100 == 50 { // this value cannot be compressed
			value = one[string](f, "select to_jsonb(string_agg(md5(random()::text), ''))::text from generate_series(1, 10000)")
		}
		texts = append(texts, fmt.Sprintf("%05d", i), value)
	}
	require.NoError(t, e.Save(t.Context(), pairs(texts...)))
	var got []string
	for item, err := range e.List(t.Context(), "", true) {
		require.NoError(t, err)
		got = append(got, item.Key, string(item.Value))
		if len(got)%100 == 0 {
			ok, err := e.Has(t.Context(), item.Key)
			require.NoError(t, err)
			require.True(t, ok)
		}
	}
	assert.True(t, slices.Equal(texts, got))
	items, more, err := e.page(t.Context(), true, "", []any{[]byte{}, []byte("\xff")})
	require.NoError(t, err)
	assert.True(t, more)
	assert.Less(t, len(items), pageRows, "the page ends with its bytes")
}

func TestNotify(t *testing.T) {
	f := newFixture(t)
	listener, err := f.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer listener.Release()
	channel := f.opts.Schema
	_, err = listener.Exec(t.Context(), "listen "+channel)
	require.NoError(t, err)
	silent, loud := f.open(), f.open(func(o *Options) { o.Notify = channel })
	var many []data.Item
	for i := range maxHashes + 1 {
		many = append(many, data.Item{Key: strings.Repeat("k", 1000) + fmt.Sprint(i), Value: []byte("1")})
	}
	ctx := t.Context()
	require.NoError(t, silent.Save(ctx, pairs("a", "1")))
	require.Error(t, loud.Save(ctx, pairs("a", "{")))
	require.NoError(t, loud.Save(ctx, pairs("b", "2", "a", "1")))
	require.NoError(t, loud.Save(ctx, many[:maxHashes]))
	require.NoError(t, loud.Save(ctx, many))
	require.NoError(t, loud.Delete(ctx, "a"))
	_, err = loud.Swap(ctx, "b", nil, false, []byte("1"))
	require.NoError(t, err)
	require.NoError(t, loud.Clear(ctx))
	a, b := KeyHash("a"), KeyHash("b")
	assert.Equal(t, "af63dc4c8601ec8c", a)
	for _, want := range []string{a + " " + b, "400", "*", a, b, "*"} {
		n, err := listener.Conn().WaitForNotification(ctx)
		require.NoError(t, err)
		if want == "400" {
			assert.Len(t, strings.Fields(n.Payload), maxHashes)
		} else {
			assert.Equal(t, want, n.Payload)
		}
	}
}
