package core

import "sync"

// spinMutex is a [sync.Mutex] for sections of a few dozen nanoseconds. Who finds it
// locked looks again after pauses in which the holder, and others on the same
// processor, get dozens of sections done; it queues only after the last. See
// docs/adr/0009.
type spinMutex struct{ sync.Mutex }

const (
	spinTries = 4
	spinPause = 8000 // rounds of an empty loop, some microseconds; each pause is twice as long as the one before
)

// Lock locks the mutex.
func (m *spinMutex) Lock() {
	if !m.TryLock() {
		m.lockSlow()
	}
}

func (m *spinMutex) lockSlow() {
	for try := range spinTries {
		for range spinPause << try {
		}
		if m.TryLock() {
			return
		}
	}
	m.Mutex.Lock()
}
