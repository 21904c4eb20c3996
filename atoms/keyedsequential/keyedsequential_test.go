package keyedsequential_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/keyedsequential"
	"github.com/ephemeralgo/ephemeral/core"
)

func itself(key string) string { return key }

// Fault avoided: an item that waits for its key took a slot from other keys.
func TestBusyKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for given, want := range map[string]string{"": "keyedsequential", "orders": "orders"} {
			var mu sync.Mutex
			begun, ended := time.Now(), map[string]time.Duration{}
			s := core.Must(keyedsequential.New(itself, func(_ context.Context, key string) error {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				ended[key] = time.Since(begun)
				return nil
			}, core.Options{Name: given, MaxConcurrency: 2}))
			for _, key := range []string{"a", "a", "a", "b"} {
				core.Must(s.Enqueue(t.Context(), key))
			}
			assert.NoError(t, s.Drain(t.Context()))
			assert.Equal(t, map[string]time.Duration{"a": 3 * time.Second, "b": time.Second}, ended)
			assert.Equal(t, want, s.Name())
		}
	})
	_, err := keyedsequential.New(itself, nil, core.Options{})
	assert.ErrorContains(t, err, "keyedsequential: core: ")
}
