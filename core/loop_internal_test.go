package core

import (
	"slices"
	"testing"
)

// While a loop is suspected, every raise looks at the stack, so the suspicion ends with the loop.
func TestSuspicionEnds(t *testing.T) {
	s, loop := NewSink(SinkOptions{}), true
	for range 2 {
		s.Subscribe("a", func(Signal) {
			if loop {
				s.Raise("a")
			}
		})
	}
	suspected := func() bool {
		return len(s.runaways) > 0 || slices.ContainsFunc(s.names.subs, func(h *subscription) bool { return h.limit != crowd })
	}
	s.Raise("a")
	if !suspected() {
		t.Error("there was no suspicion")
	}
	loop = false
	s.Raise("a")
	if suspected() {
		t.Error("still suspected")
	}
}
