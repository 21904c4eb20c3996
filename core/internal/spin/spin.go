// Package spin has a mutex for short sections, and padding that keeps fields on cache lines of
// their own.
package spin

import "sync"

// CacheLine keeps the fields before it and the fields after it on different cache lines.
type CacheLine [64]byte

// Mutex is a [sync.Mutex] for sections of a few dozen nanoseconds. A goroutine that finds it
// locked tries again after short pauses. In one pause, others can finish two hundred sections. It
// queues only after the last pause. See docs/adr/0009.
type Mutex struct{ sync.Mutex }

// All pauses together take some 40 microseconds. To park a goroutine and to wake it takes about as
// long under load.
const (
	spinTries = 3
	spinPause = 32_000 // rounds of an empty loop
)

// Lock locks the mutex.
func (m *Mutex) Lock() {
	if !m.TryLock() {
		m.lockSlow()
	}
}

func (m *Mutex) lockSlow() {
	for range spinTries {
		for range spinPause {
		}
		if m.TryLock() {
			return
		}
	}
	m.Mutex.Lock()
}
