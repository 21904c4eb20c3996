package data

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// store is the [Store]. It checks keys, encodes values and raises signals. The engine stores.
type store[K ~string, V any] struct {
	*core.Coordinator[request] // of the requests

	engine  Engine
	opts    Options[V]
	cancels []func() // of the subscriptions

	mu     sync.Mutex
	closed bool
	users  int // users of the engine: running calls and, until Close, the store itself
}

// New makes a store that keeps its values in engine. It returns an error if the options are
// not valid. The store closes the engine. If New returns an error, the caller must close it.
//
//ephemeral:raises saved.data.{Options.Name|data}
//ephemeral:raises loaded.data.{Options.Name|data}
//ephemeral:raises deleted.data.{Options.Name|data}
//ephemeral:raises initialized.data.{Options.Name|data}
//ephemeral:raises error.data.{Options.Name|data}
func New[K ~string, V any](engine Engine, opts Options[V]) (Store[K, V], error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	s := &store[K, V]{engine: engine, opts: opts, users: 1}
	s.Coordinator, err = core.NewKeyedCoordinator(func(r request) string { return r.signal.Key }, s.serve, core.Options{
		Name: opts.Name, Sink: opts.Sink, MaxConcurrency: opts.MaxConcurrency, MaxQueued: opts.MaxQueued,
		MaxTracked: -1, EchoCapacity: -1, // payloads may be large
		OnDone: func(op core.Snapshot) { s.done(op.Item.(request), op.Err) }, // also called for requests that never ran
	})
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	for op, prefix := range map[string]string{"save": opts.SavePrefix, "load": opts.LoadPrefix, "delete": opts.DeletePrefix} {
		s.cancels = append(s.cancels, opts.Sink.Subscribe(prefix+"."+opts.Name, func(signal signals.Signal) {
			_, err := s.TryEnqueue(context.Background(), request{op, signal})
			s.done(request{op, signal}, err)
		}))
	}
	Initialized(opts.Name).Raise(opts.Sink, opts.Name, struct{}{})
	return s, nil
}

// call calls fn, which uses the engine, and wraps its error in an [Error]. The key, or prefix,
// must have at least least bytes.
func (s *store[K, V]) call(op, key string, least int, fn func() error) error {
	s.mu.Lock()
	err := checkKey(key, least)
	if s.closed {
		err = core.ErrClosed
	}
	if err == nil {
		s.users++
		defer s.leave() // even if fn panics
	}
	s.mu.Unlock()
	if err == nil {
		err = fn()
	}
	return s.named(err, op, key)
}

// leave ends one use of the engine, and closes the engine after the last.
func (s *store[K, V]) leave() error {
	s.mu.Lock()
	s.users--
	last := s.users == 0
	s.mu.Unlock()
	if last {
		return s.told(s.opts.Sink, s.named(s.engine.Close(), "close", ""))
	}
	return nil
}

// change does what call does, for a change. After the change it raises kind.
func (s *store[K, V]) change(on signals.Raiser, kind signals.Kind[struct{}], op, key string, least int, fn func() error) error {
	return s.call(op, key, least, func() error {
		err := fn()
		if err == nil {
			kind.Raise(on, key, struct{}{})
		}
		return err
	})
}

func (s *store[K, V]) named(err error, op, key string) error {
	if _, named := err.(*Error); err == nil || named {
		return err
	}
	return &Error{s.opts.Name, op, key, err}
}

// told raises an error, if it is not nil, and returns it.
func (s *store[K, V]) told(on signals.Raiser, err error) error {
	if err != nil {
		Failed(s.opts.Name).Raise(on, err.(*Error).Key, err)
	}
	return err
}

func checkKey(key string, least int) error {
	if len(key) < least || len(key) > MaxKey {
		return fmt.Errorf("data: a key must have 1 to %d bytes, not %d", MaxKey, len(key))
	}
	return nil
}

// encode encodes value, unless there is an error already.
func (s *store[K, V]) encode(value V, err error) (encoded []byte, _ error) {
	if err == nil {
		encoded, err = s.opts.Codec.Encode(value)
	}
	if err == nil && len(encoded) > MaxValue {
		err = fmt.Errorf("data: an encoded value must have at most %d bytes, not %d", MaxValue, len(encoded))
	}
	return encoded, err
}

func (s *store[K, V]) Save(ctx context.Context, key K, value V) error {
	return s.told(s.opts.Sink, s.save(ctx, s.opts.Sink, string(key), func(yield func(K, V) bool) { yield(key, value) }))
}

func (s *store[K, V]) SaveAll(ctx context.Context, entries iter.Seq2[K, V]) error {
	return s.told(s.opts.Sink, s.save(ctx, s.opts.Sink, "", entries))
}

