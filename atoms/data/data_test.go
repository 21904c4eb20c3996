package data_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// spy is an engine in memory. It records its calls, and calls before first.
type spy struct {
	data.Engine
	before func(ctx context.Context, op string, items []data.Item) error
	closes atomic.Int64
}

func newSpy(before func(ctx context.Context, op string, items []data.Item) error) *spy {
	if before == nil {
		before = func(context.Context, string, []data.Item) error { return nil }
	}
	return &spy{Engine: datatest.Memory(), before: before}
}

func (s *spy) Save(ctx context.Context, items []data.Item) error {
	return cmpErr(s.before(ctx, "save", items), func() error { return s.Engine.Save(ctx, items) })
}

func (s *spy) Load(ctx context.Context, key string) (value []byte, ok bool, err error) {
	err = cmpErr(s.before(ctx, "load", []data.Item{{Key: key}}), func() error { value, ok, err = s.Engine.Load(ctx, key); return err })
	return value, ok, err
}

func (s *spy) Delete(ctx context.Context, key string) error {
	return cmpErr(s.before(ctx, "delete", []data.Item{{Key: key}}), func() error { return s.Engine.Delete(ctx, key) })
}

func (s *spy) Close() error { s.closes.Add(1); return s.before(context.Background(), "close", nil) }

func cmpErr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

func open[V any](t testing.TB, e data.Engine, opts data.Options[V]) data.Store[string, V] {
	t.Helper()
	s, err := data.New[string](e, opts)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func load[V any](t testing.TB, s data.Store[string, V], key string) V {
	t.Helper()
	value, ok, err := s.Load(context.Background(), key)
	require.NoError(t, err)
	require.True(t, ok, key)
	return value
}

// Requests by signal get an answer, with the request as its cause: a value or an error. A save
// without a value, or with a value of another type, is an error.
func TestRequestsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		facts := coretest.Watch(t, sink, "*.data.orders")
		s := open(t, datatest.Memory(), data.Options[int]{Name: "orders", Sink: sink})
		answer := func(name string) signals.Signal {
			t.Helper()
			synctest.Wait()
			got := facts.ExpectExactly("*", name)[1]
			assert.Equal(t, strings.Split(got.Path()[0], ".")[1], "data")
			assert.Len(t, got.Path(), 2, "it has the request as its cause")
			return got
		}
		assert.Equal(t, "orders", facts.ExpectExactly("initialized.data.orders")[0].Key)

		data.Save[int]("orders").Raise(sink, "a", 7)
		assert.Equal(t, "a", answer("saved.data.orders").Key)
		assert.Equal(t, 7, load(t, s, "a"))
		data.Load("orders").Raise(sink, "a", struct{}{})
		found, ok := data.Loaded[int]("orders").From(answer("loaded.data.orders"))
		assert.True(t, ok)
		assert.Equal(t, data.Found[int]{Value: 7, OK: true}, found)
		sink.RaiseKey("delete.data.orders", "a")
		answer("deleted.data.orders")
		sink.RaiseKey("load.data.orders", "a")
		found, _ = data.Loaded[int]("orders").From(answer("loaded.data.orders"))
		assert.Equal(t, data.Found[int]{}, found)

		for text, raise := range map[string]func(){
			`save "b": the signal must have a payload of type int, not <nil>`:  func() { sink.RaiseKey("save.data.orders", "b") },
			`save "b": the signal must have a payload of type int, not string`: func() { data.Save[string]("orders").Raise(sink, "b", "x") },
			`save "": a key must have 1 to 1024 bytes, not 0`:                  func() { data.Save[int]("orders").Raise(sink, "", 1) },
			`load "": a key must have 1 to 1024 bytes, not 0`:                  func() { sink.Raise("load.data.orders") },
			fmt.Sprintf(`delete %q: a key must`, strings.Repeat("k", 64)):      func() { sink.RaiseKey("delete.data.orders", strings.Repeat("k", 10_000)) },
		} {
			raise()
			err, ok := data.Failed("orders").From(answer("error.data.orders"))
			assert.True(t, ok)
			assert.ErrorContains(t, err, `data: store "orders": `+text)
		}
		assert.Equal(t, []uint64{4, 5}, []uint64{s.Stats().Succeeded, s.Stats().Failed})
	})
}

