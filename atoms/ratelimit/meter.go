package ratelimit

import (
	"math"
	"math/big"
	"math/bits"
)

// never is when what will not happen happens.
const never = math.MaxInt64

// A meter is a clock that counts tokens instead of nanoseconds: total is how many
// have ever come in. Reckoned in it, a rate that changes is a clock that goes slower
// or faster, and nothing else has to be touched; a limiter that pauses is a clock
// that stands.
//
// The bucket that goes with it is one number, the mark: the total at which all that
// was taken from the bucket has come in. So total-mark tokens are in the bucket; if
// it is negative, they are owed. Taking n moves the mark n up, giving back moves it
// down. A bucket overflows, so a mark counts as at least total-burst. In the words
// of GCRA, mark+burst is the theoretical arrival time, in tokens.
//
// Many buckets may go by one meter. A meter is not safe for concurrent use, and does
// not look at the clock: now is nanoseconds since whenever, and may go back a little.
type meter struct {
	since int64     // when total was read
	span  uint64    // how many nanoseconds from since it goes; 0: it stands
	per   [3]uint64 // tokens in a nanosecond: whole, 2^-64, 2^-128
	total amount    // at since
	floor amount    // no mark counts as lower: it was full under a smaller burst
	burst int64

	rate  float64 // tokens in a second; 0: paused
	until int64   // nothing is given out before
}

// forward is as long as a clock in nanoseconds goes.
const forward = 1 << 62

func newMeter(now int64, rate float64, burst int64) meter {
	m := meter{since: now, until: now, floor: lowest, burst: burst}
	m.setRate(now, rate)
	return m
}

// at is the total at a time.
func (m *meter) at(now int64) amount {
	if now <= m.since {
		return m.total
	}
	return m.after(uint64(now - m.since))
}

// after is the total so many nanoseconds after since.
func (m *meter) after(ns uint64) amount {
	high, _ := bits.Mul64(ns, m.per[2])
	whole, part := bits.Mul64(ns, m.per[1])
	part, carry := bits.Add64(part, high, 0)
	whole += ns*m.per[0] + carry
	part, carry = bits.Add64(part, m.total.part, 0)
	return amount{int64(whole) + m.total.whole + int64(carry), part}
}

// when is the first moment, not before from, at which the total is v and something
// may be given out.
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
	// A float64 says where to look, to some 50 bits; the exact answer is found
	// between.
	guess := gap.float() / m.rate * 1e9
	if guess >= forward {
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

// A verdict is the answer to somebody who wants tokens at once.
type verdict int

const (
	short   verdict = iota // there are not so many
	taken                  // they are taken
	unclear                // takeSlow knows
)

// take takes n tokens, at least 0, out of the bucket if they are in it.
func (m *meter) take(mark *amount, now, n int64) verdict {
	ns := uint64(now - m.since)
	if ns >= m.span { // also if now is before since
		return unclear
	}
	if n > m.burst {
		return short
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
		return short
	}
	*mark = next
	return taken
}

// takeSlow is take when the meter may stand.
func (m *meter) takeSlow(mark *amount, now, n int64) verdict {
	switch {
	case m.rate == 0 || now < m.until:
		return short
	case m.rate == Unlimited:
		return taken
	}
	return m.take(mark, max(now, m.since), n)
}

// level is what is in the bucket; negative: what is owed.
func (m *meter) level(mark amount, now int64) amount {
	level := m.at(now).minus(mark.max(m.floor))
	if level.whole >= m.burst {
		return amount{whole: m.burst}
	}
	return level
}

// read makes now the time from which the meter counts.
func (m *meter) read(now int64) {
	m.total = m.at(now)
	m.since = max(m.since, now)
}

// setRate changes the rate, which has been checked.
func (m *meter) setRate(now int64, rate float64) {
	m.read(now)
	m.rate, m.per, m.span = rate, [3]uint64{}, 0
	if rate > 0 && rate < Unlimited {
		m.per, m.span = perNanosecond(rate), forward
	}
}

// setBurst changes the burst, which has been checked. What a full bucket has let
// overflow does not come back.
func (m *meter) setBurst(now, burst int64) {
	m.floor = m.floor.max(m.at(now).plus(-m.burst))
	m.burst = burst
}

// pause makes the meter stand until a time; not later than now: go on.
func (m *meter) pause(now, until int64) {
	switch {
	case until > max(now, m.until):
		m.read(now)
		m.since, m.until = max(m.since, until), until
	case until <= now && now < m.until && m.since == m.until: // go on
		m.since, m.until = now, now
	}
}

// fill returns the mark of a full bucket.
func (m *meter) fill(now int64) amount { return m.at(now).plus(-m.burst) }

// perNanosecond converts a rate, rounded up, so that a second at 3 per second is
// three tokens and not a little less.
func perNanosecond(rate float64) (per [3]uint64) {
	r, _ := new(big.Float).SetFloat64(rate).Rat(nil)
	num := new(big.Int).Lsh(r.Num(), 128)
	den := new(big.Int).Mul(r.Denom(), big.NewInt(1e9))
	num.Add(num, den).Sub(num, big.NewInt(1)).Quo(num, den)
	word := new(big.Int)
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for i := range per {
		per[len(per)-1-i] = word.And(num, mask).Uint64()
		num.Rsh(num, 64)
	}
	return per
}
