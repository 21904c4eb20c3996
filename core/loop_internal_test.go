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

// When a handler cancels a forward, a fact that is on its way does not stay on the other sink.
func TestForwardCancelledBeforeItsFactIsLinked(t *testing.T) {
	s, to := NewSink(SinkOptions{}), NewSink(SinkOptions{})
	cancel := s.Forward(to, "a")
	f := s.forwards[0]
	cancel()
	var under passage
	s.Subscribe("a", func(a Signal) { under = passage{a, &journey{s}} })
	s.Hold("a", "", 0)
	s.carry(f, to, under)
	if got := to.Stats(); got.Raised != 1 || got.Held != 0 {
		t.Errorf("got %+v, want 1 raised, none held", got)
	}
}
