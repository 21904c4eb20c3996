package controlledfanout_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/controlledfanout"
)

func itself(tenant string) string { return tenant }

// Fault avoided: a hot key took the slots of the others.
func TestHotKeyDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		last, begun := map[bool]time.Duration{}, time.Now()
		second := func(context.Context, string) error { time.Sleep(time.Second); return nil }
		c := core.Must(controlledfanout.New(itself, second, core.Options{MaxConcurrency: 100, MaxPerKey: 5, OnDone: func(s core.Snapshot) {
			mu.Lock()
			defer mu.Unlock()
			last[s.Key == "hot"] = s.Finished.Sub(begun)
		}}))
		for range 1000 {
			core.Must(c.Enqueue(t.Context(), "hot"))
		}
		for i := range 19 * 50 {
			core.Must(c.Enqueue(t.Context(), strconv.Itoa(i%19)))
		}
		require.NoError(t, c.Drain(t.Context()))
		require.Equal(t, 10*time.Second, last[false], "as if there were no hot tenant")
		require.Equal(t, 200*time.Second, last[true], "1000 items, 5 at once")
	})
}

func TestNameAndErrors(t *testing.T) {
	work := func(context.Context, string) error { return nil }
	require.Equal(t, "controlledfanout", core.Must(controlledfanout.New(itself, work, core.Options{})).Name())
	_, err := controlledfanout.New(itself, work, core.Options{MaxPerKey: -1})
	require.ErrorContains(t, err, "controlledfanout: core: Options.MaxPerKey is -1")
}
