package slidingcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
)

func TestHitsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	for name, opts := range map[string]options{
		"plain":       {},
		"with a fate": {RefreshAfter: time.Minute, StaleOnError: time.Minute},
		"sampled":     {SampleEvery: 1},
	} {
		c := newCache(t, func(context.Context, string) (int, error) { return 1, nil }, opts)
		c.Set("key", 1)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { c.Get(ctx, "key") }), name)
		assert.Zero(t, testing.AllocsPerRun(1000, func() { c.GetIfPresent("key") }), name)
	}
	absent := newCache(t, func(context.Context, string) (int, error) { return 0, slidingcache.ErrNotFound }, options{NegativeTTL: time.Hour})
	absent.Get(ctx, "key")
	assert.Zero(t, testing.AllocsPerRun(1000, func() { absent.Get(ctx, "key") }))
	assert.Zero(t, testing.AllocsPerRun(1000, func() { absent.GetIfPresent("nothing") }))

	type point struct{ x, y int }
	points, err := slidingcache.New(func(context.Context, point) ([8]int, error) { return [8]int{}, nil }, slidingcache.Options[point]{})
	assert.NoError(t, err)
	points.Get(ctx, point{1, 2})
	assert.Zero(t, testing.AllocsPerRun(1000, func() { points.Get(ctx, point{1, 2}) }))

	c := newCache(t, func(context.Context, string) (int, error) { return 1, nil }, options{})
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { c.Set("key", 1) }), 1.0)
}
