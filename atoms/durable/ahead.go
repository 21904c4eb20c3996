package durable

import (
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

const (
	aheadFor   = 100 * time.Millisecond // how long an item that was claimed ahead waits for a slot
	aheadPause = time.Second            // how long nothing is claimed ahead after an item has waited for aheadFor
)

// A mean is the mean of durations. The newest durations weigh most.
type mean struct{ ns atomic.Int64 } // 0: no duration yet

func (m *mean) note(began time.Time) {
	m.add(time.Since(began))
}

func (m *mean) add(span time.Duration) {
	d, old := int64(max(0, span))+1, m.ns.Load()
	if old == 0 {
		old = d
	}
	m.ns.Store(old + (d-old)/8)
}

// ahead is how many of most items can be claimed before a slot is free: the number of items that
// end during one turn. If bodies take long, it is 0.
func ahead(most, slots int, turn, body int64) int {
	if turn == 0 || body == 0 {
		return 0
	}
	return int(min(int64(most), int64(slots)*turn/body))
}

// mayClaimAhead is how many items the pump claims before their slots are free.
func (p *pump) mayClaimAhead(s *session) int {
	store, ok := p.queue.store.(interface{ Ahead(slots int) int })
	if !ok || s.limited || p.dry || int64(time.Since(p.loop.share.began)) < p.noAhead.Load() {
		return 0
	}
	return ahead(store.Ahead(p.queue.opts.MaxConcurrency), p.queue.opts.MaxConcurrency, p.turns.ns.Load(), p.queue.bodies.ns.Load())
}

// withdraw gives the item of a run back if its body does not start soon.
func (p *pump) withdraw(r *run) {
	time.AfterFunc(aheadFor, func() {
		if r.state.CompareAndSwap(pending, withdrawn) {
			p.noAhead.Store(int64(time.Since(p.loop.share.began) + aheadPause))
			r.know(p.queue.here.Control, 0, "", errNotStarted)
		}
	})
}

// givenBack says whether the operation ended because its item was not started.
func givenBack(r *run, o core.Snapshot) bool {
	return o.Status != core.StatusSucceeded && r.state.Load() != begun && r.last().Cancel == ""
}
