package batching_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
)

// An item with a key of its own costs at most 1,000 bytes while it waits.
func TestAKeyWithOneItemIsSmall(t *testing.T) {
	const keys = 5000
	x := newBatcher(t, func(context.Context, []int) error { return nil }, batching.Options[int]{
		Key: strconv.Itoa, MaxQueued: keys, MaxDelay: time.Hour,
	})
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for i := range keys {
		require.NoError(t, x.Enqueue(t.Context(), i))
	}
	assert.LessOrEqual(t, (used()-before)/keys, uint64(1000))
	require.NoError(t, x.Flush(t.Context()))
}
