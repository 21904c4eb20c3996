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
	// Query yields the entries whose JSON has value at path, like [Engine.Query].
	Query(ctx context.Context, path []string, value any) iter.Seq2[data.Entry[K, V], error]
}

// Open returns the store in the table opts.Name of the schema public. It creates the table if it
// does not exist. If opts.Codec is nil or the codec of package data, values are JSONB. With another
// codec, they are BYTEA. For other tables, use [NewEngine] and [New]. The store does not close the
// pool: close the pool after the store.
func Open[K ~string, V any](ctx context.Context, pool *pgxpool.Pool, opts data.Options[V]) (Store[K, V], error) {
	_, isJSON := opts.Codec.(data.JSON[V])
	engine, err := NewEngine(ctx, pool, Options{Table: opts.Name, Bytes: opts.Codec != nil && !isJSON})
	if err != nil {
		return nil, err
	}
	store, err := New[K](engine, opts)
	if err != nil {
		engine.Close()
		return nil, err
	}
	return store, nil
}

// New is [data.New] for an engine of this package. Closing the store closes the engine.
func New[K ~string, V any](engine *Engine, opts data.Options[V]) (Store[K, V], error) {
	if opts.Codec == nil {
		opts.Codec = data.JSON[V]{}
	}
	s, err := data.New[K](engine, opts)
	if err != nil {
		return nil, err
	}
	return &store[K, V]{s, engine, opts.Codec}, nil
}

type store[K ~string, V any] struct {
	data.Store[K, V]
	engine *Engine
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
