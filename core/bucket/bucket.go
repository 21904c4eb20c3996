package bucket

import (
	"math"
	"math/bits"
	"time"
)

// A rate is in tokens per second. It is between MinRate and MaxRate, or 0, or Unlimited. With
// 0, no tokens come in and none can be taken. With Unlimited, there are always enough tokens.
const (
	MinRate   = 1e-9 // one token per 32 years
	MaxRate   = 1e9  // one token per nanosecond
	Unlimited = math.MaxFloat64
)

// MaxBurst is the largest burst, and one less than the largest number of tokens in a call.
const MaxBurst = int64(min(1<<40, math.MaxInt))

// Never is the time of an event that will not happen.
const Never = math.MaxInt64

const (
	maxSpan = 1 << 62 // the longest span of time in nanoseconds, 146 years
	origin  = 1 << 61 // the first total: the zero Mark is far below it
	highest = 7 << 60 // the largest debt, above every total
)

// RateRule returns the rule that a rate breaks, or "". Unlimited and NaN are not allowed.
func RateRule(rate float64) string {
	if rate == 0 || rate >= MinRate && rate <= MaxRate {
		return ""
	}
	return "must be 0, which pauses, or from 1e-9 to 1e9 per second"
}

// A Meter counts the tokens that come in. Make one with [Start]. Many buckets may use one meter.
// In terms of GCRA, mark+burst is the theoretical arrival time of a bucket, in tokens.
type Meter struct {
	since int64     // the time of total
	span  uint64    // how many nanoseconds the clock runs, from since on; 0: it is stopped
	per   [3]uint64 // tokens per nanosecond: whole, 2^-64, 2^-128
	total Mark      // at since
	floor Mark      // a lower mark counts as floor: the bucket was full with a smaller burst
	burst int64

	rate  float64 // tokens per second; 0: stopped
	until int64   // the end of the pause
}

// Start returns a meter that counts from now on. The caller has checked rate (see [RateRule]) and
// burst, which is from 1 to [MaxBurst].
func Start(now int64, rate float64, burst int64) Meter {
	m := Meter{since: now, until: now, total: Mark{whole: origin}, burst: burst}
	m.SetRate(now, rate)
	return m
}

// Rate is the rate in tokens per second.
func (m *Meter) Rate() float64 { return m.rate }

// Burst is how many tokens a full bucket has.
func (m *Meter) Burst() int64 { return m.burst }

// PausedUntil is the end of the last pause.
func (m *Meter) PausedUntil() int64 { return m.until }

// at returns the total at the time now.
func (m *Meter) at(now int64) Mark {
	if now <= m.since {
		return m.total
	}
	return m.after(uint64(now - m.since))
}

// after returns the total ns nanoseconds after since.
func (m *Meter) after(ns uint64) Mark {
	high, _ := bits.Mul64(ns, m.per[2])
	whole, part := bits.Mul64(ns, m.per[1])
	part, carry := bits.Add64(part, high, 0)
	whole += ns*m.per[0] + carry
	part, carry = bits.Add64(part, m.total.part, 0)
	return Mark{int64(whole) + m.total.whole + int64(carry), part}
}

