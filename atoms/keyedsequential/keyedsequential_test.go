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
func id(n int) customer                     { return customer(strconv.Itoa(n)) }

func newOne(_ testing.TB, opts keyedsequential.Options) *keyedsequential.Sequencer[task] {
	return core.Must(keyedsequential.New(keyOf, run, opts))
}

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		s := newOne(t, keyedsequential.Options{})
		return coretest.Subject{
			Lifecycle: s,
			Submit: func(ctx context.Context, body coretest.Body) error {
				_, err := s.Enqueue(ctx, task{id(rand.IntN(1000)), body})
				return err
			},
			Sink:     s.Sink(),
			Stats:    s.Stats,
			WaitIdle: s.WaitIdle,
		}
	})
}

// Order within a key, never two of a key at once, never more than the limit; checked
// against what was accepted, with random keys and durations.
func TestOrderPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		const keys, limit = 7, 4
		s := newOne(t, keyedsequential.Options{MaxConcurrency: 1})
		require.NoError(t, s.SetMaxConcurrency(limit)) // keeps the order
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
			core.Must(s.TryEnqueue(t.Context(), task{"a", func(context.Context) error { time.Sleep(time.Second); return nil }}))
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
		quick := func(context.Context) error { return nil }
		id := core.Must(s.TryEnqueue(t.Context(), task{"a", func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("order.shipped")
			<-ctx.Done()
			return ctx.Err()
		}}))
		synctest.Wait()
		core.Must(s.TryEnqueue(t.Context(), task{"a", quick}))
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
