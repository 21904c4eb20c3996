package clock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
)

// Offsets and times convert into each other, and 0 and Never have no time.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.New()
		if first := c.Now(); first != 1 {
			t.Errorf("the first reading is %d, want 1", first)
		}
		time.Sleep(time.Minute)
		if at := c.Now(); !c.Wall(at).Equal(time.Now()) || c.Offset(time.Now()) != at {
			t.Errorf("offset %d is %v, and back %d", at, c.Wall(at), c.Offset(time.Now()))
		}
		if !c.Wall(0).IsZero() || !c.Wall(clock.Never).IsZero() {
			t.Errorf("got %v and %v, want no times", c.Wall(0), c.Wall(clock.Never))
		}
	})
}

// A time that is too late for an offset is never.
func TestLater(t *testing.T) {
	for _, c := range []struct{ at, span, want int64 }{
		{1, 2, 3}, {1, clock.Never, clock.Never}, {clock.Never, 1, clock.Never}, {clock.Never - 5, 6, clock.Never},
	} {
		if got := clock.Later(c.at, c.span); got != c.want {
			t.Errorf("Later(%d, %d): got %d, want %d", c.at, c.span, got, c.want)
		}
	}
}

// An alarm rings at the earliest time that it was set to, and not after a stop.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the owner of an alarm has one
		var a clock.Alarm
		c, start, rang := clock.New(), time.Now(), []time.Duration(nil)
		ring := func() {
			mu.Lock()
			defer mu.Unlock()
			a.Armed, rang = false, append(rang, time.Since(start))
		}
		set := func(after time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			a.Set(c, c.Now()+int64(after), ring)
		}
		for _, after := range []time.Duration{3 * time.Minute, time.Minute, 2 * time.Minute} {
			set(after)
		}
		time.Sleep(time.Hour)
		set(time.Minute)
		mu.Lock()
		a.Stop()
		mu.Unlock()
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if len(rang) != 1 || rang[0] != time.Minute {
			t.Errorf("rang after %v, want after a minute", rang)
		}
	})
}
