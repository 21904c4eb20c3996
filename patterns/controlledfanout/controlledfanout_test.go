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

// 19 tenants and the hot one use the 100 slots, 5 each.
func TestHotKeyDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most, last := map[string]int{}, map[string]int{}, map[bool]time.Time{}
		count := func(tenant string, n int) {
			mu.Lock()
			defer mu.Unlock()
			running[tenant] += n
			most[tenant] = max(most[tenant], running[tenant])
		}
		c := core.Must(controlledfanout.New(itself, func(_ context.Context, tenant string) error {
			count(tenant, 1)
			defer count(tenant, -1)
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			last[tenant == "hot"] = time.Now()
			return nil
		}, core.Options{MaxConcurrency: 100, MaxPerKey: 5}))
		begun := time.Now()
		for range 1000 {
			core.Must(c.Enqueue(t.Context(), "hot"))
		}
		for i := range 19 * 50 {
			core.Must(c.Enqueue(t.Context(), strconv.Itoa(i%19)))
		}
		require.NoError(t, c.Drain(t.Context()))
		require.Equal(t, 10*time.Second, last[false].Sub(begun), "as if there were no hot tenant")
		require.Equal(t, 200*time.Second, last[true].Sub(begun), "1000 items, 5 at once")
		for tenant, n := range most {
			require.Equal(t, 5, n, tenant)
		}
	})
}

func TestNameAndErrors(t *testing.T) {
	work := func(context.Context, string) error { return nil }
	require.Equal(t, "controlledfanout", core.Must(controlledfanout.New(itself, work, core.Options{})).Name())
	_, err := controlledfanout.New(itself, work, core.Options{MaxPerKey: -1})
	require.ErrorContains(t, err, "controlledfanout: core: Options.MaxPerKey is -1")
}
