package ratelimit

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"time"
)

// never is the time of an event that will not happen.
const never = math.MaxInt64

// A meter is a clock that counts tokens instead of nanoseconds. Its total is the number of
// tokens that have come in since the start. A new rate makes the clock slower or faster, and
// changes nothing else. A pause stops the clock.
//
// A bucket of a meter is one number, its mark. The bucket has total-mark tokens, which may be
// negative. Taking n tokens adds n to the mark, and giving them back subtracts n. A bucket
// overflows, so a mark counts as at least total-burst. In terms of GCRA, mark+burst is the
// theoretical arrival time, in tokens.
//
// Many buckets may use one meter. A meter is not safe for concurrent use, and does not read the
// clock: now is in nanoseconds since a fixed moment, and may go back a little.
type meter struct {
	since int64     // the time of total
	span  uint64    // for how many nanoseconds from since the clock runs; 0: it is stopped
	per   [3]uint64 // tokens per nanosecond: whole, 2^-64, 2^-128
	total amount    // at since
	floor amount    // a lower mark counts as floor: the bucket was full with a smaller burst
	burst int64

	rate  float64 // tokens per second; 0: paused
	until int64   // the end of the pause
}

// maxSpan is the longest span of time in nanoseconds, 146 years.
const maxSpan = 1 << 62

func newMeter(now int64, rate float64, burst int64) meter {
	m := meter{since: now, until: now, floor: lowest, burst: burst}
	m.setRate(now, rate)
	return m
}

// at returns the total at the time now.
func (m *meter) at(now int64) amount {
	if now <= m.since {
		return m.total
	}
	return m.after(uint64(now - m.since))
}

// after returns the total ns nanoseconds after since.
func (m *meter) after(ns uint64) amount {
	high, _ := bits.Mul64(ns, m.per[2])
	whole, part := bits.Mul64(ns, m.per[1])
	part, carry := bits.Add64(part, high, 0)
	whole += ns*m.per[0] + carry
	part, carry = bits.Add64(part, m.total.part, 0)
	return amount{int64(whole) + m.total.whole + int64(carry), part}
}

// when returns the first time, not before from, at which the total is at least v and the meter
// is not paused.
func (m *meter) when(v amount, from int64) int64 {
	switch {
	case m.rate == Unlimited:
		return max(from, m.until)
	case m.rate == 0:
		return never
	}
	from = max(from, m.since)
	gap := v.minus(m.total)
	if gap.whole < 0 || gap == (amount{}) {
		return from
	}
	// guess is exact to about 50 bits. The exact answer is near it.
	guess := gap.float() / m.rate * 1e9
	if guess >= maxSpan {
		return never
	}
	slack := guess*0x1p-48 + 2
	low, high := uint64(max(0, guess-slack)), uint64(guess+slack)
	for low < high {
		if middle := (low + high) / 2; m.after(middle).less(v) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if int64(low) > never-m.since {
		return never
	}
	return max(from, m.since+int64(low))
}

// take takes n tokens out of the bucket if there are n, and reports whether it did.
func (m *meter) take(mark *amount, now, n int64) bool {
	ns := uint64(now - m.since)
	if ns >= m.span { // also if now is before since
		return m.takeSlow(mark, now, n)
	}
	if n > m.burst {
		return false
	}
	total, next := m.after(ns), *mark
	if full := total.plus(-m.burst); next.less(full) {
		next = full
	}
	if next.less(m.floor) {
		next = m.floor
	}
	next.whole += n
	if total.less(next) {
		return false
	}
	*mark = next
	return true
}

// takeSlow is take for a meter that is stopped, or a time before since.
func (m *meter) takeSlow(mark *amount, now, n int64) bool {
	switch {
	case m.rate == 0 || now < m.until:
		return false
	case m.rate == Unlimited:
		return true
	}
	return m.take(mark, max(now, m.since), n)
}

// level returns the number of tokens in the bucket; it may be negative.
func (m *meter) level(mark amount, now int64) amount {
	level := m.at(now).minus(mark.max(m.floor))
	if level.whole >= m.burst || m.rate == Unlimited {
		return amount{whole: m.burst}
	}
	return level
}

// read sets since to now, and total to the total at that time.
func (m *meter) read(now int64) {
	m.total = m.at(now)
	m.since = max(m.since, now)
}

// setRate sets a rate that has been checked. A meter cannot count an unlimited rate. So if the
// rate was unlimited before, setRate returns true, and the caller has to fill the buckets.
func (m *meter) setRate(now int64, rate float64) (fill bool) {
	fill = m.rate == Unlimited && rate != Unlimited
	m.read(now)
	m.rate, m.per, m.span = rate, [3]uint64{}, 0
	if rate > 0 && rate < Unlimited {
		m.per, m.span = perNanosecond(rate), maxSpan
	}
	return fill
}

// setBurst sets a burst that has been checked. Tokens that overflowed before do not come back.
func (m *meter) setBurst(now, burst int64) {
	m.floor = m.floor.max(m.at(now).plus(-m.burst))
	m.burst = burst
}

// pauseFor stops the meter for the time d. If d is 0 or negative, it ends the pause.
func (m *meter) pauseFor(now int64, d time.Duration) {
	until := now + max(0, min(int64(d), maxSpan))
	switch {
	case until > max(now, m.until):
		m.read(now)
		m.since, m.until = max(m.since, until), until
	case until <= now && now < m.until && m.since == m.until: // go on
		m.since, m.until = now, now
	}
}

// fullMark returns the mark of a full bucket.
func (m *meter) fullMark(now int64) amount { return m.at(now).plus(-m.burst) }

// perNanosecond converts a rate. It rounds up, so that a rate of 3 gives three tokens in a
// second, and not a little less.
func perNanosecond(rate float64) [3]uint64 {
	x := new(big.Float).SetPrec(256).SetFloat64(rate)
	x.SetMantExp(x.Quo(x, big.NewFloat(1e9)), 128)
	n, _ := x.Int(nil)
	var b [24]byte
	n.Add(n, big.NewInt(1)).FillBytes(b[:])
	return [3]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])}
}