// when returns the first time, not before from, at which the total is at least v and the meter
// is not paused.
func (m *Meter) when(v Mark, from int64) int64 {
	switch {
	case m.rate == Unlimited:
		return max(from, m.until)
	case m.rate == 0:
		return Never
	}
	from = max(from, m.since)
	gap := v.minus(m.total)
	if gap.whole < 0 || gap == (Mark{}) || !m.at(from).Less(v) {
		return from
	}
	// guess is exact to about 50 bits. The exact answer is near it.
	guess := gap.float() / m.rate * 1e9
	if guess >= maxSpan {
		return Never
	}
	slack := guess*0x1p-48 + 2
	low, high := uint64(max(0, guess-slack)), uint64(guess+slack)
	for low < high {
		if middle := (low + high) / 2; m.after(middle).Less(v) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if int64(low) > Never-m.since {
		return Never
	}
	return max(from, m.since+int64(low))
}

// Take takes n tokens out of the bucket if there are n, and reports whether it did.
func (m *Meter) Take(mark *Mark, now, n int64) bool {
	ns := uint64(now - m.since)
	if ns >= m.span { // true also if now is before since
		return m.takeSlow(mark, now, n)
	}
	if n > m.burst {
		return false
	}
	total, next := m.after(ns), *mark
	if full := total.plus(-m.burst); next.Less(full) {
		next = full
	}
	if next.Less(m.floor) {
		next = m.floor
	}
	next.whole += n
	if total.Less(next) {
		return false
	}
	*mark = next
	return true
}

// takeSlow is Take for a meter that is stopped, or a time before since.
func (m *Meter) takeSlow(mark *Mark, now, n int64) bool {
	switch {
	case m.rate == 0 || now < m.until:
		return false
	case m.rate == Unlimited:
		return true
	}
	return m.Take(mark, max(now, m.since), n)
}

// Due returns the time, not before from, at which the bucket has n tokens, if no others are
// taken. If n is more than the burst, that is the time at which the bucket is full. It is [Never]
// if the rate is 0.
func (m *Meter) Due(mark Mark, n, from int64) int64 {
	return m.when(mark.max(m.floor).plus(min(n, m.burst)), from)
}

// Book takes n tokens as of the time at. [Meter.Due] has returned this time for this bucket and
// from. Book may be called later. If the tokens are due just at that nanosecond, the fraction of
// a token above them is not lost by overflow. If at equals from, Book takes n tokens even if
// there are fewer. The missing tokens are a debt, which the next tokens pay.
func (m *Meter) Book(mark *Mark, n, from, at int64) {
	if m.rate == Unlimited {
		return
	}
	low := mark.max(m.floor)
	if at == from || !m.at(at-1).Less(low.plus(min(n, m.burst))) {
		low = low.max(m.FullMark(at))
	}
	*mark = low.charged(n)
}

// Adjust corrects an earlier take by n tokens, even if there are fewer. A negative n puts
// tokens back, as if they had never been taken: the bucket never has more than the burst.
func (m *Meter) Adjust(mark *Mark, n int64) { *mark = mark.max(m.floor).charged(n) }

// Level returns the number of tokens in the bucket; it is negative while there is a debt.
func (m *Meter) Level(mark Mark, now int64) float64 { return m.level(mark, now).float() }

func (m *Meter) level(mark Mark, now int64) Mark {
	level := m.at(now).minus(mark.max(m.floor))
	if level.whole >= m.burst || m.rate == Unlimited {
		return Mark{whole: m.burst}
	}
	return level
}

// FullMark returns the highest mark of a bucket that is as full as it can be at the time now.
func (m *Meter) FullMark(now int64) Mark { return m.at(now).plus(-m.burst).max(m.floor) }

// Fill returns the mark of a full bucket. It also ends the effect of earlier, smaller bursts.
// So the caller gives this mark to all buckets of the meter.
func (m *Meter) Fill(now int64) Mark {
	m.floor = Mark{}
	return m.FullMark(now)
}

// Move converts the mark of a bucket of m to a mark of the meter to. The bucket keeps its
// tokens.
func (m *Meter) Move(mark Mark, now int64, to *Meter) Mark {
	return to.at(now).minus(m.at(now).minus(mark.max(m.FullMark(now))))
}

// read moves since to now, and total to the total at now.
func (m *Meter) read(now int64) {
	m.total = m.at(now)
	m.since = max(m.since, now)
}

// SetRate sets a rate that has been checked. The tokens in the buckets do not change. But a meter
// cannot count an unlimited rate: if the rate was [Unlimited] before, SetRate returns true, and
// the caller calls [Meter.Fill].
func (m *Meter) SetRate(now int64, rate float64) (fill bool) {
	fill = m.rate == Unlimited && rate != Unlimited
	m.read(now)
	m.rate, m.per, m.span = rate, [3]uint64{}, 0
	if rate > 0 && rate < Unlimited {
		m.per, m.span = perNanosecond(rate), maxSpan
	}
	return fill
}

// SetBurst sets a burst that has been checked. Tokens that overflowed before do not come back.
func (m *Meter) SetBurst(now, burst int64) {
	m.floor, m.burst = m.FullMark(now), burst
}

// PauseFor stops the meter for the time d. If d is 0 or negative, it ends the pause. If there are
// several pauses, the one that ends last counts.
func (m *Meter) PauseFor(now int64, d time.Duration) {
	until := now + max(0, min(int64(d), maxSpan))
	switch {
	case until > max(now, m.until):
		m.read(now)
		m.since, m.until = max(m.since, until), until
	case until <= now && now < m.until && m.since == m.until: // go on
		m.since, m.until = now, now
	}
}

// perNanosecond converts a rate from MinRate to MaxRate. It rounds up, so that a rate of 3 gives
// three tokens in a second, and not a little less.
func perNanosecond(rate float64) (per [3]uint64) {
	fraction, exponent := math.Frexp(rate)
	mantissa := uint64(fraction * (1 << 53)) // rate is mantissa << (exponent-53)
	shift := uint(exponent - 53 + 128)       // shift of the mantissa, in units of 2^-128: from 46 to 105
	word, bit := 2-shift/64, shift%64
	per[word-1], per[word] = mantissa>>(64-bit), mantissa<<bit
	var rest uint64
	for i := range per {
		per[i], rest = bits.Div64(rest, per[i], 1e9)
	}
	carry := uint64(1)
	for i := 2; i >= 0; i-- {
		per[i], carry = bits.Add64(per[i], 0, carry)
	}
	return per
}
