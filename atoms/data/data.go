package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// store is the [Store]. It checks, encodes and counts; the engine keeps.
type store[K ~string, V any] struct {
	core.Lifecycle // of the requests

	engine   Engine
	opts     Options[V]
	gate     gate
	requests *core.Coordinator[request]
	cancels  []func() // of the subscriptions
}

// New makes a store that keeps its values in engine, or says what is wrong with the
// options. The engine is the store's from then on; after an error it is still the caller's.
func New[K ~string, V any](engine Engine, opts Options[V]) (Store[K, V], error) {
	if engine == nil {
		return nil, errors.New("data: New needs an Engine, not nil")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	s := &store[K, V]{engine: engine, opts: opts}
	s.gate.end = func() error { return s.tell(Deleted(opts.Name), s.named(engine.Close(), "close", "")) }
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// call calls fn, in which the engine may be used, and counts.
func (s *store[K, V]) call(ctx context.Context, op, key string, fn func() error) error {
	err := s.gate.enter()
	if err == nil {
		ok := false
		defer func() { s.gate.leave(ok) }() // also if fn panics
		if err = context.Cause(ctx); err == nil {
			err = fn()
		}
		ok = err == nil
	}
	return s.named(err, op, key)
}

// keyed is call for a key.
func (s *store[K, V]) keyed(ctx context.Context, op string, key K, fn func(key string) error) error {
	return s.call(ctx, op, string(key), func() error {
		if err := checkKey(string(key)); err != nil {
			return err
		}
		return fn(string(key))
	})
}

func checkKey(key string) error {
	if len(key) < 1 || len(key) > MaxKey {
		return fmt.Errorf("data: a key must have 1 to %d bytes, not %d", MaxKey, len(key))
	}
	return nil
}

func (s *store[K, V]) named(err error, op, key string) error {
	if _, named := err.(*Error); err == nil || named {
		return err
	}
	return &Error{s.opts.Name, op, key, err}
}

func (s *store[K, V]) encode(value V) ([]byte, error) {
	encoded, err := s.opts.Codec.Encode(value)
	if err == nil && len(encoded) > MaxValue {
		err = fmt.Errorf("data: an encoded value must have at most %d bytes, not %d", MaxValue, len(encoded))
	}
	return encoded, err
}

func (s *store[K, V]) Save(ctx context.Context, key K, value V) error {
	return s.tell(Saved(s.opts.Name), s.save(ctx, key, value), Item{Key: string(key)})
}

func (s *store[K, V]) save(ctx context.Context, key K, value V) error {
	return s.keyed(ctx, "save", key, func(key string) error {
		encoded, err := s.encode(value)
		if err != nil {
			return err
		}
		return s.engine.Save(ctx, []Item{{key, encoded}})
	})
}

func (s *store[K, V]) SaveAll(ctx context.Context, entries iter.Seq2[K, V]) error {
	var items []Item
	return s.tell(Saved(s.opts.Name), s.call(ctx, "save", "", func() (err error) {
		items, err = s.collect(entries)
		if err != nil || len(items) == 0 {
			return err
		}
		return s.engine.Save(ctx, items)
	}), items...)
}

// collect encodes entries, and sorts them by key; of equal keys, the last counts.
func (s *store[K, V]) collect(entries iter.Seq2[K, V]) ([]Item, error) {
	last := map[string][]byte{}
	for k, value := range entries {
		key := string(k)
		err := checkKey(key)
		if err == nil {
			last[key], err = s.encode(value)
		}
		if err != nil {
			return nil, s.named(err, "save", key)
		}
	}
	items := make([]Item, 0, len(last))
	for key, encoded := range last {
		items = append(items, Item{key, encoded})
	}
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.Key, b.Key) })
	return items, nil
}

func (s *store[K, V]) Load(ctx context.Context, key K) (value V, ok bool, err error) {
	err = s.keyed(ctx, "load", key, func(key string) error {
		encoded, found, err := s.engine.Load(ctx, key)
		if err != nil || !found {
			return err
		}
		value, err = s.opts.Codec.Decode(encoded)
		ok = err == nil
		return err
	})
	return value, ok, err
}

