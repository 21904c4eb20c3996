package responsibility

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// promise is one that Keep was asked to keep. It is entered in the book first, to
// be acknowledged from then on, and stands once its operation is pinned.
type promise struct {
	id    core.OperationID
	terms Promise // with Ack and Key filled in
	exact bool    // terms.Ack is a name, not a pattern
	unpin func()
	since time.Time

	ack   *ack          // nil when it is not in the book
	place *list.Element // in book.standing; nil before it stands
	early *core.Signal  // acknowledged it before it stood
}

const (
	ackSuffix  = ".ack"
	defaultAck = "responsibility.ack.*"
)

func newPromise(id core.OperationID, terms Promise) *promise {
	p := &promise{id: id, terms: terms}
	if strings.Trim(terms.Ack, " ,") == "" {
		p.terms.Ack = defaultAck
		if terms.Announce != "" {
			p.terms.Ack, p.exact = terms.Announce+ackSuffix, true
		}
	}
	if terms.Key == "" {
		p.terms.Key = id.String()
	}
	return p
}

// pattern is what to subscribe to. A name may contain what has a meaning of its own
// in a pattern.
func (p *promise) pattern() string {
	if p.exact {
		return asPattern.Replace(p.terms.Ack)
	}
	return p.terms.Ack
}

var asPattern = strings.NewReplacer("*", "?", ",", "?", " ", "?")

// isAcknowledgedBy reports whether s, which has the promise's key and matches its
// pattern, acknowledges it. However wide the pattern is, neither the announcement
// does nor what a Keeper reports.
func (p *promise) isAcknowledgedBy(s *core.Signal) bool {
	switch s.Name {
	case p.terms.Announce, SignalKept, SignalReleased, SignalExpired:
		return false
	}
	return !p.exact || s.Name == p.terms.Ack
}

// book knows who promised what. It is a plain data structure: the caller says what
// time it is and does what follows.
type book struct {
	acks     map[string]*ack               // by pattern
	entered  map[*promise]struct{}         // those that do not stand yet
	byID     map[core.OperationID]*promise // those that stand
	standing list.List                     // the same, oldest first
}

// ack is all promises that wait for signals of the same pattern.
type ack struct {
	pattern  string
	byKey    map[string][]*promise
	listener listener // to the pattern
}

func newBook() book {
	return book{
		acks:    make(map[string]*ack),
		entered: make(map[*promise]struct{}),
		byID:    make(map[core.OperationID]*promise),
	}
}

// enter takes a promise in. It reports whether its pattern is a new one.
func (b *book) enter(p *promise) (fresh bool) {
	pattern := p.pattern()
	a := b.acks[pattern]
	if fresh = a == nil; fresh {
		a = &ack{pattern: pattern, byKey: make(map[string][]*promise)}
		b.acks[pattern] = a
	}
	a.byKey[p.terms.Key] = append(a.byKey[p.terms.Key], p)
	p.ack = a
	b.entered[p] = struct{}{}
	return fresh
}

// stand lets an entered promise stand in place of former, which is nil or has to be
// removed.
func (b *book) stand(p *promise, unpin func(), now time.Time) (former *promise) {
	former = b.byID[p.id]
	delete(b.entered, p)
	b.byID[p.id] = p
	p.place = b.standing.PushBack(p)
	p.unpin, p.since = unpin, now
	return former
}

// remove takes a promise out. It returns its ack if nobody waits for that any more.
func (b *book) remove(p *promise) (unused *ack) {
	delete(b.entered, p)
	if p.place != nil {
		b.standing.Remove(p.place)
	}
	if b.byID[p.id] == p {
		delete(b.byID, p.id)
	}
	a, key := p.ack, p.terms.Key
	p.ack = nil
	a.byKey[key] = slices.DeleteFunc(a.byKey[key], func(other *promise) bool { return other == p })
	if len(a.byKey[key]) > 0 {
		return nil
	}
	delete(a.byKey, key)
	if len(a.byKey) > 0 {
		return nil
	}
	delete(b.acks, a.pattern)
	return a
}

// acknowledged lists the promises that s, which matches a, acknowledges.
func (a *ack) acknowledged(s *core.Signal) (promises []*promise) {
	for _, p := range a.byKey[s.Key] {
		if p.isAcknowledgedBy(s) {
			promises = append(promises, p)
		}
	}
	return promises
}

// of lists the promises for an operation, standing or not.
func (b *book) of(id core.OperationID) (promises []*promise) {
	if p := b.byID[id]; p != nil {
		promises = append(promises, p)
	}
	for p := range b.entered {
		if p.id == id {
			promises = append(promises, p)
		}
	}
	return promises
}

// oldest is the standing promise that expires first, or nil.
func (b *book) oldest() *promise {
	if first := b.standing.Front(); first != nil {
		return first.Value.(*promise)
	}
	return nil
}

// all lists the standing promises, oldest first.
func (b *book) all() []*promise {
	all := make([]*promise, 0, b.standing.Len())
	for e := b.standing.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*promise))
	}
	return all
}
