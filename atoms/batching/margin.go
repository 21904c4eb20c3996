package batching

import (
	"math"
	"time"
)

// never is later than any time.
const never time.Duration = math.MaxInt64

// leastMargin is for the timers and the goroutines between a batch that is due and
// its flush.
const leastMargin = time.Millisecond

// margin estimates how long before a deadline a batch has to be flushed. It is the
// retransmission timer of RFC 6298, section 2: the smoothed mean of what flushes take
// and four times their smoothed mean deviation.
type margin struct {
	fixed           time.Duration // Options.FlushMargin
	measured        bool
	mean, deviation time.Duration
}

// observe takes note of how long a flush took.
func (m *margin) observe(took time.Duration) {
	if !m.measured {
		m.measured, m.mean, m.deviation = true, took, took/2
		return
	}
	m.deviation += ((m.mean - took).Abs() - m.deviation) / 4
	m.mean += (took - m.mean) / 8
}

// latest is when a batch has to be flushed because of an item that came now.
func (m *margin) latest(now, deadline time.Duration) time.Duration {
	switch {
	case m.fixed < 0 || deadline == never:
		return never
	case m.fixed > 0:
		return max(now, deadline-m.fixed)
	case !m.measured:
		return now + max(0, deadline-now)/2
	}
	return max(now, deadline-m.estimate())
}

func (m *margin) estimate() time.Duration { return max(m.mean+4*m.deviation, leastMargin) }
