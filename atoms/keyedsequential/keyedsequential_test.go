package keyedsequential_test

import (
	"context"
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
	id, err := s.TryEnqueue(context.Background(), task{key, do})
	require.NoError(t, err)
	return id
}

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
				return coretest.Subject{
					Lifecycle: s,
					Submit: func(ctx context.Context, body coretest.Body) error {
						_, err := s.Enqueue(ctx, task{id(rand.IntN(c.keys)), body})
						return err
					},
					Sink:     s.Sink(),
					Stats:    s.Stats,
					WaitIdle: s.WaitIdle,
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

// An item that waits for its busy key takes no slot from other keys.
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

// The order within a key stays, however many may run.
func TestSetMaxConcurrencyKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 1})
		require.NoError(t, s.SetMaxConcurrency(8))
		for range 3 {
			enqueue(t, s, "a", takes(time.Second))
			enqueue(t, s, "b", takes(time.Second))
		}
		begun := time.Now()
		require.NoError(t, s.Drain(t.Context()))
		assert.Equal(t, 3*time.Second, time.Since(begun))
	})
}

// Every option reaches the coordinator.
func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "order.*")
		var ended []core.Snapshot
		s := newOne(t, keyedsequential.Options{
			Name: "orders", Sink: sink, MaxConcurrency: 1, MaxQueued: 1, MaxTracked: 2, MaxAge: time.Minute, Timeout: time.Hour,
			OnDone: func(s core.Snapshot) { ended = append(ended, s) },
		})
		id := enqueue(t, s, "a", func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("order.shipped")
			<-ctx.Done()
			return ctx.Err()
		})
		synctest.Wait()
		enqueue(t, s, "a", quick)
		_, err := s.TryEnqueue(t.Context(), task{"b", quick})
		assert.ErrorIs(t, err, core.ErrFull)
		assert.ErrorIs(t, s.Wait(t.Context(), id), core.ErrTimeout)
		require.NoError(t, s.Do(t.Context(), task{"b", quick}))
		assert.Equal(t, []string{"a", "a", "b"}, []string{ended[0].Key, ended[1].Key, ended[2].Key})
		assert.Equal(t, id, ended[0].ID)
		raised := signals.ExpectExactly("order.shipped")[0]
		assert.Equal(t, []string{"a", "orders"}, []string{raised.Key, raised.Source})
		require.NoError(t, s.Do(t.Context(), task{"c", quick}))
		assert.Equal(t, 3, s.Stats().Tracked, "two, and the one that failed")
		time.Sleep(time.Minute)
		assert.Zero(t, s.Stats().Tracked)
	})
	s := newOne(t, keyedsequential.Options{})
	assert.Equal(t, "keyedsequential", s.Name())
	assert.Equal(t, runtime.GOMAXPROCS(0), s.Stats().Limit)
	for _, opts := range []keyedsequential.Options{{MaxConcurrency: -1}, {MaxPerKey: -1}} {
		_, err := keyedsequential.New(keyOf, run, opts)
		assert.ErrorContains(t, err, "keyedsequential: ")
	}
	_, err := keyedsequential.New[task, customer](nil, run, keyedsequential.Options{})
	assert.ErrorContains(t, err, "keyedsequential: ")
	_, err = keyedsequential.New(keyOf, nil, keyedsequential.Options{})
	assert.ErrorContains(t, err, "keyedsequential: ")
}
