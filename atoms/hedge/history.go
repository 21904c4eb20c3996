package hedge

import (
	"math"
	"slices"
	"time"
)

// failed stands for the duration of a call that failed.
const failed time.Duration = -1

// A history has the durations of the last calls. It is plain data.
type history struct {
	ring   []time.Duration // in the order in which the calls ended; the oldest is at next
	next   int
	sorted []time.Duration // durations of the calls that succeeded
	errs   int             // how many failed
}

// learned is how many calls must have succeeded before there is a quantile.
const learned = 20

func newHistory(window int) history {
	return history{ring: make([]time.Duration, 0, window), sorted: make([]time.Duration, 0, window)}
}

// add adds a call, and drops the oldest one if there are too many.
func (h *history) add(d time.Duration) {
	if len(h.ring) < cap(h.ring) {
		h.ring = append(h.ring, d)
	} else {
		h.drop(h.ring[h.next])
		h.ring[h.next] = d
		h.next = (h.next + 1) % len(h.ring)
	}
	if d == failed {
		h.errs++
		return
	}
	at, _ := slices.BinarySearch(h.sorted, d)
	h.sorted = slices.Insert(h.sorted, at, d)
}

func (h *history) drop(d time.Duration) {
	if d == failed {
		h.errs--
		return
	}
	at, _ := slices.BinarySearch(h.sorted, d)
	h.sorted = slices.Delete(h.sorted, at, at+1)
}

// quantile returns the duration within which this share of the successful calls ended.
func (h *history) quantile(share float64) (time.Duration, bool) {
	if len(h.sorted) < learned {
		return 0, false
	}
	return h.sorted[int(math.Ceil(share*float64(len(h.sorted))))-1], true
}
