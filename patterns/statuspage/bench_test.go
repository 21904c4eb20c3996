package statuspage_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

// busy is a coordinator with many operations.
func busy(b testing.TB, running, pending int) *core.Coordinator[string] {
	c := newCoordinator(b, block, core.Options{Name: "c", MaxConcurrency: running, MaxQueued: pending + running})
	for i := range running + pending {
		_, err := c.Enqueue(context.Background(), strconv.Itoa(i))
		require.NoError(b, err)
	}
	for c.Stats().Running < running {
		runtime.Gosched()
	}
	return c
}

// BenchmarkFrame is the cost of a frame after the first. The benchmark moves the clock of a
// client.
func BenchmarkFrame(b *testing.B) {
	c := busy(b, 200, 50_000)
	for range 1000 {
		c.Sink().Raise("noise")
	}
	release := c.Sink().Hold("halt", "", 0)
	defer release()
	p := newPage(b, statuspage.Options{Coordinators: []core.Inspector{c}, Sinks: map[string]*signals.Sink{"s": c.Sink()}})
	for name, query := range map[string]string{
		"overview":   "view=overview",
		"operations": "view=operations",
		"pending":    "view=operations&status=pending",
		"newest":     "view=operations&order=newest",
		"running":    "view=operations&status=running&limit=200",
		"operation":  "view=operation&id=" + firstID(c),
		"signals":    "view=signals",
	} {
		b.Run(name, func(b *testing.B) {
			frame, end, err := statuspage.Frames(p, query)
			require.NoError(b, err)
			defer end()
			b.ReportAllocs()
			for b.Loop() {
				frame()
			}
		})
	}
}

// With many items ahead, it is costly to find out why an item waits, so frames share that
// work.
func TestLargeQueue(t *testing.T) {
	pending := 10_000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		pending = 50_000
	}
	c := busy(t, 1, pending)
	p := newPage(t, statuspage.Options{Coordinators: []core.Inspector{c}})
	assert.EqualValues(t, pending, get(t, p, "overview").at("coordinators", 0, "pending"))
	var o object
	frame, end, err := statuspage.Frames(p, "view=operations&order=newest&limit=20")
	require.NoError(t, err)
	defer end()
	for range 20 { // at least one in each frame
		o = decode(t, string(frame()))
	}
	for i, text := range o.each("operations", "waits") {
		assert.Contains(t, text, fmt.Sprintf("%d items before it go first", pending-1-i))
	}
}

func firstID(c *core.Coordinator[string]) string {
	for s := range c.Operations(core.OperationQuery{Limit: 1}) {
		return s.ID.String()
	}
	return ""
}
