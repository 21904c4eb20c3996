package signals_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errCause = errors.New("cause")

func TestWaitForPresent(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.RaiseKey("ready", "1")
	s.RaiseKey("ready", "2")
	s.Raise("other")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, pattern := range []string{"ready", "re*"} {
		got, err := s.WaitFor(ended, pattern)
		coretest.Check(t, err == nil && got.Key == "2", "%s: got %v, %v, want the newest", pattern, got, err)
	}
	s.Hold("ready", "3", 0)
	if got, err := s.WaitFor(ended, "ready"); err != nil || got.Key != "3" || !got.Held {
		t.Errorf("got %v, %v, want the held one", got, err)
	}
}

func TestWaitForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{MaxAge: time.Minute})
		s.RaiseKey("ready", "expired")
		time.Sleep(time.Hour)
		start := time.Now()
		time.AfterFunc(time.Second, func() { s.Raise("other") })
		time.AfterFunc(2*time.Second, func() { s.RaiseKey("ready", "k"); s.Retract("ready") })
		got, err := s.WaitFor(t.Context(), "ready")
		coretest.Check(t, err == nil && got.Key == "k" && time.Since(start) == 2*time.Second, "got %v, %v after %v", got, err, time.Since(start))
	})
}

func TestWaitForGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		for _, pattern := range []string{"ready", "", ","} {
			s.Raise("other")
			start := time.Now()
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCause)
			got, err := s.WaitFor(ctx, pattern)
			cancel()
			coretest.Check(t, err == errCause && got.Name == "" && time.Since(start) == time.Second, "%q: got %v, %v after %v, want the cause after 1s", pattern, got, err, time.Since(start))
		}
		// Nothing is left behind.
		if s.Raise("ready"); s.Stats().Panics != 0 {
			t.Error("a handler is left behind")
		}
	})
}

// A deadline is kept although a handler of the same signal blocks.
func TestWaitForBesideASlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{MaxAge: time.Millisecond})
		s.Subscribe("ready", func(signals.Signal) { time.Sleep(time.Hour) })
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() { s.Raise("ready") })
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errCause)
		defer cancel()
		_, err := s.WaitFor(ctx, "ready")
		if took := time.Since(start); took > time.Second {
			t.Errorf("got %v after %v, want an answer within 1s", err, took)
		}
		time.Sleep(2 * time.Hour)
	})
}

// gone runs WaitGone and returns how long it took, up to a limit.
func gone(t *testing.T, s *signals.Sink, pattern string, limit time.Duration) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errCause)
	defer cancel()
	start := time.Now()
	err := s.WaitGone(ctx, pattern)
	return time.Since(start), err
}

// endings are ways in which "busy.*" is there for two seconds.
var endings = map[string]func(s *signals.Sink){
	"retracted": func(s *signals.Sink) {
		s.Raise("busy.a")
		s.Raise("busy.b")
		time.AfterFunc(time.Second, func() { s.Retract("busy.a") })
		time.AfterFunc(2*time.Second, func() { s.Retract("busy.b") })
	},
	"released": func(s *signals.Sink) {
		time.AfterFunc(2*time.Second, s.Hold("busy.a", "", 0))
	},
	"evicted": func(s *signals.Sink) {
		s.Raise("busy.a")
		time.AfterFunc(2*time.Second, func() {
			for range 100 {
				s.Raise("other")
			}
		})
	},
	"forgotten": func(s *signals.Sink) {
		s.Raise("busy.a")
		time.AfterFunc(2*time.Second, func() { s.Forget(signals.Query{Pattern: "*"}) })
	},
	"leased": func(s *signals.Sink) {
		s.Hold("busy.a", "", time.Second)
		s.Hold("busy.b", "", 2*time.Second)
		s.Hold("other", "", 3*time.Second)
	},
	"aged": func(s *signals.Sink) {
		s.Resize(100, 2*time.Second)
		s.Raise("busy.a")
	},
	"resized": func(s *signals.Sink) {
		s.Raise("busy.a")
		time.AfterFunc(2*time.Second, func() { s.Raise("other"); s.Resize(1, 0) })
	},

	// The same, with an end that is set only while it is waited for.
	"aged by a resize": func(s *signals.Sink) {
		s.Raise("busy.a")
		time.AfterFunc(time.Second, func() { s.Resize(100, 2*time.Second) })
	},
	"leased later": func(s *signals.Sink) {
		s.Raise("busy.a")
		time.AfterFunc(time.Second, func() {
			s.Hold("busy.b", "", time.Second)
			s.Retract("busy.a")
		})
	},
	"released, and then a younger one aged": func(s *signals.Sink) {
		s.Resize(100, time.Second)
		release := s.Hold("busy.a", "", 0)
		time.AfterFunc(time.Second, func() {
			s.Raise("busy.b")
			release()
		})
	},
}