// Requests for one key run one after the other. Requests for different keys run at once, at
// most MaxConcurrency. A request that does not fit in the queue is answered and counted. So is
// a request that waits or runs when the store is closed. Each request gets an answer.
func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		e := newSpy(func(ctx context.Context, op string, _ []data.Item) error {
			if op != "save" {
				return nil
			}
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		sink := signals.NewSink(signals.SinkOptions{})
		s := open(t, e, data.Options[int]{Sink: sink, MaxConcurrency: 3, MaxQueued: 4})
		answers := coretest.Watch(t, sink, "saved.*,error.*")
		for i := range 9 {
			data.Save[int]("data").Raise(sink, []string{"a", "b", "c", "d"}[min(i, 3)], i)
		}
		for _, answer := range answers.ExpectExactly("error.data.data", "error.data.data") {
			err, _ := data.Failed("data").From(answer)
			assert.ErrorIs(t, err, core.ErrFull)
		}
		assert.Equal(t, uint64(2), s.Stats().Rejected)
		require.NoError(t, s.Flush(t.Context()))
		assert.Equal(t, int64(3), most.Load())
		assert.Equal(t, 6, load(t, s, "d"), "in order")
		answers.ExpectExactly(slices.Repeat([]string{"saved.data.data"}, 7)...)
		assert.Zero(t, s.Stats().Tracked, "no value is kept")

		for i := range 4 {
			data.Save[int]("data").Raise(sink, "c", i)
		}
		synctest.Wait()
		require.NoError(t, s.Close())
		for _, answer := range answers.ExpectExactly(slices.Repeat([]string{"error.data.data"}, 4)...) {
			err, _ := data.Failed("data").From(answer)
			assert.ErrorIs(t, err, core.ErrClosed)
		}
		data.Save[int]("data").Raise(sink, "c", 1)
		answers.None()
		assert.NoError(t, coretest.CheckBooks(s.Stats()))
	})
}

// Direct calls raise signals about changes, after the change, and none about reads.
func TestSignalsOfDirectCalls(t *testing.T) {
	fails := false
	e := newSpy(func(context.Context, string, []data.Item) error {
		if fails {
			return errOnPurpose
		}
		return nil
	})
	sink := signals.NewSink(signals.SinkOptions{})
	s := open(t, e, data.Options[int]{Sink: sink})
	facts := coretest.Watch(t, sink, "*")
	ctx, key := t.Context(), ""
	cancel := sink.Subscribe("saved.data.data", func(signal signals.Signal) {
		load(t, s, signal.Key)
		key += signal.Key
	})
	defer cancel()
	require.NoError(t, s.Save(ctx, "a", 1))
	require.NoError(t, s.SaveAll(ctx, maps.All(map[string]int{"c": 1, "b": 2})))
	require.NoError(t, s.Update(ctx, "d", func(int, bool) (int, error) { return 1, nil }))
	assert.Equal(t, "abcd", key)
	require.NoError(t, s.Delete(ctx, "a"))
	require.NoError(t, s.Clear(ctx))
	got := facts.ExpectExactly("saved.*", "saved.*", "saved.*", "saved.*", "deleted.data.data", "deleted.data.data")
	assert.Equal(t, []string{"a", ""}, []string{got[4].Key, got[5].Key})

	fails = true
	_, _, err := s.Load(ctx, "a")
	assert.ErrorIs(t, err, errOnPurpose)
	facts.None()
	err = s.Save(ctx, "a", 1)
	raised, _ := data.Failed("data").From(facts.ExpectExactly("error.data.data")[0])
	assert.Equal(t, err, raised)
	assert.Equal(t, &data.Error{Store: "data", Op: "save", Key: "a", Err: errOnPurpose}, err)
	fails = false
	s.Complete() // requests are refused, and direct calls are not
	assert.NoError(t, s.Save(ctx, "a", 1))
}

