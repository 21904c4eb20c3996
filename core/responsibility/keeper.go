package responsibility

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// promise is one call of Keep. Keep first enters it, so that signals can acknowledge it. It
// stands after its operation is pinned.
type promise struct {
	id    core.OperationID
	terms Promise // Ack, Key and MaxPin are set
	unpin func()
	since time.Time

	ack   *ack            // nil before the promise is entered, and after its end
	order uint64          // order in which promises began to stand; 0 before that
	timer *time.Timer     // ends the promise; nil if it does not expire
	early *signals.Signal // the signal that acknowledged it before it stood
}

// ack has the promises that wait for signals of one pattern.
type ack struct {
	byKey  map[string][]*promise
	cancel func()
}

func newPromise(id core.OperationID, terms Promise) *promise {
	if strings.Trim(terms.Ack, " ,") == "" {
		terms.Ack = "responsibility.ack.*"
		if terms.Announce != "" {
			terms.Ack = terms.Announce + ".ack"
		}
	}
	if terms.Key == "" {
		terms.Key = id.String()
	}
	return &promise{id: id, terms: terms}
}

// enter lets signals acknowledge a promise from now on. It returns false after Close.
func (k *Keeper) enter(p *promise) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	a := k.acks[p.terms.Ack]
	if a == nil {
		a = &ack{byKey: make(map[string][]*promise)}
		k.acks[p.terms.Ack] = a
		// With the lock held, because other promises with this pattern rely on it.
		a.cancel = k.sink.Subscribe(p.terms.Ack, func(s signals.Signal) { k.acknowledge(a, s) })
	}
	a.byKey[p.terms.Key] = append(a.byKey[p.terms.Key], p)
	p.ack = a
	k.entered[p] = struct{}{}
	return true
}

// stand makes an entered promise stand, in place of an earlier promise for the same
// operation. It returns false if the promise has ended meanwhile.
func (k *Keeper) stand(p *promise, unpin func()) bool {
	k.mu.Lock()
	if p.ack == nil {
		k.mu.Unlock()
		return false
	}
	former := k.byID[p.id]
	if former != nil {
		k.remove(former)
	}
	delete(k.entered, p)
	k.stood++
	p.unpin, p.since, p.order = unpin, time.Now(), k.stood
	k.byID[p.id] = p
	if p.terms.MaxPin > 0 {
		p.timer = time.AfterFunc(p.terms.MaxPin, func() { k.end(k.sink, SignalExpired, p) })
	}
	k.mu.Unlock()
	if former != nil {
		former.unpin()
	}
	return true
}

// acknowledge is the handler of the signals of a.
func (k *Keeper) acknowledge(a *ack, s signals.Signal) {
	switch s.Name {
	case SignalKept, SignalReleased, SignalExpired:
		return
	}
	var acknowledged []*promise
	k.mu.Lock()
	for _, p := range a.byKey[s.Key] {
		switch {
		case s.Name == p.terms.Announce:
		case p.order == 0:
			early := s
			p.early = &early
		default:
			acknowledged = append(acknowledged, p)
		}
	}
	k.mu.Unlock()
	if len(acknowledged) > 0 {
		k.end(k.sink.Because(s), SignalReleased, acknowledged...)
	}
}

// finalized is called when an operation has left the window.
func (k *Keeper) finalized(s core.Snapshot) {
	k.mu.Lock()
	for p := range k.entered {
		if p.id == s.ID {
			k.remove(p)
		}
	}
	k.mu.Unlock()
	k.Complete(s.ID)
}

// standing lists the promises that stand, oldest first. mu is held.
func (k *Keeper) standing() []*promise {
	return slices.SortedFunc(maps.Values(k.byID), func(a, b *promise) int { return cmp.Compare(a.order, b.order) })
}

// end ends promises. For each promise that stood, it unpins the operation, and raises the
// signal if it has a name. It reports whether any promise stood.
func (k *Keeper) end(on signals.Raiser, signal string, promises ...*promise) bool {
	k.mu.Lock()
	promises = slices.DeleteFunc(promises, func(p *promise) bool { return !k.remove(p) || p.order == 0 })
	k.mu.Unlock()
	for _, p := range promises {
		p.unpin()
	}
	for _, p := range promises {
		on.RaiseKey(signal, p.terms.Key)
	}
	return len(promises) > 0
}

// remove removes a promise. It returns false if the promise has ended already. mu is held.
func (k *Keeper) remove(p *promise) bool {
	a, key := p.ack, p.terms.Key
	if a == nil {
		return false
	}
	p.ack = nil
	delete(k.entered, p)
	if p.order > 0 {
		delete(k.byID, p.id)
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	a.byKey[key] = slices.DeleteFunc(a.byKey[key], func(other *promise) bool { return other == p })
	if len(a.byKey[key]) == 0 {
		delete(a.byKey, key)
	}
	if len(a.byKey) == 0 {
		delete(k.acks, p.terms.Ack)
		go a.cancel() // cancel may wait for a handler
	}
	return true
}