func TestWaitGone(t *testing.T) {
	for name, setup := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := signals.NewSink(signals.SinkOptions{Capacity: 100})
				setup(s)
				took, err := gone(t, s, "busy.*", time.Minute)
				coretest.Check(t, err == nil && took == 2*time.Second, "got %v after %v, want nil after 2s", err, took)
			})
		})
	}
}

func TestWaitGoneAtOnce(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.Raise("other")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, pattern := range []string{"busy", "b*", ""} {
		if err := s.WaitGone(ended, pattern); err != nil {
			t.Errorf("%q: got %v, want nil", pattern, err)
		}
	}
}

func TestWaitGoneGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		s.Raise("busy")
		if took, err := gone(t, s, "busy", time.Second); err != errCause || took != time.Second {
			t.Errorf("got %v after %v, want the cause after 1s", err, took)
		}
	})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		s.Raise("a.before")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for sig, missed := range s.Watch(ctx, "a.*") {
				got = append(got, fmt.Sprint(sig.Name, " ", missed))
			}
		}()
		synctest.Wait()
		s.Raise("a.1")
		s.Raise("b")
		s.Raise("a.2")
		synctest.Wait()
		cancel()
		<-done
		wantNames(t, "watched", got, "a.1 0", "a.2 0")
		s.Raise("a.3") // no loop is left to get it
	})
}

// A slow loop misses the oldest signals and gets their number, and no raiser waits.
func TestWatchMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		var got []string
		total, n := 0, 0
		go func() {
			for sig, missed := range s.Watch(t.Context(), "*") {
				if n == 0 || missed > 0 {
					got = append(got, fmt.Sprint(sig.Name, " ", missed))
				}
				total += 1 + missed
				if n++; n == 1 {
					time.Sleep(time.Hour) // slow
				}
				if sig.Name == "last" {
					return
				}
			}
		}()
		synctest.Wait()
		s.Raise("n0")
		synctest.Wait()
		for i := 1; i <= 1000; i++ {
			s.Raise(fmt.Sprintf("n%d", i))
		}
		time.Sleep(2 * time.Hour)
		s.Raise("last")
		synctest.Wait()
		wantNames(t, "watched", got, "n0 0", "n745 744")
		checkEqual(t, "total", total, 1002)
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		time.AfterFunc(time.Second, func() {
			for range 10 {
				s.Raise("a")
			}
		})
		for range s.Watch(ctx, "a") {
			if n++; n == 3 {
				cancel() // the rest is not shown
			}
		}
		checkEqual(t, "after the end", n, 3)
		for range s.Watch(ctx, "a") {
			t.Error("got a signal, the context has ended before")
		}
	})
}

// A signal that the body of the loop raises is seen by the loop.
func TestWatchRaisesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		time.AfterFunc(time.Second, func() { s.Raise("a0") })
		n := 0
		for range s.Watch(t.Context(), "a*") {
			if n++; n == 500 {
				break
			}
			s.Raise(fmt.Sprintf("a%d", n))
		}
		checkEqual(t, "signals", n, 500)
	})
}

// Follow shows each signal once, present ones first and in order, while others are raised.
func TestFollow(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{Capacity: 10000})
	s.Raise("x.0")
	s.Hold("x.held", "", 0)
	s.Raise("y")
	s.Raise("x.1")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				s.Raise("x.meanwhile")
			}
		})
	}
	var mu sync.Mutex
	var seqs []uint64
	var names []string
	cancel := s.Follow("x.*", func(signal signals.Signal) {
		mu.Lock()
		defer mu.Unlock()
		seqs, names = append(seqs, signal.Seq), append(names, signal.Name)
		if signal.Name == "x.0" {
			go s.Has("x.0") // no lock is held
			mu.Unlock()
			s.Raise("x.inside") // comes after the present signals
			mu.Lock()
		}
		if signal.Name == "x.1" {
			panic("on purpose")
		}
	})
	wg.Wait()
	s.Raise("x.last")
	if !slices.Equal(names[:3], []string{"x.0", "x.held", "x.1"}) || names[len(names)-1] != "x.last" {
		t.Errorf("got %v ... %s", names[:3], names[len(names)-1])
	}
	slices.Sort(seqs)
	checkEqual(t, "signals", len(slices.Compact(seqs)), 4*200+5)
	checkEqual(t, "calls", len(seqs), 4*200+5)
	checkEqual(t, "panics", s.Stats().Panics, 1)
	checkEqual(t, "handlers", s.Stats().Handlers, 1)
	cancel()
	s.Raise("x.late")
	checkEqual(t, "calls after cancel", len(names), len(seqs))
	checkEqual(t, "handlers after cancel", s.Stats().Handlers, 0)
	checkPanics(t, func() { s.Follow("*", nil) })
}

// A handler of Follow that raises a signal which it follows is stopped, as with Subscribe.
func TestFollowLoop(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.Raise("x")
	defer s.Follow("x", func(signals.Signal) { s.Raise("x") })()
	coretest.Check(t, s.Stats().Blocked != 0, "the loop was not refused")
}
