package signals_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestNewSinkChecksItsOptions(t *testing.T) {
	refused := func(what string, call func()) {
		t.Helper()
		defer func() {
			coretest.Check(t, recover() != nil, "%s: accepted", what)
		}()
		call()
	}
	refused("negative capacity", func() { signals.NewSink(signals.SinkOptions{Capacity: -1}) })
	refused("huge capacity", func() { signals.NewSink(signals.SinkOptions{Capacity: signals.MaxSinkCapacity + 1}) })

	s := signals.NewSink(signals.SinkOptions{})
	refused("Resize to nothing", func() { s.Resize(0, 0) })
	refused("Resize to a huge capacity", func() { s.Resize(signals.MaxSinkCapacity+1, 0) })
	refused("Resize to a negative age", func() { s.Resize(10, -1) })
	if got := s.Stats(); got.Capacity != 1000 || got.MaxAge != 5*time.Minute {
		t.Errorf("got capacity %d, age %v, want the defaults 1000, 5m", got.Capacity, got.MaxAge)
	}
	if got := signals.NewSink(signals.SinkOptions{MaxAge: -1}).Stats().MaxAge; got != 0 {
		t.Errorf("got age %v for a negative one, want none", got)
	}
	signals.NewSink(signals.SinkOptions{Capacity: signals.MaxSinkCapacity, MaxAge: math.MaxInt64}).Raise("fits")
}

// The zero Sink is one with default options, whatever is done with it first.
func TestZeroSink(t *testing.T) {
	for what, first := range map[string]func(s *signals.Sink){
		"Raise":   func(s *signals.Sink) { s.Raise("first") },
		"Because": func(s *signals.Sink) { s.Because(signals.Signal{Name: "cause"}).Raise("first") },
		"Hold":    func(s *signals.Sink) { s.Hold("first", "", time.Second) },
		"Has":     func(s *signals.Sink) { s.Has("none"); s.Raise("first") },
		"Subscribe": func(s *signals.Sink) {
			s.Subscribe("other", func(signals.Signal) {})
			s.SubscribeRetracted("other", func(signals.Retraction) {})
			s.Raise("first")
		},
		"Forward": func(s *signals.Sink) {
			var from signals.Sink
			from.Forward(s, "first")
			s.Forward(&from, "first")
			from.Raise("first")
		},
		"Sense": func(s *signals.Sink) {
			for range s.Sense(signals.Query{}) {
				t.Error("a zero Sink has a signal")
			}
			s.Raise("first")
		},
		"Monitor":  func(s *signals.Sink) { defer s.Monitor("first", 0).Stop(); s.Raise("first") },
		"WaitGone": func(s *signals.Sink) { s.WaitGone(t.Context(), "first"); s.Raise("first") },
		"Retract":  func(s *signals.Sink) { s.Retract("none"); s.Raise("first") },
		"Restore": func(s *signals.Sink) {
			s.Restore(slices.Values([]signals.Signal{{Name: "first", Time: time.Now()}}))
		},
		"Resize": func(s *signals.Sink) { s.Resize(1000, 5*time.Minute); s.Raise("first") },
		"coordinator": func(s *signals.Sink) {
			bodies(t, core.Options{Sink: s}).Do(t.Context(), raise("first"))
		},
	} {
		s, before := new(signals.Sink), time.Now()
		first(s)
		got := newest(t, s, "first")
		coretest.Check(t, !got.Time.Before(before) && !got.Time.After(time.Now()) && s.Count("first") == 1, "%s: got %v at %v, %d of them", what, got, got.Time, s.Count("first"))
		if stats := s.Stats(); stats.Capacity != 1000 || stats.MaxAge != 5*time.Minute || stats.Blocked != 0 {
			t.Errorf("%s: got %+v", what, stats)
		}
	}
}

// A call without something that it needs panics with a text that says so.
func TestSinkRefusesNil(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	var none context.Context
	wantPanic(t, "signals: Restore needs signals", func() { s.Restore(nil) })
	wantPanic(t, "signals: Forget needs a Query", func() { s.Forget(signals.Query{}) })
	wantPanic(t, "signals: WaitFor needs a context", func() { s.WaitFor(none, "a") })
	wantPanic(t, "signals: WaitGone needs a context", func() { s.WaitGone(none, "a") })
	wantPanic(t, "signals: Watch needs a context", func() { s.Watch(none, "a") })
	wantPanic(t, "signals: Subscribe needs a function", func() { s.Subscribe("*", nil) })
	wantPanic(t, "signals: SubscribeRetracted needs a function", func() { s.SubscribeRetracted("*", nil) })
	wantPanic(t, "signals: Subscribe needs a function", func() { fileSaved.Subscribe(s, nil) })
}

