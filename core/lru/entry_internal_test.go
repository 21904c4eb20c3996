package lru

import "testing"

func TestProlong(t *testing.T) {
	for _, c := range []struct{ expires, latest, now, span, want int64 }{
		{10, never, 5, 20, 25},
		{30, never, 5, 20, 30},
		{10, 15, 5, 20, 15},
		{10, never, 5, never, never},
		{gone, never, 5, 20, gone}, // a reader that is late
		{1, never, 0, 20, 20},      // the clock may read 0
	} {
		e := entry[int, int]{latest: c.latest}
		e.expires.Store(c.expires)
		e.prolong(c.now, c.span)
		if got := e.expires.Load(); got != c.want {
			t.Errorf("%+v: expires %d", c, got)
		}
	}
}

func TestLapse(t *testing.T) {
	for _, c := range []struct {
		expires, now int64
		lapsed       bool
	}{{10, 9, false}, {10, 10, true}, {0, 0, true}, {1, 0, false}, {gone, 0, true}, {never, never - 1, false}} {
		var e entry[int, int]
		e.expires.Store(c.expires)
		want := c.expires
		if c.lapsed {
			want = gone
		}
		if lapsed := e.lapse(c.now); lapsed != c.lapsed || e.expires.Load() != want {
			t.Errorf("%+v: lapsed %v, expires %d", c, lapsed, e.expires.Load())
		}
	}
}