// A store can have its own prefixes, and never mistakes an answer for a request.
func TestPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		s := open(t, datatest.Memory(), data.Options[int]{Sink: sink, SavePrefix: "put", LoadPrefix: "get", DeletePrefix: "drop"})
		answers := coretest.Watch(t, sink, "saved.*,loaded.*,deleted.*,error.*")
		for _, name := range []string{"put.data", "get.data", "drop.data"} {
			signals.NewKind[int](name).Raise(sink, "a", 1)
			require.NoError(t, s.Flush(t.Context()))
		}
		answers.ExpectExactly("saved.data.data", "loaded.data.data", "deleted.data.data")
		data.Save[int]("data").Raise(sink, "a", 1)
		require.NoError(t, s.Flush(t.Context()))
		answers.None()
	})
	for _, opts := range []data.Options[int]{
		{SavePrefix: "saved.data"}, {LoadPrefix: "error.data"}, {LoadPrefix: "save.data"}, {DeletePrefix: "a*"}, {SavePrefix: "a b"},
		{Name: "a.b"}, {Name: "1a"}, {MaxConcurrency: -1},
	} {
		_, err := data.New[string](datatest.Memory(), opts)
		assert.ErrorContains(t, err, "data: ", "%+v", opts)
	}
}

// A body of the suite is what the engine does for a save by signal.
func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		var n atomic.Int64
		var bodies, refused sync.Map
		e := newSpy(func(ctx context.Context, op string, items []data.Item) error {
			if op != "save" {
				return nil
			}
			body, _ := bodies.LoadAndDelete(items[0].Key)
			return body.(coretest.Body)(ctx)
		})
		sink := signals.NewSink(signals.SinkOptions{})
		s := open(t, e, data.Options[int]{Sink: sink})
		data.Failed("data").Subscribe(sink, func(signal signals.Signal, err error) {
			if _, waits := bodies.Load(signal.Key); waits && !errors.Is(err, core.ErrStopped) { // otherwise the request was accepted
				refused.Store(signal.Key, err)
			}
		})
		return coretest.Subject{
			Lifecycle: s,
			Sink:      sink,
			Stats:     s.Stats,
			Submit: func(ctx context.Context, body coretest.Body) error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				key := fmt.Sprint("key", n.Add(1))
				bodies.Store(key, body)
				data.Save[int]("data").Raise(sink, key, 0)
				if err, ok := refused.Load(key); ok {
					return err.(error)
				}
				_, err := s.Has(ctx, key) // after Close, nobody answers
				if _, waits := bodies.Load(key); !waits {
					return nil // Close came while the request ran
				}
				return err
			},
		}
	})
}

// After Close, calls are refused. A call that has begun is finished, and then the engine is
// closed once.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newSpy(func(_ context.Context, op string, _ []data.Item) error {
			if op == "close" {
				return errOnPurpose
			}
			time.Sleep(time.Minute)
			return nil
		})
		sink := signals.NewSink(signals.SinkOptions{})
		s := open(t, e, data.Options[int]{Sink: sink})
		facts := coretest.Watch(t, sink, "*.data.data")
		go func() { assert.NoError(t, s.Save(context.Background(), "a", 1)) }()
		synctest.Wait()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { assert.NoError(t, s.Close()) })
		}
		all.Wait()
		assert.Equal(t, int64(0), e.closes.Load())
		ctx := t.Context()
		_, _, load := s.Load(ctx, "a")
		_, has := s.Has(ctx, "a")
		_, length := s.Len(ctx)
		for what, err := range map[string]error{
			"Save": s.Save(ctx, "a", 1), "SaveAll": s.SaveAll(ctx, maps.All(map[string]int{"a": 1})), "Load": load, "Has": has, "Delete": s.Delete(ctx, "a"),
			"Update": s.Update(ctx, "a", nothing), "Keys": errorOf(s.Keys(ctx, "")), "All": errorOf(s.All(ctx, "")), "Len": length, "Clear": s.Clear(ctx),
		} {
			assert.ErrorIs(t, err, core.ErrClosed, what)
		}
		facts.Expect("error.*", "error.*", "error.*", "error.*", "error.*")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, int64(1), e.closes.Load())
		err, _ := data.Failed("data").From(facts.Expect("saved.*", "error.*")[1])
		assert.ErrorIs(t, err, errOnPurpose)

		other := open(t, e, data.Options[int]{})
		assert.ErrorIs(t, other.Close(), errOnPurpose)
		assert.NoError(t, other.Close())
	})
}

