package lru_test

import (
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core/lru"

	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func newCache[K comparable, V any](t testing.TB, opts lru.Options[K, V]) *lru.LRU[K, V] {
	t.Helper()
	c, err := lru.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, run)
}

// wantValue checks what Get returns.
func wantValue[K, V comparable](t testing.TB, c *lru.LRU[K, V], key K, want V) {
	t.Helper()
	if got, ok := c.Get(key); !ok || got != want {
		t.Errorf("Get(%v): got %v, %v, want %v", key, got, ok, want)
	}
}

func wantNone[K comparable, V any](t testing.TB, c *lru.LRU[K, V], key K) {
	t.Helper()
	if got, ok := c.Get(key); ok {
		t.Errorf("Get(%v): got %v, want none", key, got)
	}
}

func wantEqual[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}