// save saves entries in the order of their keys. The argument key is for errors.
func (s *store[K, V]) save(ctx context.Context, on signals.Raiser, key string, entries iter.Seq2[K, V]) error {
	return s.call("save", key, 0, func() error {
		last := map[string][]byte{} // the last value of each key counts
		for key, value := range entries {
			encoded, err := s.encode(value, checkKey(string(key), 1))
			if err != nil {
				return s.named(err, "save", string(key))
			}
			last[string(key)] = encoded
		}
		var items []Item
		for _, key := range slices.Sorted(maps.Keys(last)) {
			items = append(items, Item{key, last[key]})
		}
		if len(items) == 0 {
			return nil
		}
		err := s.engine.Save(ctx, items)
		for i := 0; err == nil && i < len(items); i++ {
			Saved(s.opts.Name).Raise(on, items[i].Key, struct{}{})
		}
		return err
	})
}

func (s *store[K, V]) Load(ctx context.Context, key K) (value V, ok bool, err error) {
	err = s.call("load", string(key), 1, func() (err error) {
		var encoded []byte
		if encoded, ok, err = s.engine.Load(ctx, string(key)); ok && err == nil {
			value, err = s.opts.Codec.Decode(encoded)
		}
		return err
	})
	return value, ok && err == nil, err
}

func (s *store[K, V]) Has(ctx context.Context, key K) (ok bool, err error) {
	err = s.call("has", string(key), 1, func() (err error) { ok, err = s.engine.Has(ctx, string(key)); return err })
	return ok, err
}

func (s *store[K, V]) Delete(ctx context.Context, key K) error {
	return s.told(s.opts.Sink, s.delete(ctx, s.opts.Sink, string(key)))
}

func (s *store[K, V]) delete(ctx context.Context, on signals.Raiser, key string) error {
	return s.change(on, Deleted(s.opts.Name), "delete", key, 1, func() error { return s.engine.Delete(ctx, key) })
}

func (s *store[K, V]) Update(ctx context.Context, key K, fn func(value V, ok bool) (V, error)) error {
	return s.told(s.opts.Sink, s.change(s.opts.Sink, Saved(s.opts.Name), "update", string(key), 1, func() error {
		for {
			old, ok, err := s.engine.Load(ctx, string(key))
			var value V
			if err == nil && ok {
				value, err = s.opts.Codec.Decode(slices.Clone(old)) // Decode may keep the slice
			}
			if err == nil {
				value, err = fn(value, ok)
			}
			encoded, err := s.encode(value, err)
			swapped := false
			if err == nil {
				swapped, err = s.engine.Swap(ctx, string(key), old, ok, encoded)
			}
			if swapped || err != nil {
				return err
			}
		}
	}))
}

func (s *store[K, V]) Keys(ctx context.Context, prefix string) iter.Seq2[K, error] {
	return list(ctx, s, prefix, false, func(item Item) (K, error) { return K(item.Key), nil })
}

func (s *store[K, V]) All(ctx context.Context, prefix string) iter.Seq2[Entry[K, V], error] {
	return list(ctx, s, prefix, true, func(item Item) (Entry[K, V], error) {
		value, err := s.opts.Codec.Decode(item.Value)
		return Entry[K, V]{K(item.Key), value}, s.named(err, "load", item.Key)
	})
}

// list yields element(item) for each item, and at the end the error, if there is one.
func list[K ~string, V, E any](ctx context.Context, s *store[K, V], prefix string, values bool, element func(Item) (E, error)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		err := s.call("list", prefix, 0, func() error {
			for item, err := range s.engine.List(ctx, prefix, values) {
				var e E
				if err = cmp.Or(err, context.Cause(ctx)); err == nil {
					e, err = element(item)
				}
				if err != nil {
					return err
				}
				if !yield(e, nil) {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			yield(*new(E), err)
		}
	}
}

func (s *store[K, V]) Len(ctx context.Context) (n int, err error) {
	err = s.call("len", "", 0, func() (err error) { n, err = s.engine.Len(ctx); return err })
	return n, err
}

func (s *store[K, V]) Clear(ctx context.Context) error {
	return s.told(s.opts.Sink, s.change(s.opts.Sink, Deleted(s.opts.Name), "clear", "", 0, func() error { return s.engine.Clear(ctx) }))
}

// Close cancels the requests. If no direct call runs, it closes the engine.
func (s *store[K, V]) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	for _, cancel := range s.cancels {
		cancel()
	}
	err := s.Coordinator.Close()
	if first {
		err = s.leave()
	}
	return err
}
