package filepipeline

import "sync"

// turns lets those who work on the same key take turns, and others pass. It keeps nothing for a key that nobody works on.
// The zero value is ready to use.
type turns struct {
	mu   sync.Mutex
	keys map[string]*turn
}

type turn struct {
	mu    sync.Mutex
	users int // who has the turn or waits for it; guarded by turns.mu
}

// take waits for the turn of key and returns what ends it.
func (t *turns) take(key string) (done func()) {
	t.mu.Lock()
	k := t.keys[key]
	if k == nil {
		if t.keys == nil {
			t.keys = map[string]*turn{}
		}
		k = &turn{}
		t.keys[key] = k
	}
	k.users++
	t.mu.Unlock()

	k.mu.Lock()
	return func() {
		k.mu.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(t.keys, key)
		}
	}
}
