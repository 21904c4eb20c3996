package statuspage_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// badTimes panics when the page asks for times.
type badTimes struct{ core.Control }

func (badTimes) Times(time.Duration) []core.Times { panic("in Times") }

// A page makes coordinators count from its start on, without a goroutine, and shows the times
// of the last minutes.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, func(context.Context, string) error { time.Sleep(10 * time.Millisecond); return nil }, core.Options{
			Name: "c", MaxConcurrency: 1, Lanes: []core.Lane{{Name: "hot"}}, Classes: []core.Class{{Name: "eu"}},
		})
		p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c, badTimes{c.Control}, core.Inspector(onlyInspector{c})}})
		enqueue(t, c.Lane("hot").Class("eu"), "a", "b", "c")
		time.Sleep(2 * time.Minute)
		o := get(t, p, "time?minutes=5")
		assert.EqualValues(t, 5, o["minutes"])
		assert.Equal(t, []any{"c", "c", "c", "c-2"}, o.each("times", "coordinator"), "one cannot count")
		assert.Equal(t, []any{nil, "hot", nil, nil}, o.each("times", "lane"))
		assert.Equal(t, []any{nil, nil, "eu", nil}, o.each("times", "class"))
		assert.Contains(t, o.at("times", 3, "error"), "in Times")
		for i := range 3 {
			assert.EqualValues(t, 3, o.at("times", i, "waiting", "count"))
			assert.InEpsilon(t, 10, o.at("times", i, "running", "p99Ms"), 0.13)
			assert.InEpsilon(t, 20, o.at("times", i, "waiting", "p99Ms"), 0.13)
		}
		// Waits of 0, 10 and 20 ms: 15 ranges, each twice as long as the one before.
		waits := o.at("times", 0, "waiting", "ranges").([]any)
		assert.Len(t, waits, 16)
		assert.Equal(t, []any{[]any{0.001, 1.0}, []any{16.777, 1.0}, []any{33.554, 1.0}}, []any{waits[0], waits[14], waits[15]})
		assert.Equal(t, []any{0.002, 0.0}, waits[1])
		assert.EqualValues(t, 3, get(t, p, "time?minutes=60").at("times", 0, "running", "count"))
		assert.EqualValues(t, 0, get(t, p, "time?minutes=1").at("times", 0, "running", "count"))
		assert.Equal(t, http.StatusBadRequest, request(p, "GET", "/api/time?minutes=2", "", nil).Code)

		row := get(t, p, "overview")["program"].(map[string]any)
		assert.Greater(t, row["goroutines"], 1.0)
		assert.Greater(t, row["heapBytes"], 100_000.0)
	})
}

// Only the first coordinators count, and none if MaxTimes is negative: each takes memory.
func TestMaxTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []core.Inspector
		for _, opts := range []core.Options{{Name: "a"}, {Name: "b", Lanes: []core.Lane{{Name: "hot"}, {Name: "cold"}}}, {Name: "c"}} {
			all = append(all, newCoordinator(t, func(context.Context, string) error { return nil }, opts))
		}
		for limit, want := range map[int][]any{-1: nil, 1: {"a"}, 2: {"a", "b", "b", "b"}, 3: {"a", "b", "b", "b"}, 0: {"a", "b", "b", "b", "c"}} {
			o := get(t, newPage(t, statuspage.Options{Coordinators: all, MaxTimes: limit}), "time")
			assert.Equal(t, want, o.each("times", "coordinator"), limit)
			assert.EqualValues(t, len(all)-len(slices.Compact(want)), o["missing"], limit)
		}
		before := newCoordinator(t, func(context.Context, string) error { return nil }, core.Options{})
		newPage(t, statuspage.Options{Coordinators: []core.Inspector{before}, MaxTimes: -1})
		require.NoError(t, before.Do(t.Context(), ""))
		assert.Zero(t, before.Times(0)[0].Running.Count(), "this call begins to count")
	})
}

// onlyInspector is a coordinator that has no other methods.
type onlyInspector struct{ core.Inspector }
