package keyedsequential_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/keyedsequential"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// task is an item of these tests.
type task struct {
	key customer
	do  coretest.Body
}

type customer string

func keyOf(i task) customer                 { return i.key }
func run(ctx context.Context, i task) error { return i.do(ctx) }
func takes(d time.Duration) coretest.Body {
	return func(context.Context) error { time.Sleep(d); return nil }
}
func quick(context.Context) error { return nil }
func id(n int) customer           { return customer(strconv.Itoa(n)) }
func newOne(t testing.TB, opts keyedsequential.Options) *keyedsequential.Sequencer[task] {
	t.Helper()
	s, err := keyedsequential.New(keyOf, run, opts)
	require.NoError(t, err)
	return s
}

func enqueue(t testing.TB, s *keyedsequential.Sequencer[task], key customer, do coretest.Body) core.OperationID {
	t.Helper()
	id, err := s.TryEnqueue(task{key, do})
	require.NoError(t, err)
	return id
}

var errOnPurpose = errors.New("failed on purpose")

// Items of one key, items of many, and fewer workers than keys.
func TestLifecycle(t *testing.T) {
	for name, c := range map[string]struct {
		opts keyedsequential.Options
		keys int
	}{
		"many keys":  {keyedsequential.Options{}, 1000},
		"one worker": {keyedsequential.Options{MaxConcurrency: 1, MaxQueued: 2, MaxTracked: 1}, 3},
		"one key":    {keyedsequential.Options{MaxPerKey: 2}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				s := newOne(t, c.opts)
				var mu sync.Mutex
				n := 0
				next := func() customer {
					mu.Lock()
					defer mu.Unlock()
					n++
					return id(n % c.keys)
				}
				return coretest.Subject{
					Lifecycle: s,
					Submit: func(ctx context.Context, body coretest.Body) error {
						_, err := s.Enqueue(ctx, task{next(), body})
						return err
					},
					Sink:  s.Sink(),
					Stats: s.Stats,
				}
			})
		})
	}
}

// Order within a key, never two of a key at once, never more than the limit; checked
// against what was accepted, with random keys and durations.
func TestOrderPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		const keys, limit = 7, 4
		s := newOne(t, keyedsequential.Options{MaxConcurrency: limit})
		var mu sync.Mutex
		all, running, done := 0, map[customer]int{}, map[customer][]int{}
		accepted := map[customer][]int{}
		for i := range 500 {
			key, d := id(random.IntN(keys)), time.Duration(random.IntN(1000))*time.Millisecond
			accepted[key] = append(accepted[key], i)
			_, err := s.Enqueue(t.Context(), task{key, func(context.Context) error {
				mu.Lock()
				all++
				running[key]++
				assert.Equal(t, 1, running[key])
				assert.LessOrEqual(t, all, limit)
				mu.Unlock()
				time.Sleep(d)
				mu.Lock()
				all--
				running[key]--
				done[key] = append(done[key], i)
				mu.Unlock()
				return nil
			}})
			require.NoError(t, err)
		}
		require.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, accepted, done)
	})
}

func TestMaxPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 10, MaxPerKey: 3})
		for range 9 {
			enqueue(t, s, "a", takes(time.Second))
		}
		synctest.Wait()
		assert.Equal(t, 3, s.Stats().Running)
		begun := time.Now()
		require.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, 3*time.Second, time.Since(begun))
	})
}

// Weak point: head-of-line blocking. A second item of a busy key parks the loop, with a
// global slot, and nothing behind it starts even if its key is idle.
func TestABusyKeyHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 2})
		for range 100 {
			enqueue(t, s, "hot", takes(time.Hour))
		}
		begun := time.Now()
		var cold []core.OperationID
		for i := range 100 {
			cold = append(cold, enqueue(t, s, id(i), takes(time.Second)))
		}
		for i, id := range cold {
			require.NoError(t, s.Wait(t.Context(), id))
			assert.Equal(t, time.Duration(i+1)*time.Second, time.Since(begun), "as if alone with the other slot")
		}
		assert.Equal(t, 1, s.Stats().Running)
		require.NoError(t, s.Close())
	})
}

// Weak point: fairness has no effect. Keys take turns, however many items one has, and
// however they came.
func TestKeysTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 1})
		var order []string
		add := func(key customer, n int) {
			for i := range n {
				enqueue(t, s, key, func(context.Context) error {
					order = append(order, fmt.Sprintf("%s%d", key, i))
					time.Sleep(time.Second)
					return nil
				})
			}
		}
		add("a", 5)
		add("b", 2)
		add("c", 1)
		require.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, []string{"a0", "b0", "c0", "a1", "b1", "a2", "a3", "a4"}, order)
	})
}

// Weak point: the number returned by enqueue is not the id of the operation.
func TestIDsAreThoseOfTheOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{})
		for range 3 {
			var inside core.OperationID
			id := enqueue(t, s, "a", func(ctx context.Context) error {
				inside = core.OperationFrom(ctx).ID()
				return errOnPurpose
			})
			assert.ErrorIs(t, s.Wait(t.Context(), id), errOnPurpose)
			assert.Equal(t, id, inside)
			op, ok := s.Lookup(id)
			assert.True(t, ok)
			assert.Equal(t, id, op.ID)
			assert.Equal(t, "a", op.Key)
		}
	})
}

