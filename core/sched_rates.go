package core

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// maxLate is how late an item may start and still count as started when its tokens came.
// Timers are late. Without this, a bucket with a small burst would overflow meanwhile, and a high
// rate would not be reached.
const maxLate = int64(20 * time.Millisecond)

// tokens are numbers of tokens, for calls and for costs.
type tokens [2]int64

// meters are the rates of calls and of costs; a zero Meter means no limit.
type meters [2]bucket.Meter

// buckets are the buckets of a class or of a key. The zero value is full buckets.
type buckets [2]bucket.Mark

func startMeters(now int64, calls, cost Rate) (m meters) {
	m.set(new(buckets), now, calls, cost)
	return m
}

// set sets the rates, which have been checked. The tokens in the buckets stay, up to the new
// bursts.
func (m *meters) set(b *buckets, now int64, rates ...Rate) {
	for i, r := range rates {
		burst := int64(r.Burst)
		switch {
		case burst == 0:
			m[i], b[i] = bucket.Meter{}, bucket.Mark{}
		case m[i].Burst() == 0:
			m[i] = bucket.Start(now, r.PerSecond, burst)
		default:
			fill := m[i].SetRate(now, r.PerSecond)
			if burst != m[i].Burst() {
				m[i].SetBurst(now, burst)
			}
			if fill {
				b[i] = m[i].Fill(now)
			}
		}
	}
}

// limited reports whether there is a rate.
func (m *meters) limited() bool { return m[0].Burst()+m[1].Burst() > 0 }

// due returns the first time from from on at which the tokens are there.
func (m *meters) due(b *buckets, n tokens, from int64) int64 {
	at := from
	for i := range m {
		if n[i] > 0 && m[i].Burst() > 0 {
			at = max(at, m[i].Due(b[i], n[i], from))
		}
	}
	return at
}

// book takes tokens as of the time at. Due has returned that time for from, or at is later.
func (m *meters) book(b *buckets, n tokens, from, at int64) {
	for i := range m {
		if n[i] > 0 && m[i].Burst() > 0 {
			m[i].Book(&b[i], n[i], from, at)
		}
	}
}

// charge takes tokens even if they are not there. Negative numbers give tokens back.
func (m *meters) charge(b *buckets, n tokens, now int64) {
	for i := range m {
		switch {
		case m[i].Burst() == 0:
		case n[i] > 0:
			m[i].Book(&b[i], n[i], now, now)
		case n[i] < 0:
			m[i].Adjust(&b[i], n[i])
			if full := m[i].FullMark(now); b[i].Less(full) {
				b[i] = full
			}
		}
	}
}

// full returns when the buckets are full.
func (m *meters) full(b *buckets, now int64) int64 {
	return m.due(b, tokens{m[0].Burst(), m[1].Burst()}, now)
}
