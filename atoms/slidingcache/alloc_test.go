package slidingcache_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestAllocations(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	ctx := context.Background()
	load := func(_ context.Context, key string) (int, error) {
		if key == "absent" {
			return 0, slidingcache.ErrNotFound
		}
		return 1, nil
	}
	for name, opts := range map[string]options{
		"plain":        {NegativeTTL: time.Hour},
		"with details": {RefreshAfter: time.Minute, StaleOnError: time.Minute, NegativeTTL: time.Hour},
		"sampled":      {SampleEvery: 1, NegativeTTL: time.Hour},
	} {
		c := newCache(t, load, opts)
		c.Set("key", 1)
		c.Get(ctx, "absent")
		for what, hit := range map[string]func(){
			"Get":          func() { c.Get(ctx, "key") },
			"Get, absent":  func() { c.Get(ctx, "absent") },
			"GetIfPresent": func() { c.GetIfPresent("key") },
			"Peek":         func() { c.Peek("key") },
		} {
			assert.Zero(t, testing.AllocsPerRun(1000, hit), "%s, %s", what, name)
		}
	}
	c := newCache(t, load, options{})
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { c.Set("key", 1) }), 1.0)
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { c.Remove("key"); c.Get(ctx, "key") }), 13.0)
}
