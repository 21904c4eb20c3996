package slidingcache_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

func constant(context.Context, string) (int, error) { return 1, nil }

// What a hit costs more than the store's own.
func BenchmarkHit(b *testing.B) {
	ctx := context.Background()
	for name, opts := range map[string]options{
		"plain":                      {},
		"RefreshAfter":               {RefreshAfter: time.Minute},
		"RefreshAfter, StaleOnError": {RefreshAfter: time.Minute, StaleOnError: time.Minute},
		"SampleEvery 100":            {SampleEvery: 100},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := newCache(b, constant, opts)
			c.Set("key", 1)
			for b.Loop() {
				c.Get(ctx, "key")
			}
		})
	}
	b.Run("lru", func(b *testing.B) {
		b.ReportAllocs()
		c := core.Must(lru.New(lru.Options[string, int]{}))
		c.Set("key", 1)
		for b.Loop() {
			c.Get("key")
		}
	})
}

func BenchmarkSet(b *testing.B) {
	b.ReportAllocs()
	c := newCache(b, constant, options{})
	for b.Loop() {
		c.Set("key", 1)
	}
}

// What a load costs that costs nothing, one after the other; and without a cache.
func BenchmarkLoad(b *testing.B) {
	ctx := context.Background()
	keys := make([]string, 1<<14)
	for i := range keys {
		keys[i] = strconv.Itoa(i)
	}
	b.Run("cache", func(b *testing.B) {
		b.ReportAllocs()
		c := newCache(b, constant, options{})
		for i := 0; b.Loop(); i++ {
			c.Get(ctx, keys[i%len(keys)])
		}
	})
	b.Run("coordinator", func(b *testing.B) {
		b.ReportAllocs()
		c := core.Must(core.NewResultCoordinator(constant, core.Options{}))
		for i := 0; b.Loop(); i++ {
			c.Do(ctx, keys[i%len(keys)])
		}
	})
}

// What an answer costs that there is no value.
func BenchmarkAbsence(b *testing.B) {
	b.ReportAllocs()
	ctx := context.Background()
	missing := errors.New("missing")
	c := newCache(b, func(context.Context, string) (int, error) { return 0, missing },
		options{NegativeTTL: time.Hour, NotFound: func(err error) bool { return err == missing }})
	for b.Loop() {
		c.Get(ctx, "key")
	}
}