// Weak point: an enqueue that is cancelled while it waits for room leaves its key
// counted, and at last refused for ever.
func TestACancelledEnqueueLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 1, MaxQueued: 1})
		enqueue(t, s, "a", takes(time.Hour))
		synctest.Wait()
		enqueue(t, s, "a", quick)
		for range 100 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
			_, err := s.Enqueue(ctx, task{"b", quick})
			assert.ErrorIs(t, err, errOnPurpose)
			cancel()
			_, err = s.TryEnqueue(task{"b", quick})
			assert.ErrorIs(t, err, core.ErrFull)
		}
		require.NoError(t, s.Flush(t.Context()))
		assert.NoError(t, s.Do(t.Context(), task{"b", quick}))
		got := s.Stats()
		assert.NoError(t, coretest.CheckBooks(got))
		assert.Equal(t, uint64(200), got.Rejected)
		assert.Equal(t, uint64(3), got.Succeeded)
	})
}

// Weak point: records of idle keys are kept without bound. Here, nothing is kept.
func TestNoKeyLeavesAnythingBehind(t *testing.T) {
	s := newOne(t, keyedsequential.Options{MaxTracked: -1})
	enqueueAll := func(from, to int) {
		for i := from; i < to; i++ {
			_, err := s.Enqueue(t.Context(), task{id(i), quick})
			require.NoError(t, err)
		}
		require.NoError(t, s.Flush(t.Context()))
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	n := 50_000
	if testing.Short() {
		n = 10_000
	}
	enqueueAll(0, n)
	before := heap()
	enqueueAll(n, 3*n)
	after := heap()
	assert.Less(t, int64(after)-int64(before), int64(64<<10), "whether there were %d keys or none", 2*n)
	runtime.KeepAlive(s)
}

// Weak point: the text of a key is its identity by accident. Here it is by design: keys
// are texts, and the same text is the same key.
func TestKeysAreTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 8})
		for _, key := range []customer{"a", "A", "a ", "", "ä", "a\u0308"} {
			enqueue(t, s, key, takes(time.Second))
			enqueue(t, s, key, takes(time.Second))
		}
		synctest.Wait()
		assert.Equal(t, 6, s.Stats().Running, "each different from the others, the empty one too")
		n := 0
		for op := range s.Operations(core.OperationQuery{Key: "a"}) {
			assert.Equal(t, "a", op.Key)
			n++
		}
		assert.Equal(t, 2, n)
		require.NoError(t, s.Drain(t.Context()))
	})
}

// A failure or a panic of one item does not keep the next of its key from starting.
func TestFailuresDoNotStopTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 2})
		enqueue(t, s, "a", func(context.Context) error { return errOnPurpose })
		enqueue(t, s, "a", func(context.Context) error { panic("on purpose") })
		enqueue(t, s, "a", func(context.Context) error { runtime.Goexit(); return nil })
		assert.NoError(t, s.Do(t.Context(), task{"a", quick}))
		assert.Equal(t, core.Stats{Enqueued: 4, Succeeded: 1, Failed: 3, Limit: 2, Tracked: 4}, s.Stats())
	})
}

func TestExplainNamesWhoHasTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 2})
		first := enqueue(t, s, "a", takes(time.Second))
		second := enqueue(t, s, "a", quick)
		synctest.Wait()
		x, ok := s.Explain(second)
		assert.True(t, ok)
		require.NotEmpty(t, x.Reasons)
		assert.Equal(t, core.ReasonKey, x.Reasons[0].Kind)
		assert.Equal(t, first, x.Reasons[0].Holder)
		assert.True(t, s.Cancel(second, nil))
		assert.ErrorIs(t, s.Wait(t.Context(), second), core.ErrCancelled)
		require.NoError(t, s.Drain(t.Context()))
	})
}

func TestSignalsCarryTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		s := newOne(t, keyedsequential.Options{Name: "orders", Sink: sink})
		require.Same(t, sink, s.Sink())
		signals := coretest.Watch(t, sink, "order.*")
		require.NoError(t, s.Do(t.Context(), task{"a", func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("order.shipped")
			return nil
		}}))
		raised := signals.ExpectExactly("order.shipped")
		assert.Equal(t, "a", raised[0].Key)
		assert.Equal(t, "orders", raised[0].Source)
	})
}

func TestOptions(t *testing.T) {
	s := newOne(t, keyedsequential.Options{})
	assert.Equal(t, "keyedsequential", s.Name())
	assert.Equal(t, runtime.GOMAXPROCS(0), s.Stats().Limit)

	for field, opts := range map[string]keyedsequential.Options{
		"MaxConcurrency": {MaxConcurrency: -1},
		"MaxPerKey":      {MaxPerKey: -1},
		"MaxQueued":      {MaxQueued: -1},
	} {
		s, err := keyedsequential.New(keyOf, run, opts)
		assert.Nil(t, s)
		assert.ErrorContains(t, err, "keyedsequential: ")
		assert.ErrorContains(t, err, field)
	}
	_, err := keyedsequential.New[task, customer](nil, run, keyedsequential.Options{})
	assert.Error(t, err, "there must be a key")
	_, err = keyedsequential.New(keyOf, nil, keyedsequential.Options{})
	assert.Error(t, err, "there must be work to do")
}

// Finished operations are shown as long as the options say.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxTracked: 2, MaxAge: time.Minute})
		for range 5 {
			require.NoError(t, s.Do(t.Context(), task{"a", quick}))
		}
		synctest.Wait()
		assert.Equal(t, 2, s.Stats().Tracked)
		time.Sleep(time.Minute)
		assert.Equal(t, 0, s.Stats().Tracked)
	})
}

func TestEveryOperationIsFinalizedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxTracked: 1})
		var mu sync.Mutex
		var left []string
		s.OnFinalized(func(op core.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, op.Key)
		})
		enqueue(t, s, "a", quick)
		enqueue(t, s, "b", quick)
		require.NoError(t, s.Drain(t.Context()))
		require.NoError(t, s.Close())
		assert.ElementsMatch(t, []string{"a", "b"}, left)
	})
}