// An amount is a number of tokens in fixed point: whole + part/2^64. Unlike a float64 it is not
// rounded, so taking tokens and giving them back changes nothing.
type amount struct {
	whole int64
	part  uint64
}

// lowest is less than every other amount.
var lowest = amount{whole: -1 << 62}

func (a amount) less(b amount) bool {
	return a.whole < b.whole || a.whole == b.whole && a.part < b.part
}

func (a amount) max(b amount) amount {
	if a.less(b) {
		return b
	}
	return a
}

// plus adds whole tokens.
func (a amount) plus(n int64) amount { return amount{a.whole + n, a.part} }

func (a amount) minus(b amount) amount {
	whole := a.whole - b.whole
	if a.part < b.part {
		whole--
	}
	return amount{whole, a.part - b.part}
}

func (a amount) float() float64 { return float64(a.whole) + float64(a.part)*0x1p-64 }

// A bucket holds the tokens of one limit or of one key; see [meter].
type bucket struct {
	meter *meter
	mark  amount
}

// due returns the time, not before from, at which there are n tokens, if no others are taken. If
// n is more than the burst, because the burst was lowered meanwhile, that is the time at which
// the bucket is full.
func (b *bucket) due(n, from int64) int64 {
	return b.meter.when(b.mark.max(b.meter.floor).plus(min(n, b.meter.burst)), from)
}

// take takes n tokens that are due at the time at. If they are due only since that nanosecond,
// the part of a token that comes in beyond them does not overflow.
func (b *bucket) take(n, from, at int64) {
	m := b.meter
	if m.rate == Unlimited {
		return
	}
	mark := b.mark.max(m.floor)
	if at == from || !m.at(at-1).less(mark.plus(min(n, m.burst))) {
		mark = mark.max(m.fullMark(at))
	}
	b.mark = mark.plus(n)
}

// charge takes n more tokens, also if there are fewer. A negative n puts tokens back.
func (b *bucket) charge(n int64) {
	b.mark = b.mark.max(b.meter.floor).plus(n)
	b.mark.whole = min(b.mark.whole, maxSpan/2)
}

// fill fills the bucket.
func (b *bucket) fill(now int64) {
	b.meter.floor = lowest
	b.mark = b.meter.fullMark(now)
}

// dueAt returns the time, not before from, at which all buckets have enough.
func dueAt(buckets []bucket, costs []int64, from int64) int64 {
	for i := range buckets {
		from = max(from, buckets[i].due(costs[i], from))
	}
	return from
}