func wantPanic(t *testing.T, want string, call func()) {
	t.Helper()
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
			t.Errorf("got panic %q, want one that begins with %q", got, want)
		}
	}()
	call()
}

// Reading is not needed to keep a sink within its age: raising is enough.
func TestSinkAgesWhileRaising(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{Capacity: 100, MaxAge: time.Second})
		for range 100 {
			s.Raise("old")
		}
		time.Sleep(time.Hour)
		for range 100 {
			s.Raise("new")
		}
		got := s.Stats()
		checkEqual(t, "Expired, Evicted, Stored", words(got.Expired, got.Evicted, got.Stored), "100 0 100")
	})
}

// The longest age and the longest lease are as good as none.
func TestLongestAgeAndLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{MaxAge: math.MaxInt64})
		time.Sleep(time.Hour)
		s.Raise("a")
		s.Hold("b", "", math.MaxInt64)
		time.Sleep(time.Hour)
		checkEqual(t, "signals after an hour", s.Count("a, b"), 2)
	})
}

// A handler that panics does not keep later ones from being called.
func TestPanickingHandlerDoesNotStopOthers(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	heard := make([]int, 4)
	for i := range heard {
		s.Subscribe("a", func(signals.Signal) {
			heard[i]++
			if i%2 == 0 {
				panic(fmt.Sprint("handler ", i))
			}
		})
	}
	for range 3 {
		if !s.Raise("a") {
			t.Fatal("not raised")
		}
	}
	if want := []int{3, 3, 3, 3}; !slices.Equal(heard, want) {
		t.Errorf("called %v times, want %v", heard, want)
	}
	checkEqual(t, "panics", s.Stats().Panics, 6)
}

// After cancel has returned, no call of the handler runs or starts.
func TestCancelWaitsForTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		door := make(chan struct{})
		var ended, cancelled atomic.Bool
		cancel := s.Subscribe("a", func(signals.Signal) {
			<-door
			ended.Store(true)
		})
		go s.Raise("a")
		synctest.Wait()
		for range 2 { // both wait
			go func() {
				cancel()
				cancelled.Store(true)
				coretest.Check(t, ended.Load(), "cancel returned while a call was running")
			}()
		}
		synctest.Wait()
		coretest.Check(t, !cancelled.Load(), "cancel has not waited")
		s.Raise("a") // does not block: no call starts any more
		close(door)
		synctest.Wait()
		coretest.Check(t, cancelled.Load(), "cancel has not returned")
	})
}

// cancel waits for calls of its own handler, but not for a slow handler before it.
func TestCancelDoesNotWaitForOtherHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		door := make(chan struct{})
		s.Subscribe("a", func(signals.Signal) { <-door })
		calls, cancelled := 0, false
		cancel := s.Subscribe("a", func(signals.Signal) { calls++ })
		go s.Raise("a")
		synctest.Wait()
		go func() {
			cancel()
			cancelled = true
		}()
		synctest.Wait()
		coretest.Check(t, cancelled, "cancel waits for a handler that is not its own")
		close(door)
		synctest.Wait()
		checkEqual(t, "calls", calls, 0)
	})
}

func TestCancelFromInsideTheHandler(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	calls, later := 0, 0
	var cancel, cancelLater func()
	cancel = s.Subscribe("a", func(signals.Signal) {
		calls++
		cancel()
		cancelLater()
	})
	cancelLater = s.Subscribe("a", func(signals.Signal) { later++ })
	s.Raise("a")
	s.Raise("a")
	coretest.Check(t, calls == 1 && later == 0, "got %d calls of the handler, %d of the one it cancelled, want 1, 0", calls, later)
}

// A handler that was subscribed by a handler does not get the signal that is being delivered.
func TestSubscribeWhileDelivering(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	inner := 0
	s.Subscribe("a", func(signals.Signal) {
		s.Subscribe("a", func(signals.Signal) { inner++ })
	})
	s.Raise("a")
	checkEqual(t, "calls of the inner handler", inner, 0)
	s.Raise("a")
	checkEqual(t, "calls of the inner handler", inner, 1)
}

