package lru_test

import (
	"fmt"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	want := func(what string, want float64, fn func()) {
		t.Helper()
		if got := testing.AllocsPerRun(1000, fn); got > want {
			t.Errorf("%s: %v allocations, want %v", what, got, want)
		}
	}
	texts := newCache(t, lru.Options[string, int]{Capacity: 3000})
	structs := newCache(t, lru.Options[struct {
		a string
		b int
	}, [4]int]{TTL: -1})
	for i := range 10_000 {
		texts.Set(fmt.Sprint(i), i)
	}
	structs.Set(struct {
		a string
		b int
	}{"a", 1}, [4]int{})
	texts.Set("key", 1)
	want("Get, a hit", 0, func() { texts.Get("key") })
	want("Get, a miss", 0, func() { texts.Get("nothing") })
	want("Get, a hit with a struct", 0, func() {
		structs.Get(struct {
			a string
			b int
		}{"a", 1})
	})
	want("Set, another value", 1, func() { texts.Set("key", 2) })
	i := 0
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = fmt.Sprint("new ", i)
	}
	want("Set, another key", 1, func() { texts.Set(keys[i], i); i++ })

	sink := core.NewSink(core.SinkOptions{})
	signalled := newCache(t, lru.Options[string, int]{Sink: sink})
	signalled.Set("key", 1)
	want("Get, a hit that is signalled", 0, func() { signalled.Get("key") })
}
