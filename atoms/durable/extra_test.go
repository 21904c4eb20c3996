package durable_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/durable"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// An item has attempts, a timeout, a time and metadata of its own; the others have those of the queue.
func TestOptionsOfAnItem(t *testing.T) {
	inBubble(t, func(s *shop) {
		var mu sync.Mutex
		var runs []string
		began := time.Now()
		q := s.serve(func(ctx context.Context, item string) error {
			mu.Lock()
			runs = append(runs, fmt.Sprint(item, " ", time.Since(began).Round(time.Second), " ", durable.ClaimFrom(ctx).Metadata["tenant"]))
			mu.Unlock()
			return sleep(ctx, time.Hour)
		}, durable.Options{MaxAttempts: 2, Timeout: 10 * time.Second, Backoff: time.Nanosecond, MaxBackoff: time.Nanosecond, MaxConcurrency: 10})
		raised := watch(s, q, durable.SignalFailed)
		ids, err := q.EnqueueAll(s.Context(), []string{"of the queue", "own", "long"}, durable.ItemOptions{},
			durable.ItemOptions{MaxAttempts: 1, Timeout: time.Second, RunAt: began.Add(time.Minute), Delay: time.Second, Metadata: map[string]string{"tenant": "acme"}},
			durable.ItemOptions{MaxAttempts: 1, Timeout: time.Minute, RunAt: began.Add(-time.Hour)})
		require.NoError(t, err)
		page, err := q.List(s.Context(), durable.Query{})
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"tenant": "acme"}, page.Items[2].Metadata, "on lists")
		time.Sleep(5 * time.Minute)
		assert.Equal(t, "dead dead dead", s.states(q, ids...))
		assert.ElementsMatch(t, []string{"of the queue 0s ", "of the queue 10s ", "own 1m0s acme", "long 0s "}, runs)
		dead := raised.Expect(durable.SignalFailed, durable.SignalFailed, durable.SignalFailed)
		for n, want := range []time.Duration{10 * time.Second, time.Minute, 61 * time.Second} {
			item, _ := durable.ItemFailed.From(dead[n])
			assert.Equal(t, want, item.Failing.Sub(began).Round(time.Second))
			assert.Contains(t, item.Err, core.ErrTimeout.Error())
		}
		x, err := q.Explain(s.Context(), ids[1])
		require.NoError(t, err)
		assert.Equal(t, 1, x.MaxAttempts)
		detail, _, err := q.Inspect().Item(s.Context(), int64(ids[1]))
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"tenant": "acme"}, detail.Metadata, "on pages")
		shown, err := q.Inspect().Items(s.Context(), inspect.ItemQuery{Limit: 10})
		require.NoError(t, err)
		assert.Len(t, shown.Items, 3)
	})
}

// What is wrong with the options of an item is an error, and nothing is added.
func TestWrongOptionsOfAnItem(t *testing.T) {
	inBubble(t, func(s *shop) {
		q := s.queue((&log{}).work, durable.Options{})
		for want, opts := range map[string]durable.ItemOptions{
			"Metadata has 4097 bytes":   {Metadata: map[string]string{"a": strings.Repeat("b", 4096)}},
			"Metadata has a name":       {Metadata: map[string]string{"a": "\xff"}},
			"Timeout is -1ns":           {Timeout: -1},
			"RunAt is in the year":      {RunAt: time.Unix(1<<40, 0)},
			"Replace needs Unique":      {Replace: true},
			"SkipIfAlive needs a key":   {SkipIfAlive: true},
			"options for 1 of 2 items":  {Lane: "two"},
			"Unique or SkipIfAlive":     {Lane: "unique"},
			"UniqueFor is -1ns":         {Unique: "x", UniqueFor: -1},
			"lane \"nobody\": ":         {Lane: "nobody"},
			"class \"nobody\": ":        {Class: "nobody"},
			"ItemOptions.Unique is not": {Unique: "\xff"},
		} {
			var err error
			switch opts.Lane {
			case "two":
				_, err = q.EnqueueAll(s.Context(), []string{"a", "b"}, durable.ItemOptions{})
			case "unique":
				_, _, err = q.EnqueueUnique(s.Context(), "a/")
			default:
				_, err = q.EnqueueAll(s.Context(), []string{"a/", "b"}, durable.ItemOptions{}, opts)
			}
			assert.ErrorContains(t, err, want)
		}
		assert.Zero(t, s.stats(q).Items)
	})
}

type tenant struct{}

