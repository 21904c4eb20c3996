package lru_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

func TestAllocations(t *testing.T) {
	if coretest.Race {
		t.Skip("the race detector allocates")
	}
	want := func(what string, want float64, fn func()) {
		t.Helper()
		if got := testing.AllocsPerRun(1000, fn); got > want {
			t.Errorf("%s: %v allocations, want %v", what, got, want)
		}
	}
	c := newCache(t, lru.Options[string, int]{Capacity: 3000})
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		c.Set(keys[i], i)
	}
	c.Set("key", 1)
	load := func(context.Context, string) (int, error) { return 1, nil }
	i := 0
	want("Get, a hit", 0, func() { c.Get("key") })
	want("Peek", 0, func() { c.Peek("key") })
	want("Get, a miss", 0, func() { c.Get("nothing") })
	want("GetOrLoad, a hit", 0, func() { _, _ = c.GetOrLoad(t.Context(), "key", load) })
	want("Set, another value", 1, func() { c.Set("key", 2) })
	want("Set, another key", 1, func() { c.Set(keys[i], i); i++ })
	want("Refresh", 7, func() { _, _ = c.Refresh(context.Background(), "key", load) })

	type pair struct {
		a string
		b int
	}
	structs := newCache(t, lru.Options[pair, [4]int]{TTL: -1})
	structs.Set(pair{"a", 1}, [4]int{})
	want("Get, a hit with a struct", 0, func() { structs.Get(pair{"a", 1}) })
	signalled := newCache(t, lru.Options[string, int]{Sink: core.NewSink(core.SinkOptions{})})
	signalled.Set("key", 1)
	want("Get, a hit that is signalled", 0, func() { signalled.Get("key") })
}
