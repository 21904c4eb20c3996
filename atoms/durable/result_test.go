package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
)

// A gong wakes all that wait for a name, as the wakers of engines do, and counts.
type gong struct {
	mu    sync.Mutex
	fns   map[string][]func()
	rings map[string]int
}

func newGong() *gong { return &gong{fns: map[string][]func(){}, rings: map[string]int{}} }

func (b *gong) Wake(name string) {
	b.mu.Lock()
	b.rings[name]++
	fns := b.fns[name]
	b.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

func (b *gong) OnWake(name string, fn func()) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fns[name] = append(b.fns[name], fn)
	return func() {}
}

// The result of an item comes to all processes that wait, when it ends and not at a poll; or why there is none.
func TestWait(t *testing.T) {
	inBubble(t, func(s *shop) {
		b := newGong()
		opts := durable.Options{Waker: b, Poll: time.Hour, Lease: 4 * time.Hour, MaxResult: 20}
		run := s.serve(func(ctx context.Context, item string) error {
			time.Sleep(70 * time.Second)
			switch item {
			case "bad":
				return durable.Permanent(errOnPurpose)
			case "none":
				return nil
			}
			assert.ErrorContains(s, durable.Return(ctx, strings.Repeat("x", 19)), "has 21 bytes, more than 20")
			assert.ErrorContains(s, durable.Return(ctx, func() {}), "has no JSON")
			assert.NoError(s, durable.Return(ctx, 0))
			return durable.Return(ctx, map[string]int{item: len(item)})
		}, opts)
		s.enqueue(run, "first")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.Zero(t, b.rings["durable\x01ended"], "nobody waits")
		there := s.queue(new(log).work, opts)
		for item, want := range map[string]string{"good": "", "bad": "durable: item 3 is dead: on purpose", "none": durable.ErrNoResult.Error(), "unknown": durable.ErrUnknown.Error()} {
			id := durable.ItemID(1 << 40)
			if item != "unknown" {
				id = s.enqueue(there, item)[0]
				want = strings.ReplaceAll(want, "item 3", "item "+string(rune('0'+id)))
			}
			began := time.Now()
			got, err := durable.Wait[map[string]int](s.Context(), there, id)
			if item == "good" {
				require.NoError(t, err)
				assert.Equal(t, map[string]int{"good": 4}, got)
				_, err = durable.Wait[string](s.Context(), there, id)
				assert.ErrorContains(t, err, "decode the result of item")
			} else {
				assert.ErrorContains(t, err, want)
			}
			assert.LessOrEqual(t, time.Since(began), 70*time.Second, item)
		}
		ctx, cancel := context.WithTimeoutCause(s.Context(), time.Second, errOnPurpose)
		defer cancel()
		id := s.enqueue(there, "good")[0]
		_, err := durable.Wait[int](ctx, there, id)
		assert.ErrorIs(t, err, errOnPurpose)
		ended, err := there.Cancel(s.Context(), id, "left")
		require.NoError(t, err)
		assert.True(t, ended)
		assert.ErrorContains(t, durable.Return(s.Context(), 1), "is for the body of an item")
	})
}

// A result of an attempt that failed is not kept; one that comes after Finish is an error.
func TestReturnAndTheEnd(t *testing.T) {
	inBubble(t, func(s *shop) {
		tries := 0
		q := s.serve(func(ctx context.Context, item string) error {
			if tries++; tries == 1 {
				return errors.Join(durable.Return(ctx, "first"), errOnPurpose)
			}
			if item == "finished" {
				outcome, err := endDone(durable.StoreFrom(ctx), durable.ClaimFrom(ctx))
				assert.Equal(s, durable.OutcomeEnded, outcome)
				durable.MarkFinished(ctx)
				assert.ErrorContains(s, durable.Return(ctx, "late"), "Return was called after Finish")
				return err
			}
			return nil
		}, durable.Options{})
		for _, item := range []string{"plain", "finished"} {
			_, err := durable.Wait[string](s.Context(), q, s.enqueue(q, item)[0])
			assert.ErrorIs(t, err, durable.ErrNoResult)
		}
	})
}

// Metrics read the store once in two seconds, and keep what they know if it fails.
func TestMetrics(t *testing.T) {
	inBubble(t, func(s *shop) {
		f := &faulty{Store: s.store}
		d := &depths{Store: f}
		s.store = d
		q := s.serve(func(ctx context.Context, _ string) error { return sleep(ctx, 3*time.Second) }, durable.Options{MaxConcurrency: 1})
		in := q.Inspect()
		s.enqueue(q, "a", "b", "c/1", "c/2")
		time.Sleep(time.Second)
		m := in.Stats()
		assert.Equal(t, []durable.LaneStats{{Ready: durable.Waits{Items: 2, Oldest: time.Second}, Running: durable.Waits{Items: 1, Oldest: time.Second}, Blocked: durable.Waits{Items: 1, Oldest: time.Second}}}, m.Lanes)
		assert.Equal(t, []any{uint64(1), uint64(0), 1}, []any{m.Claimed, m.Ended, d.asked})
		time.Sleep(1999 * time.Millisecond)
		assert.Equal(t, []any{time.Second, 1}, []any{time.Since(in.Stats().Read).Round(time.Second) - time.Second, d.asked})
		d.fails = true
		time.Sleep(10 * time.Second)
		synctest.Wait()
		m = in.Stats()
		assert.Equal(t, []any{uint64(4), uint64(4), uint64(1), 2, 1}, []any{m.Claimed, m.Ended, m.Errors, m.Lanes[0].Ready.Items, len(m.Lanes)})
		assert.Equal(t, []bool{true, true}, []bool{m.ClaimLatency > 500*time.Millisecond, m.EndLatency < time.Second})
		d.fails = false
		time.Sleep(2 * time.Second)
		assert.Empty(t, in.Stats().Lanes)
		assert.Contains(t, in.Stats().String(), `"claimLatency"`)
		assert.Zero(t, in.Stats().Lost)
		f.cut.Store(true)
		time.Sleep(time.Minute)
		f.cut.Store(false)
		time.Sleep(time.Minute)
		assert.Positive(t, in.Stats().Lost)
	})
}

// depths is a store that counts how often it is asked for depths, and may fail.
type depths struct {
	durable.Store
	asked int
	fails bool
}

func (d *depths) Depths(ctx context.Context, queue string) ([]durable.Depth, error) {
	if d.asked++; d.fails {
		return nil, errOnPurpose
	}
	return d.Store.Depths(ctx, queue)
}