func (s *store[K, V]) Has(ctx context.Context, key K) (ok bool, err error) {
	err = s.keyed(ctx, "has", key, func(key string) (err error) { ok, err = s.engine.Has(ctx, key); return err })
	return ok, err
}

func (s *store[K, V]) Delete(ctx context.Context, key K) error {
	return s.tell(Deleted(s.opts.Name), s.delete(ctx, key), Item{Key: string(key)})
}

func (s *store[K, V]) delete(ctx context.Context, key K) error {
	return s.keyed(ctx, "delete", key, func(key string) error { return s.engine.Delete(ctx, key) })
}

func (s *store[K, V]) Update(ctx context.Context, key K, fn func(value V, ok bool) (V, error)) error {
	if fn == nil {
		panic("data: Update needs a function")
	}
	return s.tell(Saved(s.opts.Name), s.keyed(ctx, "update", key, func(key string) (err error) {
		for swapped := false; !swapped && err == nil; {
			if err = context.Cause(ctx); err == nil {
				swapped, err = s.swap(ctx, key, fn)
			}
		}
		return err
	}), Item{Key: string(key)})
}

// swap is one attempt of an Update.
func (s *store[K, V]) swap(ctx context.Context, key string, fn func(value V, ok bool) (V, error)) (bool, error) {
	old, ok, err := s.engine.Load(ctx, key)
	if err != nil {
		return false, err
	}
	var value V
	if ok {
		if value, err = s.opts.Codec.Decode(slices.Clone(old)); err != nil { // it may keep its bytes
			return false, err
		}
	}
	if value, err = fn(value, ok); err != nil {
		return false, err
	}
	encoded, err := s.encode(value)
	if err != nil {
		return false, err
	}
	return s.engine.Swap(ctx, key, old, ok, encoded)
}

func (s *store[K, V]) Keys(ctx context.Context, prefix string) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		s.list(ctx, prefix, false, func(item Item, err error) bool { return yield(K(item.Key), err) })
	}
}

func (s *store[K, V]) All(ctx context.Context, prefix string) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		s.list(ctx, prefix, true, func(item Item, err error) bool {
			entry := Entry[K, V]{Key: K(item.Key)}
			if err == nil {
				entry.Value, err = s.opts.Codec.Decode(item.Value)
			}
			return yield(entry, s.named(err, "load", item.Key)) && err == nil
		})
	}
}

// list calls yield for the items, and then for the error, if there is one.
func (s *store[K, V]) list(ctx context.Context, prefix string, values bool, yield func(Item, error) bool) {
	more := true
	err := s.call(ctx, "list", prefix, func() error {
		if len(prefix) > MaxKey {
			return checkKey(prefix)
		}
		for item, err := range s.engine.List(ctx, prefix, values) {
			if err == nil {
				more = yield(item, nil)
				err = context.Cause(ctx)
			}
			if err != nil || !more {
				return err
			}
		}
		return nil
	})
	if err != nil && more {
		yield(Item{}, err)
	}
}

func (s *store[K, V]) Len(ctx context.Context) (n int, err error) {
	err = s.call(ctx, "len", "", func() (err error) { n, err = s.engine.Len(ctx); return err })
	return n, err
}

func (s *store[K, V]) Clear(ctx context.Context) error {
	return s.tell(Deleted(s.opts.Name), s.call(ctx, "clear", "", func() error { return s.engine.Clear(ctx) }), Item{})
}

func (s *store[K, V]) Name() string     { return s.opts.Name }
func (s *store[K, V]) Sink() *core.Sink { return s.requests.Sink() }

func (s *store[K, V]) Stats() Stats {
	stats := s.gate.counters()
	stats.Requests = s.requests.Stats()
	return stats
}

// Close cancels the requests and, unless there are direct calls, closes the engine.
func (s *store[K, V]) Close() error {
	err := s.gate.close()
	for _, cancel := range s.cancels {
		cancel()
	}
	return errors.Join(err, s.requests.Close())
}
