package keyedsequential_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/keyedsequential"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// task is an item of these tests.
type task struct {
	key string
	do  coretest.Body
}

func keyOf(i task) string                   { return i.key }
func run(ctx context.Context, i task) error { return i.do(ctx) }

func TestLifecycle(t *testing.T) {
	coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
		s := core.Must(keyedsequential.New(keyOf, run, keyedsequential.Options{}))
		submit := func(ctx context.Context, body coretest.Body) error {
			_, err := s.Enqueue(ctx, task{"a", body})
			return err
		}
		return coretest.Subject{Lifecycle: s, Submit: submit, Sink: s.Sink(), Stats: s.Stats, WaitIdle: s.WaitIdle}
	})
}

// Every option reaches the coordinator. The weak points of the original: an item that waits
// for its key takes no slot from other keys, the id that Enqueue returns is that of the
// operation, and an Enqueue that gives up leaves nothing behind.
func TestOptionsAndBusyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		signals := coretest.Watch(t, sink, "order.*")
		var ended []string
		s := core.Must(keyedsequential.New(keyOf, run, keyedsequential.Options{
			Name: "orders", Sink: sink, MaxConcurrency: 3, MaxPerKey: 2, MaxQueued: 1, MaxTracked: 1, MaxAge: time.Minute, Timeout: time.Hour,
			OnDone: func(s core.Snapshot) { ended = append(ended, s.Key) },
		}))
		body := func(ctx context.Context) error {
			core.OperationFrom(ctx).Raise("order.shipped")
			<-ctx.Done()
			return ctx.Err()
		}
		var last core.OperationID
		for _, key := range []string{"a", "a", "a", "b"} {
			time.Sleep(time.Second)
			last = core.Must(s.TryEnqueue(t.Context(), task{key, body}))
			synctest.Wait()
		}
		var keys []string
		for _, raised := range signals.ExpectExactly("order.shipped", "order.shipped", "order.shipped") {
			assert.Equal(t, "orders", raised.Source)
			keys = append(keys, raised.Key)
		}
		assert.Equal(t, []string{"a", "a", "b"}, keys, "the third item of a waits and b runs")
		op, _ := s.Lookup(last)
		assert.Equal(t, "b", op.Key)
		_, err := s.TryEnqueue(t.Context(), task{"c", body})
		assert.ErrorIs(t, err, core.ErrFull, "of whatever key")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.Enqueue(ctx, task{"a", body})
		assert.ErrorIs(t, err, context.DeadlineExceeded)

		assert.ErrorIs(t, s.Wait(t.Context(), last), core.ErrTimeout)
		time.Sleep(time.Hour)
		for range 2 {
			assert.NoError(t, s.Do(t.Context(), task{"c", func(context.Context) error { return nil }}))
		}
		assert.Equal(t, []string{"a", "a", "b", "a", "c", "c"}, ended)
		assert.Equal(t, 2, s.Stats().Tracked, "one, and the one that failed less than MaxAge ago")
		time.Sleep(time.Minute)
		assert.Zero(t, s.Stats().Tracked)
	})
	s := core.Must(keyedsequential.New(keyOf, run, keyedsequential.Options{}))
	assert.Equal(t, "keyedsequential", s.Name())
	_, err := keyedsequential.New(keyOf, nil, keyedsequential.Options{})
	assert.ErrorContains(t, err, "keyedsequential: ")
}