// carrier takes a value of a context over processes.
type carrier struct{ about chan map[string]string }

func (carrier) Inject(ctx context.Context) map[string]string {
	switch value := ctx.Value(tenant{}); value {
	case nil:
		return nil
	case "panic":
		panic("no")
	default:
		return map[string]string{"tenant": value.(string)}
	}
}

func (c carrier) Extract(ctx context.Context, carried, about map[string]string) context.Context {
	c.about <- maps.Clone(about)
	if carried["tenant"] == "bob" {
		panic("no")
	}
	return context.WithValue(ctx, tenant{}, carried["tenant"])
}

// What a context carries at Enqueue comes to all attempts, in whatever process.
func TestCarrier(t *testing.T) {
	inBubble(t, func(s *shop) {
		c := carrier{make(chan map[string]string, 10)}
		var got []any
		work := func(ctx context.Context, item string) error {
			got = append(got, ctx.Value(tenant{}))
			if durable.ClaimFrom(ctx).Attempt == 1 {
				return errOnPurpose
			}
			return nil
		}
		producer := s.queue(work, durable.Options{Carrier: c})
		for n, of := range []any{"ada", nil, "panic", strings.Repeat("long", 2000), "bob"} {
			ctx := s.Context()
			if of != nil {
				ctx = context.WithValue(ctx, tenant{}, of)
			}
			_, err := producer.With(durable.ItemOptions{Metadata: map[string]string{"n": fmt.Sprint(n)}}).Enqueue(ctx, "a/")
			require.NoError(t, err)
		}
		q := s.serve(work, durable.Options{Carrier: c, Backoff: 1, MaxBackoff: 1})
		time.Sleep(time.Minute)
		assert.Equal(t, 5, s.stats(q).Done)
		assert.Equal(t, []any{"ada", "ada", "", "", "", "", "", "", nil, nil}, got)
		assert.Equal(t, map[string]string{"item": "1", "attempt": "1", "metadata.n": "0"}, <-c.about)
		assert.Equal(t, "2", (<-c.about)["attempt"])
	})
}

// Of several processes with the same jobs, one adds each, and a job never runs twice at a time. The newest data of an id takes the place
// of what waits.
func TestReplaceAndSkip(t *testing.T) {
	inBubble(t, func(s *shop) {
		ran := &log{}
		work := func(ctx context.Context, item string) error {
			ran.add(item)
			return sleep(ctx, time.Minute)
		}
		first, second := s.serve(work, durable.Options{Node: "first"}), s.serve(work, durable.Options{Node: "second"})
		for n := range 5 {
			one, added, err := first.With(durable.ItemOptions{SkipIfAlive: true}).EnqueueUnique(s.Context(), fmt.Sprint("job/", n))
			require.NoError(t, err)
			assert.True(t, added)
			two, added, err := second.With(durable.ItemOptions{SkipIfAlive: true}).EnqueueUnique(s.Context(), fmt.Sprint("job/ again", n))
			require.NoError(t, err)
			assert.False(t, added)
			assert.Equal(t, one, two)
			time.Sleep(2 * time.Minute)
		}
		assert.Equal(t, "job/0 job/1 job/2 job/3 job/4", ran.take())
		newest := func(delay time.Duration) *durable.Queue[string] {
			return second.With(durable.ItemOptions{Unique: "doc", Replace: true, Delay: delay})
		}
		id, added, err := newest(time.Hour).EnqueueUnique(s.Context(), "doc/1")
		require.NoError(t, err)
		assert.True(t, added)
		for n := range 3 {
			time.Sleep(time.Minute)
			same, added, err := newest(time.Minute/2).EnqueueUnique(s.Context(), fmt.Sprint("doc/", n+2))
			require.NoError(t, err)
			assert.Equal(t, n > 0, added, "the one before runs")
			assert.Equal(t, n > 0, same != id)
		}
		_, err = second.With(durable.ItemOptions{Unique: "doc", Replace: true}).Enqueue(s.Context(), "other/")
		assert.ErrorIs(t, err, durable.ErrOrder)
		time.Sleep(time.Hour)
		assert.Equal(t, "doc/2 doc/3 doc/4", ran.take())
	})
}