func nothing(value int, _ bool) (int, error) { return value, nil }

func errorOf[T any](seq iter.Seq2[T, error]) (last error) {
	for _, err := range seq {
		last = err
	}
	return last
}

// Close can be called from everywhere. If it is called inside another call, that call is
// finished.
func TestCloseInFunctionsOfCallers(t *testing.T) {
	ctx := context.Background()
	for name, call := range map[string]func(s data.Store[string, int], sink *signals.Sink) error{
		"Update": func(s data.Store[string, int], _ *signals.Sink) error {
			return s.Update(ctx, "a", func(int, bool) (int, error) { return 0, s.Close() })
		},
		"SaveAll": func(s data.Store[string, int], _ *signals.Sink) error {
			return s.SaveAll(ctx, func(yield func(string, int) bool) { s.Close(); yield("a", 1) })
		},
		"Keys": func(s data.Store[string, int], _ *signals.Sink) error {
			n := 0
			for _, err := range s.Keys(ctx, "") {
				if n++; err != nil {
					return err
				}
				s.Close()
			}
			return map[bool]error{false: errOnPurpose}[n == 2]
		},
		"calls that have ended": func(s data.Store[string, int], _ *signals.Sink) error { // in any way, they keep nothing open
			ended, cancel := context.WithCancelCause(ctx)
			cancel(errOnPurpose)
			assert.ErrorIs(t, s.Save(ended, "a", 1), errOnPurpose)
			for range s.Keys(ctx, "") {
				break
			}
			assert.Panics(t, func() {
				for range s.Keys(ctx, "") {
					panic("on purpose")
				}
			})
			return s.Close()
		},
		"a handler of a direct call": func(s data.Store[string, int], sink *signals.Sink) error {
			sink.Subscribe("saved.*", func(signals.Signal) { s.Close() })
			return s.Save(ctx, "b", 1)
		},
		"a handler of a request": func(s data.Store[string, int], sink *signals.Sink) error {
			sink.Subscribe("saved.*", func(signals.Signal) { s.Close() })
			data.Save[int]("data").Raise(sink, "b", 1)
			synctest.Wait()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newSpy(nil)
				sink := signals.NewSink(signals.SinkOptions{})
				s := open(t, e, data.Options[int]{Sink: sink})
				require.NoError(t, s.SaveAll(t.Context(), maps.All(map[string]int{"a": 1, "b": 2})))
				assert.NoError(t, call(s, sink))
				assert.Equal(t, int64(1), e.closes.Load())
				assert.ErrorIs(t, s.Clear(t.Context()), core.ErrClosed)
			})
		})
	}
}

// SaveAll first reads all entries. Then it makes one call, in the order of the keys; of
// equal keys the last entry counts. If an entry is wrong, it saves none.
func TestSaveAll(t *testing.T) {
	var calls []string
	e := newSpy(func(_ context.Context, op string, items []data.Item) error {
		assert.Equal(t, op == "save", len(items) > 0)
		for _, item := range items {
			calls = append(calls, item.Key+string(item.Value))
		}
		return nil
	})
	s := open(t, e, data.Options[any]{})
	entries := func(more string, value any) iter.Seq2[string, any] {
		return func(yield func(string, any) bool) {
			assert.Empty(t, calls)
			_ = yield("b", 1) && yield("a", 2) && yield("b", 3) && yield(more, value)
		}
	}
	require.NoError(t, s.SaveAll(t.Context(), entries("c", nil)))
	assert.Equal(t, []string{"a2", "b3", "cnull"}, calls)
	calls = nil
	assert.ErrorContains(t, s.SaveAll(t.Context(), entries("", 1)), "a key must have 1 to 1024 bytes, not 0")
	assert.ErrorContains(t, s.SaveAll(t.Context(), entries("d", func() {})), `save "d": json: unsupported type`)
	assert.ErrorContains(t, s.Save(t.Context(), "d", strings.Repeat("x", 100_000_000)), "at most 16777216 bytes, not 100000002")
	require.NoError(t, s.SaveAll(t.Context(), maps.All(map[string]any{})))
	assert.Empty(t, calls)
	assert.Panics(t, func() { s.SaveAll(t.Context(), nil) })
}

