package batching_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// runAll is a flush that runs bodies one after the other.
func runAll(ctx context.Context, batch []coretest.Body) error {
	errs := make(batching.ItemErrors, len(batch))
	for i, body := range batch {
		errs[i] = body(ctx)
	}
	return errs
}

func TestLifecycle(t *testing.T) {
	for name, opts := range map[string]batching.Options[coretest.Body]{
		"one by one":    {MaxSize: 1, MaxQueued: 2},
		"only if asked": {MaxDelay: 1 << 40, MaxQueued: 3},
		"keys":          {MaxSize: 2, MaxConcurrency: 2, Key: func(b coretest.Body) string { return strconv.FormatBool(b == nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
				b, err := batching.New(runAll, opts)
				require.NoError(t, err)
				items := func() core.Stats {
					s := b.Counters()
					return core.Stats{
						Enqueued: s.Enqueued, Succeeded: s.Succeeded, Failed: s.Failed, Cancelled: s.Cancelled, Dropped: s.Dropped,
						Pending: s.Pending, Running: s.Running, Closed: s.Closed,
					}
				}
				stats := items
				if opts.MaxSize == 1 { // each batch is one item
					stats = b.Stats
				}
				return coretest.Subject{Lifecycle: b, Submit: b.Enqueue, Pause: b.Pause, Resume: b.Resume, WaitIdle: b.WaitIdle, Sink: b.Sink(), Stats: stats}
			})
		})
	}
}

func TestOptions(t *testing.T) {
	flush := func(context.Context, []int) error { return nil }
	b := newBatcher(t, flush, batching.Options[int]{})
	assert.Equal(t, "batching", b.Name())
	for want, opts := range map[string]batching.Options[int]{
		"Options.MaxSize is -1":                               {MaxSize: -1},
		"Options.MaxBytes is -1":                              {MaxBytes: -1},
		"Options.MaxQueued is -1":                             {MaxQueued: -1},
		"Options.MaxQueuedBytes is -1":                        {MaxQueuedBytes: -1},
		"Options.MaxConcurrency is -1":                        {MaxConcurrency: -1},
		"Options.MaxBytes is 1, but there is no SizeOf":       {MaxBytes: 1},
		"Options.MaxQueuedBytes is 1, but there is no SizeOf": {MaxQueuedBytes: 1},
		"must not be less than MaxBytes, which is 2":          {MaxBytes: 2, MaxQueuedBytes: 1, SizeOf: func(int) int { return 1 }},
	} {
		b, err := batching.New(flush, opts)
		assert.Nil(t, b)
		assert.ErrorContains(t, err, "batching: ")
		assert.ErrorContains(t, err, want)
	}
	_, err := batching.New[int](nil, batching.Options[int]{})
	assert.ErrorContains(t, err, "batching: ")
	_, err = batching.NewResultBatcher[int, int](nil, batching.Options[int]{})
	assert.ErrorContains(t, err, "batching: ")
}

// The memory of many waiting items is free after their flush, not only when the batcher is
// gone.
func TestAFloodLeavesNoMemoryBehind(t *testing.T) {
	if coretest.Race {
		t.Skip("it measures memory")
	}
	items, allowed := 20_000, 160<<10
	if os.Getenv("EPHEMERAL_LONG") != "" {
		items = 30_000 // shows also a pointer that is left of each item
	}
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for name, opts := range map[string]batching.Options[int]{
		"many batches":    {MaxSize: 1},
		"one large batch": {MaxSize: items},
		"keys":            {MaxSize: 1, Key: strconv.Itoa, MaxConcurrency: 4},
		"open batches":    {MaxSize: 2, MaxDelay: -1, Key: strconv.Itoa, MaxConcurrency: 4},
	} {
		opts.MaxQueued = items
		hold := make(chan struct{}, items)
		b := newBatcher(t, func(context.Context, []int) error { <-hold; return nil }, opts)
		for i := range 1000 { // fills the window first
			hold <- struct{}{}
			require.NoError(t, b.TryEnqueue(context.Background(), i))
		}
		require.NoError(t, b.Flush(context.Background()))
		for len(hold) > 0 {
			<-hold
		}
		before := heap()
		for i := range items {
			require.NoError(t, b.TryEnqueue(context.Background(), i))
		}
		assert.Greater(t, heap()-before, 4*allowed, "%s: items that wait take no memory: this shows nothing", name)
		close(hold)
		require.NoError(t, b.Flush(context.Background()))
		assert.Less(t, heap()-before, allowed, "%s: left after all is done", name)
		runtime.KeepAlive(b)
	}
}

// A batch allocates the memory of its items at once, so an item costs no allocation.
func TestItemsHaveTheMemoryOfTheirBatch(t *testing.T) {
	const n = 1000
	b := newBatcher(t, func(context.Context, []int) error { return nil }, batching.Options[int]{MaxSize: n})
	allocs := testing.AllocsPerRun(20, func() {
		for i := range n {
			_ = b.TryEnqueue(t.Context(), i)
		}
		_ = b.Flush(t.Context())
	})
	assert.Less(t, allocs, 0.1*n)
}
