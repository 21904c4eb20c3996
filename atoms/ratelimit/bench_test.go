package ratelimit_test

import (
	"fmt"
	"testing"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
)

// The cost of a request that passes, and of one that is refused.
func BenchmarkLimiter(b *testing.B) {
	for name, rate := range map[string]float64{"allow": ratelimit.MaxRate, "deny": ratelimit.MinRate} {
		l := core.Must(ratelimit.New(core.Rate{PerSecond: rate, Burst: 1000}, ratelimit.Options{}))
		for name == "deny" && l.Allow() {
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l.Allow()
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.SetParallelism(4)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Allow()
				}
			})
		})
		l.Close()
	}
}

func BenchmarkLimiterWait(b *testing.B) {
	l := core.Must(ratelimit.New(core.Rate{PerSecond: ratelimit.MaxRate, Burst: 1000}, ratelimit.Options{}))
	ctx := b.Context()
	for b.Loop() {
		if err := l.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGroupWait(b *testing.B) {
	g := core.Must(ratelimit.NewGroup([]ratelimit.Limit{{Name: "a", Rate: core.Rate{PerSecond: 1e9, Burst: 1000}}, {Name: "b", Rate: core.Rate{PerSecond: 1e9, Burst: 1000}}}, ratelimit.Options{}))
	ctx := b.Context()
	for b.Loop() {
		if err := g.Wait(ctx, 1, 10); err != nil {
			b.Fatal(err)
		}
	}
}

// The cost of a request of a known key, and of a new key.
func BenchmarkKeyed(b *testing.B) {
	keys := make([]string, 1<<17)
	for i := range keys {
		keys[i] = fmt.Sprintf("client:%d", i)
	}
	for name, n := range map[string]int{"known": 1 << 10, "new": 1 << 17} {
		k := core.Must(ratelimit.NewKeyed[string](core.Rate{PerSecond: 1}, ratelimit.Options{Capacity: 1 << 14}))
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				k.Allow(keys[i&(n-1)])
				i++
			}
		})
	}
}
