package waveorchestrator

import "time"

// A BreakerStatus says what a breaker does with its worker.
type BreakerStatus string

const (
	// BreakerClosed lets it run.
	BreakerClosed BreakerStatus = "closed"
	// BreakerOpen keeps it from running, until [Options.BreakerReset] is over.
	BreakerOpen BreakerStatus = "open"
	// BreakerHalfOpen lets one execution run it, to see whether it is well
	// again: the next one, or one that is doing so.
	BreakerHalfOpen BreakerStatus = "half-open"
)

// breaker decides whether a worker may run. It has no lock and no clock.
//
// Who is admitted gets a ticket, to come back with success, failure or release.
// Tickets of the past say nothing any more: a run that began before the breaker
// opened neither closes it nor keeps it open.
type breaker struct {
	threshold int
	reset     time.Duration

	status   BreakerStatus
	failures int           // in a row
	until    time.Duration // while open: when it may be probed
	ticket   uint64        // the one that counts
}

func newBreaker(threshold int, reset time.Duration) breaker {
	return breaker{threshold: threshold, reset: reset, status: BreakerClosed}
}

// admit reports whether the worker may run. That of an open breaker whose reset is
// over is the probe: until its ticket comes back nobody else is admitted.
func (b *breaker) admit(now time.Duration) (ticket uint64, ok bool) {
	switch {
	case b.status == BreakerClosed:
		return b.ticket, true
	case b.status == BreakerHalfOpen || now < b.until:
		return 0, false
	}
	b.become(BreakerHalfOpen)
	return b.ticket, true
}

// success reports whether it has closed the breaker.
func (b *breaker) success(ticket uint64) (closed bool) {
	if ticket != b.ticket {
		return false
	}
	b.failures = 0
	if b.status == BreakerClosed {
		return false
	}
	b.become(BreakerClosed)
	return true
}

// failure reports whether it has opened the breaker, again if it was a probe.
func (b *breaker) failure(ticket uint64, now time.Duration) (opened bool) {
	if ticket != b.ticket {
		return false
	}
	b.failures++
	if b.status == BreakerClosed && b.failures < b.threshold {
		return false
	}
	b.until = after(now, b.reset)
	b.become(BreakerOpen)
	return true
}

// release gives a ticket back that has shown nothing; a probe can be made again.
func (b *breaker) release(ticket uint64) {
	if ticket == b.ticket && b.status == BreakerHalfOpen {
		b.become(BreakerOpen)
	}
}

func (b *breaker) become(s BreakerStatus) {
	b.status = s
	b.ticket++
}

// at is the status as it is to be shown.
func (b *breaker) at(now time.Duration) BreakerStatus {
	if b.status == BreakerOpen && now >= b.until {
		return BreakerHalfOpen
	}
	return b.status
}