// WaitAll waits for items in other processes, and says which have ended badly.
func TestWaitAll(t *testing.T) {
	inBubble(t, func(s *shop) {
		work := func(ctx context.Context, item string) error {
			if item == "b" {
				return durable.Permanent(errOnPurpose)
			}
			return sleep(ctx, time.Minute)
		}
		producer := s.queue(work, durable.Options{})
		ids := s.enqueue(producer, "a", "b", "c")
		began := time.Now()
		s.serve(work, durable.Options{MaxConcurrency: 1})
		err := producer.WaitAll(s.Context(), append(ids, 4711)...)
		var ended *durable.EndedError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, ids[1], ended.ID)
		assert.ErrorIs(t, err, durable.ErrUnknown)
		assert.NotContains(t, err.Error(), "item 1 ")
		assert.InDelta(t, 2*time.Minute, time.Since(began), float64(5*time.Second))
		assert.NoError(t, producer.WaitAll(s.Context(), ids[0], ids[2]))
		assert.NoError(t, producer.WaitAll(s.Context()))
		later := s.enqueue(producer.With(durable.ItemOptions{Delay: time.Hour}), "c")
		ctx, cancel := context.WithCancelCause(s.Context())
		time.AfterFunc(time.Minute, func() { cancel(errOnPurpose) })
		assert.Equal(t, errOnPurpose, producer.WaitAll(ctx, later...))
	})
}

type failing struct{ error }

func (f failing) Run(ctx context.Context) error {
	if f.error == nil {
		<-ctx.Done()
	}
	return f.error
}

// Run runs queues of many kinds until ctx ends, or one of them fails.
func TestRunMany(t *testing.T) {
	inBubble(t, func(s *shop) {
		ctx, cancel := context.WithCancel(s.Context())
		texts, numbers := s.queue((&log{}).work, durable.Options{}), core.Must(durable.New[int, string](s.store, nil, func(context.Context, int) error { return nil }, durable.Options{Name: "numbers"}))
		defer numbers.Close()
		ended := make(chan error)
		go func() { ended <- durable.Run(ctx, texts, numbers) }()
		ids := s.enqueue(texts, "a")
		id, err := numbers.Enqueue(ctx, 7)
		require.NoError(t, err)
		require.NoError(t, texts.WaitAll(ctx, ids...))
		require.NoError(t, numbers.WaitAll(ctx, id))
		synctest.Wait()
		cancel()
		assert.NoError(t, <-ended)
		assert.NoError(t, durable.Run(s.Context()))
		err = durable.Run(s.Context(), failing{nil}, failing{errOnPurpose}, numbers)
		assert.ErrorIs(t, err, errOnPurpose)
		assert.ErrorIs(t, err, core.ErrClosed, "it ran before")
		assert.Equal(t, 2, len(err.(interface{ Unwrap() []error }).Unwrap()))
		assert.False(t, errors.Is(err, context.Canceled))
	})
}

// Newer data comes for an item that was claimed ahead and has not started, or that is being cancelled: it is added, and runs after it.
func TestReplaceMeetsClaims(t *testing.T) {
	inBubble(t, func(s *shop) {
		s.store = early{s.store}
		free := make(chan struct{})
		var ran []string
		q := s.serve(func(ctx context.Context, item string) error {
			ran = append(ran, item)
			if item == "long" {
				<-free
			}
			return context.Cause(ctx)
		}, durable.Options{MaxConcurrency: 1})
		s.enqueue(q, "1", "2", "3")
		time.Sleep(10 * time.Millisecond)
		ids, err := q.EnqueueAll(s.Context(), []string{"long", "doc/old"}, durable.ItemOptions{}, durable.ItemOptions{Unique: "doc"})
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond)
		assert.Equal(t, "running running", s.states(q, ids...), "one is claimed ahead")
		newest := q.With(durable.ItemOptions{Unique: "doc", Replace: true})
		second, added, err := newest.EnqueueUnique(s.Context(), "doc/new")
		require.NoError(t, err)
		assert.True(t, added)
		time.Sleep(time.Second) // it was given back
		assert.Equal(t, "running ready blocked", s.states(q, ids[0], ids[1], second))
		same, added, err := newest.EnqueueUnique(s.Context(), "doc/newest")
		require.NoError(t, err)
		assert.Equal(t, second, same)
		assert.False(t, added)
		done, err := q.CancelAll(s.Context(), durable.Query{State: durable.Running}, "enough")
		require.NoError(t, err)
		assert.Equal(t, 1, done.Changed)
		time.Sleep(2 * time.Second) // until the heartbeat
		close(free)
		time.Sleep(2 * time.Second)
		assert.Equal(t, "cancelled done done", s.states(q, ids[0], ids[1], second))
		assert.Equal(t, []string{"1", "2", "3", "long", "doc/old", "doc/newest"}, ran)
	})
}
