package durable_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// hostile is an error of which the named method panics.
type hostile string

func (h hostile) panics(method string) {
	if string(h) == method {
		panic(method)
	}
}

func (h hostile) Error() string   { h.panics("Error"); return "hostile" }
func (h hostile) Unwrap() error   { h.panics("Unwrap"); return nil }
func (h hostile) Is(error) bool   { h.panics("Is"); return false }
func (h hostile) As(any) bool     { h.panics("As"); return false }
func (h hostile) Permanent() bool { h.panics("Permanent"); return false }

// An error whose methods panic ends the item as any other error does: its key and its slot are free.
func TestErrorPanics(t *testing.T) {
	inBubble(t, func(s *shop) {
		bad := []error{hostile("Error"), hostile("Unwrap"), hostile("Is"), hostile("As"), hostile("Permanent"), (*fs.PathError)(nil)}
		var l log
		q := s.serve(func(_ context.Context, item string) error {
			n := 0
			if _, err := fmt.Sscanf(item, "a/%d", &n); err == nil {
				return bad[n]
			}
			l.add(item)
			return nil
		}, durable.Options{MaxConcurrency: 2, MaxAttempts: 2, Backoff: time.Second})
		for n := range bad {
			s.enqueue(q, fmt.Sprint("a/", n))
		}
		id := s.enqueue(q, "a/next", "b")
		time.Sleep(time.Minute)
		assert.Equal(t, "b a/next", l.take())
		stats := s.stats(q)
		assert.Equal(t, len(bad), stats.Dead)
		assert.Zero(t, q.Here().Stats().Running)
		x, err := q.Explain(s.Context(), id[0]-durable.ItemID(len(bad)))
		require.NoError(t, err)
		assert.Contains(t, x.Item.Err, "hostile, whose method Error panicked")
	})
}

// evil is an item whose methods for JSON panic.
type evil string

func (e *evil) UnmarshalJSON(data []byte) error {
	if string(data) == `"in"` {
		panic("on purpose")
	}
	*e = evil(data)
	return nil
}

func (e evil) MarshalJSON() ([]byte, error) {
	if e == "out" {
		panic("on purpose")
	}
	return []byte(`"` + e + `"`), nil
}

// An item is dead if its decoder panics, and the others go on. What panics in a call of the user is its error.
func TestCoderPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ended := durable.Memory(), make(chan evil, 1)
		key := func(e evil) string {
			if e == "key" {
				panic("on purpose")
			}
			return "a"
		}
		q, err := durable.New(store, key, func(ctx context.Context, e evil) error {
			assert.ErrorContains(t, durable.Return(ctx, evil("out")), "panicked: on purpose")
			ended <- e
			return durable.Return(ctx, evil("in"))
		}, durable.Options{})
		require.NoError(t, err)
		for item, what := range map[evil]string{"out": "encode an item", "key": "key of an item"} {
			_, err = q.Enqueue(t.Context(), item)
			assert.ErrorContains(t, err, what)
			assert.ErrorContains(t, err, "panicked: on purpose")
		}
		bad, err := q.Enqueue(t.Context(), "in")
		require.NoError(t, err)
		good, err := q.Enqueue(t.Context(), "good")
		require.NoError(t, err)
		go q.Run(context.Background())
		assert.EqualValues(t, `"good"`, <-ended)
		_, err = durable.Wait[evil](t.Context(), q, bad)
		dead, ok := errors.AsType[*durable.EndedError](err)
		require.True(t, ok)
		assert.Equal(t, durable.Dead, dead.State)
		assert.Contains(t, dead.Err, "decode item 1")
		_, err = durable.Wait[evil](t.Context(), q, good)
		assert.ErrorContains(t, err, "panicked: on purpose")
		require.NoError(t, q.Close())
	})
}

// A heartbeat may take a third of a lease: bodies that compute may leave a process little processor time. What takes
// longer ends the lease, with a reason.
func TestSlowBeats(t *testing.T) {
	inBubble(t, func(s *shop) {
		f := &faulty{Store: s.store}
		s.store = f
		var l log
		q := s.serve(func(ctx context.Context, item string) error {
			l.add(item)
			return sleep(ctx, time.Hour)
		}, durable.Options{Lease: 10 * time.Second, MaxAttempts: 1})
		signals := watch(s, q, "durable.returned, durable.lease.*")
		s.enqueue(q, "a/1")
		f.beatTakes.Store(int64(3500 * time.Millisecond))
		time.Sleep(2 * time.Minute)
		signals.ExpectExactly()
		assert.Equal(t, "a/1", l.take())
		f.beatTakes.Store(int64(20 * time.Second))
		time.Sleep(15 * time.Second)
		why, _ := durable.LeaseLost.From(signals.Expect(durable.SignalLeaseLost)[0])
		assert.ErrorContains(t, why, "this process lives, but the store has accepted no heartbeat for 9s")
		assert.ErrorContains(t, why, "processor time")
		f.beatTakes.Store(0)
	})
}
