package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// A Store is a [data.Store] that can search its values. Make one with [Open] or [New].
type Store[K ~string, V any] interface {
	data.Store[K, V]
	// Query yields the items whose JSON contains value at path, in the order of their keys. It reads
	// pages, like List. The path is a list of names of fields in the JSON. Without a path, the whole
	// JSON is compared with value. Package encoding/json encodes value. An object matches if it has at
	// least the fields of value, an array if it has at least its elements. Numbers match by their
	// value. If the column is not JSONB, Query returns an error.
	//
	// Without an index, PostgreSQL reads all rows. An index for every query is
	//
	//	create index on orders using gin (value jsonb_path_ops)
	Query(ctx context.Context, path []string, value any) iter.Seq2[data.Entry[K, V], error]
}

// Open is [New] with the table opts.Name of the schema public.
func Open[K ~string, V any](ctx context.Context, pool *pgxpool.Pool, opts data.Options[V]) (Store[K, V], error) {
	return New[K](ctx, pool, Options{Table: opts.Name}, opts)
}

// New returns the store in a table. It creates the table if it does not exist. If opts.Codec is
// nil or the codec of package data, values are JSONB. With another codec, they are BYTEA. If the
// table has other columns, or values cannot be read because the pool does not cache statements and
// bytea_output is not hex, New returns an error.
//
// The saves of all callers use one connection of the pool. Every other call uses its own
// connection while it runs. If another transaction has locked a row, all saves of the store wait.
// Set statement_timeout or lock_timeout in the configuration of the pool to limit that. The store
// does not close the pool: close the pool after the store.
func New[K ~string, V any](ctx context.Context, pool *pgxpool.Pool, table Options, opts data.Options[V]) (Store[K, V], error) {
	_, isJSON := opts.Codec.(data.JSON[V])
	table.bytes = opts.Codec != nil && !isJSON
	e, err := newEngine(ctx, pool, table)
	if err != nil {
		return nil, err
	}
	s, err := newStore[K](e, opts)
	if err != nil {
		e.Close()
	}
	return s, err
}

func newStore[K ~string, V any](e *engine, opts data.Options[V]) (Store[K, V], error) {
	if opts.Codec == nil {
		opts.Codec = data.JSON[V]{}
	}
	s, err := data.New[K](e, opts)
	if err != nil {
		return nil, err
	}
	return &store[K, V]{s, e, opts.Codec}, nil
}

type store[K ~string, V any] struct {
	data.Store[K, V]
	engine *engine
	codec  data.Codec[V]
}

func (s *store[K, V]) Query(ctx context.Context, path []string, value any) iter.Seq2[data.Entry[K, V], error] {
	return func(yield func(data.Entry[K, V], error) bool) {
		for item, err := range s.engine.Query(ctx, path, value) {
			entry := data.Entry[K, V]{Key: K(item.Key)}
			if err == nil {
				if entry.Value, err = s.codec.Decode(item.Value); err != nil {
					err = fmt.Errorf("postgres: the value of key %q: %w", item.Key, err)
				}
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}
