// Package history says what was counted in the last minute, five minutes, or hour. It reads no
// clock and has no lock: now is a parameter.
package history

import (
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core/durations"
)

// A History has histograms, and says what was counted in the last minute, five minutes, or
// hour. Make one with [Start]. It is not safe for concurrent use. It takes 40 kB for
// each histogram.
type History struct {
	counts []durations.Histogram
	due    int64 // when the next moment is to be kept
	kept   [3]moments
}

// moments are what the histograms were at moments that lie apart by a twelfth of a span.
type moments struct {
	span, due int64
	next      int
	at        [12]int64
	counts    [12][]durations.Histogram // nil: no moment
}

// Start makes a history of so many histograms. All times are in nanoseconds since a
// moment of the caller.
func Start(histograms int, now int64) *History {
	h := &History{counts: make([]durations.Histogram, histograms)}
	for i, span := range []time.Duration{time.Minute, 5 * time.Minute, time.Hour} {
		h.kept[i] = moments{span: int64(span), due: now}
	}
	h.keep(now)
	return h
}

// Add counts two durations: one in a histogram, and one in the histogram after it. It costs
// a few nanoseconds, and every five seconds a copy of all histograms.
func (h *History) Add(histogram int, d, after, now int64) {
	if now >= h.due {
		h.keep(now)
	}
	pair := h.counts[histogram : histogram+2]
	pair[0].Add(time.Duration(d))
	pair[1].Add(time.Duration(after))
}

// keep keeps what is counted so far, for each span that is due.
//
//go:noinline
func (h *History) keep(now int64) {
	h.due = math.MaxInt64
	for i := range h.kept {
		m := &h.kept[i]
		if m.due <= now {
			m.at[m.next], m.counts[m.next] = now, append(m.counts[m.next][:0], h.counts...)
			m.next, m.due = (m.next+1)%len(m.at), now+m.span/int64(len(m.at))
		}
		h.due = min(h.due, m.due)
	}
}

// Within returns what was counted in a span that ends now and is at most an hour. What it
// covers may be shorter by a twelfth of the next of 1, 5 and 60 minutes.
func (h *History) Within(span time.Duration, now int64) []durations.Histogram {
	m := &h.kept[0]
	for i := range h.kept {
		if m = &h.kept[i]; m.span >= int64(span) {
			break
		}
	}
	// A moment is kept when the first duration comes after it is due, and does not include that
	// one. So what the first moment within the span includes is older than the span, by all but
	// a twelfth.
	before, at := h.counts, now+1
	for i, counts := range m.counts {
		if counts != nil && m.at[i] >= now-int64(span) && m.at[i] < at {
			before, at = counts, m.at[i]
		}
	}
	found := make([]durations.Histogram, len(h.counts))
	for i := range found {
		for j := range found[i] {
			found[i][j] = h.counts[i][j] - before[i][j]
		}
	}
	return found
}
