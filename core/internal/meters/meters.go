// Package meters has the rates of calls and of costs, and buckets of tokens for them: when the tokens for both are there.
package meters

import "github.com/ephemeralgo/ephemeral/core/bucket"

// A Rate is how many tokens come in each second, and how many there can be at once; with a Burst of 0 there
// is no limit. It is an alias, so that a core.Rate is one.
type Rate = struct {
	PerSecond float64
	Burst     int
}

// Tokens are numbers of tokens, for calls and for costs.
type Tokens [2]int64

// Meters are the rates of calls and of costs; a zero Meter means no limit.
type Meters [2]bucket.Meter

// Buckets are the buckets of a class or of a key. The zero value is full buckets.
type Buckets [2]bucket.Mark

// Start returns meters with these rates, for full buckets.
func Start(now int64, calls, cost Rate) (m Meters) {
	m.Set(new(Buckets), now, calls, cost)
	return m
}

// Set sets the rates, which have been checked. The tokens in the buckets stay, up to the new
// bursts.
func (m *Meters) Set(b *Buckets, now int64, rates ...Rate) {
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

// Limited reports whether there is a rate.
func (m *Meters) Limited() bool { return m[0].Burst()+m[1].Burst() > 0 }

// Due returns the first time from from on at which the tokens are there.
func (m *Meters) Due(b *Buckets, n Tokens, from int64) int64 {
	at := from
	for i := range m {
		if n[i] > 0 && m[i].Burst() > 0 {
			at = max(at, m[i].Due(b[i], n[i], from))
		}
	}
	return at
}

// Book takes tokens as of the time at. Due has returned that time for from, or at is later.
func (m *Meters) Book(b *Buckets, n Tokens, from, at int64) {
	for i := range m {
		if n[i] > 0 && m[i].Burst() > 0 {
			m[i].Book(&b[i], n[i], from, at)
		}
	}
}

// Charge takes tokens even if they are not there. Negative numbers give tokens back.
func (m *Meters) Charge(b *Buckets, n Tokens, now int64) {
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

// Full returns when the buckets are full.
func (m *Meters) Full(b *Buckets, now int64) int64 {
	return m.Due(b, Tokens{m[0].Burst(), m[1].Burst()}, now)
}
