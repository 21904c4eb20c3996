package data

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// store is the [Store]. Its methods check, encode and count; the engine keeps.
type store[K ~string, V any] struct {
	core.Lifecycle // of the requests

	engine   Engine
	opts     Options[V]
	gate     gate
	requests *core.Coordinator[request]
	cancels  []func() // of the subscriptions

	saved, deleted core.Kind[struct{}]
	failed         core.Kind[error]
}

// New makes a store that keeps its values in engine, or says what is wrong with the
// options. The engine is the store's from then on; after an error it is still the caller's.
func New[K ~string, V any](engine Engine, opts Options[V]) (Store[K, V], error) {
	if engine == nil {
		return nil, errors.New("data: New needs an Engine")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	s := &store[K, V]{
		engine: engine, opts: opts,
		gate:  gate{end: engine.Close, quiet: make(chan struct{}), done: make(chan struct{})},
		saved: Saved(opts.Name), deleted: Deleted(opts.Name), failed: Failed(opts.Name),
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// call runs fn, in which the engine may be used.
func (s *store[K, V]) call(ctx context.Context, op, key string, fn func() error) error {
	err := s.gate.enter()
	if err == nil {
		err = s.inside(ctx, fn)
	}
	if _, named := err.(*Error); err == nil || named {
		return err
	}
	return &Error{s.opts.Name, op, key, err}
}

func (s *store[K, V]) inside(ctx context.Context, fn func() error) (err error) {
	ok := false
	defer func() { s.gate.leave(ok) }() // also if fn panics
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = fn()
	ok = err == nil
	return err
}

// keyed is call for one key.
func (s *store[K, V]) keyed(ctx context.Context, op string, key K, fn func(key string) error) error {
	return s.call(ctx, op, string(key), func() error {
		if err := checkKey(string(key)); err != nil {
			return err
		}
		return fn(string(key))
	})
}

// user calls a function of the caller, or of the codec, inside a call.
func (s *store[K, V]) user(fn func() error) (err error) {
	if closed := s.gate.user(func() { err = fn() }); closed != nil && err == nil {
		err = closed
	}
	return err
}

func (s *store[K, V]) encode(value V) ([]byte, error) {
	encoded, err := s.opts.Codec.Encode(value)
	if err == nil {
		err = checkValue(encoded)
	}
	return encoded, err
}

func (s *store[K, V]) Name() string     { return s.opts.Name }
func (s *store[K, V]) Sink() *core.Sink { return s.requests.Sink() }

func (s *store[K, V]) Save(ctx context.Context, key K, value V) error {
	return s.answer(s.saved, s.save(ctx, key, value), string(key))
}

func (s *store[K, V]) save(ctx context.Context, key K, value V) error {
	return s.keyed(ctx, "save", key, func(key string) error {
		var encoded []byte
		err := s.user(func() (err error) { encoded, err = s.encode(value); return err })
		if err != nil {
			return err
		}
		return s.engine.Save(ctx, []Item{{key, encoded}})
	})
}

func (s *store[K, V]) SaveAll(ctx context.Context, entries iter.Seq2[K, V]) error {
	if entries == nil {
		panic("data: SaveAll needs a sequence")
	}
	var items []Item
	err := s.call(ctx, "save", "", func() error {
		err := s.user(func() (err error) { items, err = s.collect(entries); return err })
		if err != nil || len(items) == 0 {
			return err
		}
		return s.engine.Save(ctx, items)
	})
	keys := make([]string, len(items))
	for i, item := range items {
		keys[i] = item.Key
	}
	return s.answer(s.saved, err, keys...)
}

// collect encodes entries, in the order of the keys, and of equal ones the last.
func (s *store[K, V]) collect(entries iter.Seq2[K, V]) ([]Item, error) {
	last := map[string][]byte{}
	for key, value := range entries {
		err := checkKey(string(key))
		if err == nil {
			last[string(key)], err = s.encode(value)
		}
		if err != nil {
			return nil, &Error{s.opts.Name, "save", string(key), err}
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
		ok = true
		return s.user(func() (err error) { value, err = s.opts.Codec.Decode(encoded); return err })
	})
	return value, ok && err == nil, err
}

func (s *store[K, V]) Has(ctx context.Context, key K) (ok bool, err error) {
	err = s.keyed(ctx, "has", key, func(key string) (err error) {
		ok, err = s.engine.Has(ctx, key)
		return err
	})
	return ok, err
}

func (s *store[K, V]) Delete(ctx context.Context, key K) error {
	return s.answer(s.deleted, s.delete(ctx, key), string(key))
}

func (s *store[K, V]) delete(ctx context.Context, key K) error {
	return s.keyed(ctx, "delete", key, func(key string) error { return s.engine.Delete(ctx, key) })
}

func (s *store[K, V]) Update(ctx context.Context, key K, fn func(value V, ok bool) (V, error)) error {
	if fn == nil {
		panic("data: Update needs a function")
	}
	return s.answer(s.saved, s.keyed(ctx, "update", key, func(key string) error {
		for {
			if swapped, err := s.swap(ctx, key, fn); swapped || err != nil {
				return err
			}
			s.gate.conflict()
		}
	}), string(key))
}

// swap is one attempt of an Update.
func (s *store[K, V]) swap(ctx context.Context, key string, fn func(value V, ok bool) (V, error)) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	old, ok, err := s.engine.Load(ctx, key)
	if err != nil {
		return false, err
	}
	var encoded []byte
	err = s.user(func() (err error) {
		var value V
		if ok {
			if value, err = s.opts.Codec.Decode(bytes.Clone(old)); err != nil {
				return err
			}
		}
		if value, err = fn(value, ok); err == nil {
			encoded, err = s.encode(value)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	return s.engine.Swap(ctx, key, old, ok, encoded)
}

func (s *store[K, V]) Keys(ctx context.Context, prefix string) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		s.walk(ctx, prefix, false, func(item Item, err error) bool { return yield(K(item.Key), err) })
	}
}

func (s *store[K, V]) All(ctx context.Context, prefix string) iter.Seq2[Entry[K, V], error] {
	return func(yield func(Entry[K, V], error) bool) {
		s.walk(ctx, prefix, true, func(item Item, err error) bool {
			var value V
			if err == nil {
				if value, err = s.opts.Codec.Decode(item.Value); err != nil {
					yield(Entry[K, V]{Key: K(item.Key)}, &Error{s.opts.Name, "load", item.Key, err})
					return false
				}
			}
			return yield(Entry[K, V]{K(item.Key), value}, err)
		})
	}
}

// walk yields the items, and then the error, if there is one.
func (s *store[K, V]) walk(ctx context.Context, prefix string, values bool, yield func(Item, error) bool) {
	more := true
	err := s.call(ctx, "list", prefix, func() error {
		if len(prefix) > MaxKey {
			return checkKey(prefix)
		}
		for item, err := range s.engine.List(ctx, prefix, values) {
			if err == nil {
				err = s.user(func() error { more = yield(item, nil); return context.Cause(ctx) })
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
	return s.answer(s.deleted, s.call(ctx, "clear", "", func() error { return s.engine.Clear(ctx) }), "")
}

func (s *store[K, V]) Stats() Stats {
	stats := s.gate.counters()
	stats.Requests = s.requests.Stats()
	return stats
}

// Close cancels the requests, waits for the calls that use the engine, and closes it. If a
// call is in a function of its caller at that moment, such as that of Update, or the body
// of a loop over Keys, the engine is closed when it returns. Close returns the error of
// the engine.
func (s *store[K, V]) Close() error {
	for _, cancel := range s.cancels {
		cancel()
	}
	s.requests.Close()
	return s.gate.close()
}