// Update calls the function again if another call was faster. It ends with an error of the
// function or of the context, or with a panic. Then nothing changes.
func TestUpdate(t *testing.T) {
	s := open(t, datatest.Memory(), data.Options[int]{})
	ctx, calls := t.Context(), 0
	add := func(n int, _ bool) (int, error) {
		if calls++; calls < 3 {
			require.NoError(t, s.Save(ctx, "a", 10*calls))
		}
		return n + 1, nil
	}
	require.NoError(t, s.Update(ctx, "a", add))
	assert.Equal(t, 21, load(t, s, "a"))
	assert.Equal(t, 3, calls)

	kept := open(t, datatest.Memory(), data.Options[[]byte]{Codec: raw{}})
	require.NoError(t, kept.Save(ctx, "a", []byte("old")))
	require.NoError(t, kept.Update(ctx, "a", func(old []byte, _ bool) ([]byte, error) { return append(old[:0], "new"...), nil }))
	assert.Equal(t, "new", string(load(t, kept, "a")))

	assert.ErrorIs(t, s.Update(ctx, "a", func(int, bool) (int, error) { return 0, errOnPurpose }), errOnPurpose)
	assert.PanicsWithValue(t, "on purpose", func() { s.Update(ctx, "a", func(int, bool) (int, error) { panic("on purpose") }) })
	assert.Panics(t, func() { s.Update(ctx, "a", nil) })
	ending, cancel := context.WithCancelCause(ctx)
	assert.ErrorIs(t, s.Update(ending, "a", func(n int, _ bool) (int, error) {
		cancel(errOnPurpose)
		return n, s.Save(ctx, "a", n+1)
	}), errOnPurpose)
	assert.Equal(t, 22, load(t, s, "a"))
}

// raw is a codec that keeps the bytes.
type raw struct{}

func (raw) Encode(value []byte) ([]byte, error)   { return value, nil }
func (raw) Decode(encoded []byte) ([]byte, error) { return encoded, nil }

// Missing values, zero values and undecodable values differ. Errors name the key.
func TestLoad(t *testing.T) {
	e := datatest.Memory()
	s := open(t, e, data.Options[int]{Name: "orders"})
	ctx := t.Context()
	require.NoError(t, s.Save(ctx, "zero", 0))
	require.NoError(t, e.Save(ctx, []data.Item{{Key: "wrong", Value: []byte(`"text"`)}}))
	assert.Zero(t, load(t, s, "zero"))
	_, ok, err := s.Load(ctx, "missing")
	require.NoError(t, err)
	assert.False(t, ok)
	_, ok, err = s.Load(ctx, "wrong")
	assert.False(t, ok)
	assert.ErrorContains(t, err, `data: store "orders": load "wrong": json: cannot unmarshal string`)
	var wrong *json.UnmarshalTypeError
	assert.ErrorAs(t, err, &wrong)
	assert.ErrorContains(t, s.Update(ctx, "wrong", nothing), `data: store "orders": update "wrong": json: `)
	assert.ErrorContains(t, errorOf(s.All(ctx, "")), `data: store "orders": load "wrong": json: `)
	assert.ErrorContains(t, errorOf(s.Keys(ctx, strings.Repeat("x", data.MaxKey+1))), "not 1025")
	ending, cancel := context.WithCancelCause(ctx)
	cancelled := func(yield func(string, error) bool) {
		s.Keys(ending, "")(func(key string, err error) bool { cancel(errOnPurpose); return yield(key, err) })
	}
	assert.ErrorIs(t, errorOf(cancelled), errOnPurpose)
}
