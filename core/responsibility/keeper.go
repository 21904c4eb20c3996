package responsibility

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// enter lets signals acknowledge a promise from now on. It is false after Close.
func (k *Keeper) enter(p *promise) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if k.book.enter(p) {
		// With the lock held, because others with this pattern rely on it.
		a := p.ack
		a.listener.cancel = k.sink.Subscribe(a.pattern, func(s core.Signal) { k.hear(a, s) })
	}
	return true
}

// stand lets a promise stand whose operation is pinned, in place of the one that
// does. It is false if it has ended in the meantime.
func (k *Keeper) stand(p *promise, unpin func()) bool {
	var after aftermath
	k.mu.Lock()
	if p.ack == nil {
		k.mu.Unlock()
		return false
	}
	if former := k.book.stand(p, unpin, time.Now()); former != nil {
		k.end(former, &after)
	}
	k.arm()
	k.mu.Unlock()
	after.settle(k.sink, "")
	return true
}

// hear is the handler of signals that match a.
func (k *Keeper) hear(a *ack, s core.Signal) {
	var after aftermath
	k.mu.Lock()
	acknowledged := a.acknowledged(&s)
	if len(acknowledged) == 0 {
		k.mu.Unlock()
		return
	}
	a.listener.running++
	for _, p := range acknowledged {
		if p.place == nil {
			early := s
			p.early = &early
		} else {
			k.end(p, &after)
		}
	}
	k.mu.Unlock()
	defer k.leave(&a.listener)
	after.settle(k.sink.Because(s), SignalReleased)
}

// finalized is told that an operation has left the window.
func (k *Keeper) finalized(s core.Snapshot) {
	var after aftermath
	k.mu.Lock()
	promises := k.book.of(s.ID)
	if len(promises) == 0 {
		k.mu.Unlock()
		return
	}
	k.final.running++
	for _, p := range promises {
		k.end(p, &after)
	}
	k.mu.Unlock()
	defer k.leave(&k.final)
	after.settle(k.sink, SignalReleased)
}

func (k *Keeper) leave(l *listener) {
	var after aftermath
	k.mu.Lock()
	after.cancel(l.leave())
	k.mu.Unlock()
	after.settle(nil, "")
}

// expire is what the timer calls.
func (k *Keeper) expire() {
	var after aftermath
	k.mu.Lock()
	k.armed = false
	for p := k.book.oldest(); p != nil && time.Since(p.since) >= k.maxPin; p = k.book.oldest() {
		k.end(p, &after)
	}
	k.arm()
	k.mu.Unlock()
	after.settle(k.sink, SignalExpired)
}

// arm sets the timer for the promise that expires first. All are given the same
// time, so a timer that is set is never set too late. mu is held.
func (k *Keeper) arm() {
	p := k.book.oldest()
	if k.armed || k.maxPin == 0 || p == nil {
		return
	}
	k.armed = true
	left := k.maxPin - time.Since(p.since)
	if k.timer == nil {
		k.timer = time.AfterFunc(left, k.expire)
	} else {
		k.timer.Reset(left)
	}
}

// release ends a promise.
func (k *Keeper) release(p *promise, on core.Raiser, signal string) {
	var after aftermath
	k.mu.Lock()
	k.end(p, &after)
	k.mu.Unlock()
	after.settle(on, signal)
}

// end takes a promise out of the book, if it is there. mu is held.
func (k *Keeper) end(p *promise, after *aftermath) {
	if p.ack == nil {
		return
	}
	if unused := k.book.remove(p); unused != nil {
		after.cancel(unused.listener.end())
	}
	if p.place != nil {
		after.ended = append(after.ended, p)
	}
	if k.armed && k.book.oldest() == nil {
		k.armed = false
		k.timer.Stop()
	}
}

// aftermath is what the end of promises entails, to be done without the lock.
type aftermath struct {
	ended   []*promise // which stood
	cancels []func()
}

func (a *aftermath) cancel(f func()) {
	if f != nil {
		a.cancels = append(a.cancels, f)
	}
}

// settle does it. An empty signal is not raised.
func (a *aftermath) settle(on core.Raiser, signal string) {
	for _, cancel := range a.cancels {
		cancel()
	}
	for _, p := range a.ended {
		p.unpin()
		on.RaiseKey(signal, p.terms.Key)
	}
}
