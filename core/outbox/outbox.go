// Package outbox collects the effects of a change under a lock, and runs them after the
// lock is released. Effects are signals to raise, functions of users to call, channels to
// close.
//
// Add under the lock puts effects in the order of the changes. Run, after the lock is
// released, runs them in that order, one at a time. The goroutine that finds effects also
// runs effects that are added meanwhile. An effect may take the lock, add effects and
// call Run: then the outer Run runs them.
package outbox

import "sync"

// An Outbox is a queue of effects. The zero value is ready to use and keeps any number of
// them. All methods are safe for concurrent use; it owns no goroutine and needs no Close.
type Outbox struct {
	// Max is how many effects may wait while one of them blocks; further effects are
	// dropped and counted. 0 means any number. Set it before the first Add.
	Max int

	mu      sync.Mutex
	queue   []func()
	running bool
	dropped uint64
}

// Add puts an effect at the end of the queue. It calls nothing, so any lock may be held.
func (o *Outbox) Add(effect func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.Max > 0 && len(o.queue) >= o.Max {
		o.dropped++
		return
	}
	o.queue = append(o.queue, effect)
}

// Run runs the waiting effects, until there are none. It returns at once if another
// goroutine, or a caller further up the stack, runs them. No lock may be held. If an effect
// panics or ends the goroutine, the others run first.
func (o *Outbox) Run() {
	for effect := o.next(); effect != nil; effect = o.next() {
		o.runOne(effect)
	}
}

// Dropped is how many effects were dropped because of Max.
func (o *Outbox) Dropped() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

func (o *Outbox) next() func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running || len(o.queue) == 0 {
		return nil
	}
	effect := o.queue[0]
	o.queue[0] = nil
	if o.queue = o.queue[1:]; len(o.queue) == 0 {
		o.queue = nil // an idle outbox keeps no memory
	}
	o.running = true
	return effect
}

func (o *Outbox) runOne(effect func()) {
	returned := false
	defer func() {
		o.mu.Lock()
		o.running = false
		o.mu.Unlock()
		if !returned { // the effect has panicked or ends the goroutine
			o.Run()
		}
	}()
	effect()
	returned = true
}
