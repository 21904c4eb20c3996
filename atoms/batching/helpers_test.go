package batching_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
)

var (
	errOnPurpose = errors.New("failed on purpose")
	errOther     = errors.New("failed on purpose, otherwise")
)

// journal is a flush that takes some time and records its items and its time.
type journal struct {
	takes time.Duration
	fail  func(batch []int) error // may be nil

	mu      sync.Mutex
	begun   time.Time
	batches []string // "1s: [1 2 3]"
	running int
	most    int
}

func newJournal(takes time.Duration) *journal { return &journal{takes: takes, begun: time.Now()} }

func (j *journal) flush(ctx context.Context, batch []int) error {
	j.mu.Lock()
	j.batches = append(j.batches, fmt.Sprintf("%v: %v", time.Since(j.begun), batch))
	j.running++
	j.most = max(j.most, j.running)
	j.mu.Unlock()
	defer func() { j.mu.Lock(); j.running--; j.mu.Unlock() }()
	if j.takes > 0 {
		select {
		case <-time.After(j.takes):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if j.fail != nil {
		return j.fail(batch)
	}
	return nil
}

func (j *journal) got() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.batches)
}

// lost are the items that OnError was called with.
type lost struct {
	mu    sync.Mutex
	items []int
	errs  []error
}

func (l *lost) onError(items []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, items...)
	l.errs = append(l.errs, err)
}

func newBatcher(t testing.TB, flush core.Work[[]int], opts batching.Options[int]) *batching.Batcher[int] {
	t.Helper()
	b, err := batching.New(flush, opts)
	require.NoError(t, err)
	return b
}

func enqueue(t testing.TB, b *batching.Batcher[int], items ...int) {
	t.Helper()
	for _, i := range items {
		require.NoError(t, b.TryEnqueue(context.Background(), i))
	}
}

// each runs a test in a bubble for each case.
func each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, c C)) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, c) }) })
	}
}

// play enqueues the numbers of a script, and sleeps for its durations.
func play(t *testing.T, b *batching.Batcher[int], script string) {
	t.Helper()
	for word := range strings.FieldsSeq(script) {
		if i, err := strconv.Atoi(word); err == nil {
			require.NoError(t, b.Enqueue(t.Context(), i))
			continue
		}
		d, err := time.ParseDuration(word)
		require.NoError(t, err)
		time.Sleep(d)
		synctest.Wait()
	}
}

// begin calls Do with each of the items, in that order, and returns a function that
// waits for the errors.
func begin(ctx context.Context, b *batching.Batcher[int], items ...int) func() []error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = b.Do(ctx, item) })
		synctest.Wait()
	}
	return func() []error { all.Wait(); return errs }
}

// leaveAfter returns a context that is cancelled with errOnPurpose after d. It has no
// deadline.
func leaveAfter(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	time.AfterFunc(d, func() { cancel(errOnPurpose) })
	return ctx
}

// reasons lists why the finished batches were flushed, in order.
func reasons(b *batching.Batcher[int]) (reasons []string) {
	for op := range b.Operations(core.OperationQuery{Status: core.StatusFinished}) {
		if info, ok := core.Value[batching.Batch](op, batching.ValueBatch); ok {
			reasons = append(reasons, info.Reason)
		}
	}
	return reasons
}

// drained drains the batcher and checks the law of its counters.
func drained(t *testing.T, b *batching.Batcher[int]) batching.Counters {
	t.Helper()
	require.NoError(t, b.Drain(t.Context()))
	s := b.Counters()
	balanced(t, s)
	assert.Zero(t, s.Pending+s.Running+s.PendingBytes)
	return s
}

func balanced(t testing.TB, s batching.Counters) {
	t.Helper()
	assert.Equal(t, s.Enqueued, uint64(s.Pending+s.Running)+s.Succeeded+s.Failed+s.Cancelled+s.Dropped, "%v", s)
}
