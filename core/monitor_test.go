package core_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 2})
		m := s.Monitor("error.*", 10*time.Second)
		defer m.Stop()
		check := func(count int, last string) {
			t.Helper()
			sig, ok := m.Last()
			if m.Count() != count || ok != (last != "") || sig.Key != last {
				t.Errorf("got count %d, last %q, %v, want %d, %q", m.Count(), sig.Key, ok, count, last)
			}
		}
		check(0, "")
		s.RaiseKey("error.a", "1")
		time.Sleep(time.Second)
		s.RaiseKey("error.b", "2")
		s.Raise("other")
		s.Raise("error")
		check(2, "2")
		for range 1000 {
			s.Raise("chatter") // pushes them out of the window
		}
		check(2, "2")
		time.Sleep(9*time.Second - 1)
		check(2, "2")
		time.Sleep(time.Nanosecond)
		check(1, "2")
		time.Sleep(time.Second)
		check(0, "")
		s.RaiseKey("error.c", "3")
		check(1, "3")
	})
}

// A monitor starts with what is in the window, within its span.
func TestMonitorStartsWithTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 5})
		for range 3 {
			s.Raise("a")
			time.Sleep(time.Second)
		}
		s.Hold("a", "held", 0)
		s.RaiseKey("b", "newest")
		for _, tt := range []struct {
			pattern string
			span    time.Duration
			want    int
		}{
			{"a", 0, 4}, {"a", -1, 4}, {"a", time.Hour, 4}, {"a", 2 * time.Second, 2}, {"a", 2*time.Second + 1, 3},
			{"*", 0, 5}, {"*", time.Second, 2}, {"a,b", 0, 5}, {"none", 0, 0}, {"", 0, 0}, {"*", math.MaxInt64, 5},
		} {
			m := s.Monitor(tt.pattern, tt.span)
			if got := m.Count(); got != tt.want {
				t.Errorf("%q over %v: got %d, want %d", tt.pattern, tt.span, got, tt.want)
			}
			m.Stop()
		}
		all := s.Monitor("*", 0)
		if last, ok := all.Last(); !ok || last.Key != "newest" {
			t.Errorf("last: got %v, %v", last, ok)
		}
	})
}

func TestMonitorWithoutSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 10, MaxAge: time.Second})
		m := s.Monitor("a", 0)
		for range 1000 {
			s.Raise("a")
		}
		time.Sleep(time.Hour)
		if got := m.Count(); got != 1000 {
			t.Errorf("got %d, want 1000: neither age nor eviction matters", got)
		}
		s.Raise("a")
		s.Raise("a")
		if s.Retract("a"); m.Count() != 1000 {
			t.Errorf("got %d, want 1000 after the retraction of 2", m.Count())
		}
	})
}

func TestMonitorRetraction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		for _, span := range []time.Duration{0, time.Minute} {
			m := s.Monitor("a", span)
			for i := range 5 {
				s.RaiseKey("a", fmt.Sprint(i))
			}
			release := s.Hold("a", "held", 0)
			if got := m.Count(); got != 6 {
				t.Errorf("%v: got %d, want 6", span, got)
			}
			release()
			if _, ok := m.Last(); ok || m.Count() != 5 {
				t.Errorf("%v: got %d, last %v, want 5 and none after the newest was released", span, m.Count(), ok)
			}
			s.RaiseKey("a", "5")
			if last, ok := m.Last(); !ok || last.Key != "5" {
				t.Errorf("%v: last: got %v, %v", span, last, ok)
			}
			s.Retract("a")
			if got := m.Count(); got != 0 {
				t.Errorf("%v: got %d, want 0", span, got)
			}
			m.Stop()
		}
	})
}

// Taking back a signal that a monitor never counted changes nothing.
func TestMonitorRetractionOfWhatItDidNotCount(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	m := s.Monitor("a", 0)
	s.Restore(slices.Values([]core.Signal{{Name: "a", Time: time.Now()}})) // monitors do not count these
	if got := m.Count(); got != 0 {
		t.Errorf("got %d after Restore, want 0", got)
	}
	s.Retract("a")
	if got := m.Count(); got != 0 {
		t.Errorf("got %d, want 0", got)
	}
}

// The retraction of a signal that is not in the window any more changes nothing,
// whether or not somebody looked in between.
func TestMonitorRetractionAfterAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, look := range []bool{true, false} {
			s := core.NewSink(core.SinkOptions{MaxAge: time.Second})
			c := core.Must(core.NewCoordinator(func(ctx context.Context, _ int) error {
				o := core.OperationFrom(ctx)
				o.Raise("a")
				time.Sleep(time.Minute)
				if look && s.Has("a") {
					t.Error("visible after its age")
				}
				o.Retract("a")
				return nil
			}, core.Options{Sink: s}))
			m := s.Monitor("a", 0)
			c.Do(t.Context(), 0)
			c.Close()
			if got := m.Count(); got != 1 {
				t.Errorf("looked in between: %v: got %d, want 1", look, got)
			}
		}
	})
}

func TestMonitorOfOperationSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		c := core.Must(core.NewCoordinator(func(ctx context.Context, retract bool) error {
			o := core.OperationFrom(ctx)
			o.Raise("a")
			o.Raise("a")
			o.Hold("a", 0) // released when the operation finishes
			if retract {
				o.Retract("a")
			}
			return nil
		}, core.Options{Sink: s, MaxTracked: 1}))
		defer c.Close()
		c.Do(t.Context(), false)
		own, own0, shared, shared0 := c.Monitor("a", time.Minute), c.Monitor("a", 0), s.Monitor("a", time.Minute), s.Monitor("a", 0)
		s.Raise("a") // for the sink only
		check := func(what string, o, sh int) {
			t.Helper()
			if own.Count() != o || own0.Count() != o || shared.Count() != sh || shared0.Count() != sh {
				t.Errorf("%s: got %d, %d of the coordinator, %d, %d of the sink, want %d and %d", what,
					own.Count(), own0.Count(), shared.Count(), shared0.Count(), o, sh)
			}
		}
		check("at first", 2, 3)
		c.Do(t.Context(), true) // evicts the first operation, which changes nothing
		check("after one more", 3, 4)
		if c.Count("a") != 1 || s.Count("a") != 2 {
			t.Errorf("the windows show %d and %d, want 1 and 2", c.Count("a"), s.Count("a"))
		}
		time.Sleep(time.Minute)
		if own.Count() != 0 || shared.Count() != 0 || own0.Count() != 3 || shared0.Count() != 4 {
			t.Errorf("a minute later: got %d, %d, %d, %d", own.Count(), shared.Count(), own0.Count(), shared0.Count())
		}
	})
}

func TestMonitorBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const never = time.Duration(math.MaxInt64)
		s := core.NewSink(core.SinkOptions{})
		m := s.Monitor("a", 10*time.Second)
		check := func(n int, want time.Duration) {
			t.Helper()
			if got := m.Below(n); got != want {
				t.Errorf("Below(%d) with %d: got %v, want %v", n, m.Count(), got, want)
			}
		}
		check(1, 0)
		check(0, never)
		check(-1, never)
		for range 3 {
			s.Raise("a")
			time.Sleep(time.Second)
		}
		check(4, 0)
		check(3, 7*time.Second)
		check(2, 8*time.Second)
		check(1, 9*time.Second)
		check(0, never)
		time.Sleep(m.Below(3) - 1)
		check(3, 1)
		time.Sleep(time.Nanosecond)
		check(3, 0)

		m = s.Monitor("a", 0)
		check(4, 0)
		check(3, never)
		m = s.Monitor("a", math.MaxInt64)
		if got := m.Below(2); got < never-time.Hour {
			t.Errorf("Below with the longest span: got %v", got)
		}
	})
}

func TestMonitorStop(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	m := s.Monitor("a", time.Hour)
	other := s.Monitor("a", time.Hour)
	s.Raise("a")
	release := s.Hold("a", "", 0)
	m.Stop()
	m.Stop()
	s.Raise("a")
	release()
	s.Retract("a")
	if _, ok := m.Last(); ok || m.Count() != 0 || m.Below(1) != 0 {
		t.Errorf("got %d after Stop", m.Count())
	}
	if got := other.Count(); got != 0 {
		t.Errorf("the other one: got %d, want 0", got)
	}
}

func TestMonitorCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{Capacity: 10})
		m := s.Monitor("a", time.Minute)
		for range core.MonitorCap {
			s.Raise("a")
		}
		time.Sleep(time.Second)
		if got := m.Count(); got != core.MonitorCap {
			t.Errorf("got %d, want %d", got, core.MonitorCap)
		}
		for range 100 {
			s.Raise("a")
		}
		if got := m.Count(); got != core.MonitorCap {
			t.Errorf("got %d, want %d", got, core.MonitorCap)
		}
		time.Sleep(time.Minute - time.Second)
		if got := m.Count(); got != 100 { // it is the newest that count
			t.Errorf("got %d, want 100", got)
		}
	})
}

// A monitor is a dull list of times: the same after any sequence of raises,
// retractions and naps.
func TestMonitorSlides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const span = 50 * time.Millisecond
		s := core.NewSink(core.SinkOptions{Capacity: 1 << 14})
		m := s.Monitor("a", span)
		var times []time.Time
		for i := range 5000 {
			s.Raise("a")
			times = append(times, time.Now())
			if i%7 == 0 {
				time.Sleep(time.Duration(i%5) * time.Millisecond)
			}
			if i%1000 == 999 {
				s.Retract("a")
				times = nil
			}
			for len(times) > 0 && time.Since(times[0]) >= span {
				times = times[1:]
			}
			if got := m.Count(); got != len(times) {
				t.Fatalf("step %d: got %d, want %d", i, got, len(times))
			}
		}
	})
}

func TestMonitorConcurrentSafe(t *testing.T) {
	s := core.NewSink(core.SinkOptions{Capacity: 16})
	m := s.Monitor("a", time.Hour)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				s.Raise("a")
				m.Count()
				m.Last()
				m.Below(100)
			}
		})
	}
	wg.Wait()
	if got := m.Count(); got != 2000 {
		t.Errorf("got %d, want 2000", got)
	}
	wg.Go(m.Stop)
	wg.Go(func() { s.Raise("a") })
	wg.Wait()
}
