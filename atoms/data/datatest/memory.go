package datatest

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ephemeralgo/ephemeral/atoms/data"
)

// Memory returns an engine that keeps its items in memory: for tests of code that uses a
// store.
func Memory() data.Engine { return &memory{items: map[string][]byte{}} }

type memory struct {
	mu    sync.Mutex
	items map[string][]byte
}

func (m *memory) locked(ctx context.Context, fn func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fn()
	return nil
}

func (m *memory) Save(ctx context.Context, items []data.Item) error {
	return m.locked(ctx, func() {
		for _, item := range items {
			m.items[item.Key] = bytes.Clone(item.Value)
		}
	})
}

func (m *memory) Load(ctx context.Context, key string) (value []byte, ok bool, err error) {
	err = m.locked(ctx, func() {
		value, ok = m.items[key]
		value = bytes.Clone(value)
	})
	return value, ok, err
}

func (m *memory) Has(ctx context.Context, key string) (ok bool, err error) {
	err = m.locked(ctx, func() { _, ok = m.items[key] })
	return ok, err
}

func (m *memory) Swap(ctx context.Context, key string, old []byte, ok bool, value []byte) (swapped bool, err error) {
	err = m.locked(ctx, func() {
		now, there := m.items[key]
		if swapped = there == ok && bytes.Equal(now, old); swapped {
			m.items[key] = bytes.Clone(value)
		}
	})
	return swapped, err
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.locked(ctx, func() { delete(m.items, key) })
}

func (m *memory) List(ctx context.Context, prefix string, values bool) iter.Seq2[data.Item, error] {
	return func(yield func(data.Item, error) bool) {
		var items map[string][]byte
		if err := m.locked(ctx, func() { items = maps.Clone(m.items) }); err != nil {
			yield(data.Item{}, err)
		}
		for _, key := range slices.Sorted(maps.Keys(items)) {
			if strings.HasPrefix(key, prefix) && !yield(data.Item{Key: key, Value: bytes.Clone(items[key])}, nil) {
				return
			}
		}
	}
}

func (m *memory) Len(ctx context.Context) (n int, err error) {
	err = m.locked(ctx, func() { n = len(m.items) })
	return n, err
}

func (m *memory) Clear(ctx context.Context) error {
	return m.locked(ctx, func() { clear(m.items) })
}

func (m *memory) Close() error { return nil }