func TestHoldWithAPayload(t *testing.T) {
	s, lost := signals.NewSink(signals.SinkOptions{}), signals.NewKind[error]("store.lost")
	release := lost.Hold(s, "k", io.EOF, 0)
	for signal, err := range lost.Sense(s, signals.Query{}) {
		checkEqual(t, "held", fmt.Sprint(signal.Key, signal.Held, err), "ktrue EOF")
	}
	release()
	checkEqual(t, "has it", s.Has("store.lost"), false)
}

// A window that moves through many sizes, larger than a segment, loses nothing
// early.
func TestResizeLarge(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{Capacity: 3000})
	raised, kept := 0, 0
	for _, capacity := range []int{5000, 1024, 1025, 4096, 100, 10000, 2047, 2048, 9000, 3000, 9000, 1000, 600, 700, 1} {
		for range 2500 {
			s.RaiseKey(fmt.Sprintf("n%d", raised%7), fmt.Sprint(raised))
			raised++
		}
		kept = min(kept+2500, s.Stats().Capacity)
		s.Resize(capacity, 0)
		kept = min(kept, capacity)
		next := raised - kept
		for sig := range s.Sense(signals.Query{}) {
			if sig.Key != fmt.Sprint(next) {
				t.Fatalf("capacity %d: got %s, want %d", capacity, sig.Key, next)
			}
			next++
		}
		if next != raised {
			t.Fatalf("capacity %d: ended at %d, want %d", capacity, next, raised)
		}
		n := 0
		for i := range 7 {
			n += len(sensed(s, signals.Query{Pattern: fmt.Sprintf("n%d", i)}))
		}
		if n != kept {
			t.Fatalf("capacity %d: by name got %d, want %d", capacity, n, kept)
		}
	}
}

func TestSinkStatsJSON(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{Capacity: 1})
	s.Raise("a")
	s.Raise("b")
	got, err := json.Marshal(s.Stats())
	want := `{"held":0,"stored":1,"kept":0,"capacity":1,"maxAge":300000000000,"raised":2,"evicted":1,"expired":0,"blocked":0,"panics":0,"handlers":0,"monitors":0}`
	coretest.Check(t, err == nil && string(got) == want, "got %s, %v, want %s", got, err, want)
}

// Everything at once, for the race detector. Then the counts must add up.
func TestSinkConcurrentSafe(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{Capacity: 64})
	m := s.Monitor("a.*", 0)
	var heard atomic.Int64
	s.Subscribe("a.*", func(signals.Signal) { heard.Add(1) })
	var wg sync.WaitGroup
	const each = 300
	for w := range 4 {
		wg.Go(func() {
			for i := range each {
				s.RaiseKey(fmt.Sprintf("a.%d", i%10), fmt.Sprint(w))
				m.Count()
				m.Last()
				m.Below(100)
				if i%3 == 0 {
					s.Hold("held", "", time.Nanosecond)()
				}
			}
		})
	}
	wg.Go(func() {
		for i := range each {
			s.Resize(32+i%64, time.Duration(i%2)*time.Hour)
			s.Restore(slices.Values([]signals.Signal{{Name: "restored", Time: time.Now()}}))
			s.Forget(signals.Query{Pattern: "restored"})
		}
	})
	wg.Go(func() {
		for i := range each {
			s.Subscribe("*", func(signals.Signal) {})()
			s.Monitor(fmt.Sprintf("a.%d", i), time.Minute).Stop()
		}
	})
	wg.Go(func() {
		for i := range each {
			last := uint64(0)
			for sig := range s.Sense(signals.Query{}) {
				coretest.Check(t, sig.Seq > last && sig.Name != "", "%q with Seq %d after %d", sig.Name, sig.Seq, last)
				last = sig.Seq
			}
			s.Has(fmt.Sprintf("a.?%d", i)) // another pattern each time
			if got := s.Stats(); got.Stored > got.Capacity {
				t.Errorf("got %d stored with capacity %d", got.Stored, got.Capacity)
			}
		}
	})
	wg.Wait()
	if got := m.Count(); got != 4*each || heard.Load() != 4*each {
		t.Errorf("counted %d, heard %d, want %d", got, heard.Load(), 4*each)
	}
	checkEqual(t, "held", s.Stats().Held, 0)
	n := len(sensed(s, signals.Query{}))
	if got := s.Stats(); got.Stored != n || s.Count("*") != n {
		t.Errorf("stored %d, counted %d, sensed %d, want the same", got.Stored, s.Count("*"), n)
	}
}
