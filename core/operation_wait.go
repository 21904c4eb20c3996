package core

import (
	"slices"
	"time"
)

// bodyWait is what a body says that it waits for. Guarded by engine.ledger.mu.
type bodyWait struct {
	what         string
	since, until time.Time
	next         *bodyWait
}

// WaitsFor says that the body waits for something that its coordinator does not
// know of, such as a timer, a lock or an answer: Explain then tells it, as a
// [ReasonBody], until done is called. What is the object of a sentence, "a token of
// limiter api" for example. Until is when the wait ends at the latest; the zero time
// means that it does not by itself. Several waits may be under way at once; done may
// be called many times. To wait for other operations, Wait, Do, Drain and Flush say
// so by themselves.
//
// It costs a lock and two allocations, so call it when there is a wait, and not
// before finding out.
func (o *Operation) WaitsFor(what string, until time.Time) (done func()) {
	if o == nil {
		return func() {}
	}
	w := &bodyWait{what: what, since: time.Now(), until: until}
	ledger := &o.engine.ledger
	ledger.mu.Lock()
	defer ledger.mu.Unlock()
	d := o.details()
	if d == departed {
		return func() {}
	}
	w.next, d.waits = d.waits, w
	return func() {
		ledger.mu.Lock()
		defer ledger.mu.Unlock()
		if d := o.details(); d != departed {
			d.remove(w)
		}
	}
}

// remove takes a wait out, if it is in.
func (d *details) remove(w *bodyWait) {
	for at := &d.waits; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			return
		}
	}
}

// bodyReasons returns what the body of a running operation says that it waits for.
func (e *engine) bodyReasons(o *Operation) (reasons []Reason) {
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	if d := o.rest.Load(); d != nil {
		for w := d.waits; w != nil; w = w.next {
			reasons = append(reasons, Reason{Kind: ReasonBody, What: w.what, Since: w.since, Expires: w.until})
		}
	}
	slices.Reverse(reasons)
	return reasons
}
