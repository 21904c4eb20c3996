package core_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A loop ends also when its handlers are new each time, so that no handler is in many deliveries at once.
func TestLoopOfFreshHandlers(t *testing.T) {
	// count panics before the stack overflows.
	count := func(calls *int) {
		if *calls++; *calls > endless {
			panic("endless")
		}
	}
	tests := map[string]func(s *core.Sink, calls *int){
		"one more each time": func(s *core.Sink, calls *int) {
			var handler func(core.Signal)
			handler = func(core.Signal) {
				count(calls)
				s.Subscribe("a", handler)
				s.Raise("a")
			}
			s.Subscribe("a", handler)
		},
		"in place of itself": func(s *core.Sink, calls *int) {
			var cancel func()
			var handler func(core.Signal)
			handler = func(core.Signal) {
				count(calls)
				cancel()
				cancel = s.Subscribe("a", handler)
				s.Raise("a")
			}
			cancel = s.Subscribe("a", handler)
		},
		"for another name": func(s *core.Sink, calls *int) {
			var handler func(core.Signal)
			handler = func(core.Signal) {
				count(calls)
				name := fmt.Sprint("a", *calls)
				defer s.Subscribe(name, handler)()
				s.Raise(name)
			}
			s.Subscribe("a", handler)
		},
		"on another sink": func(s *core.Sink, calls *int) {
			var handler func(core.Signal)
			handler = func(core.Signal) {
				count(calls)
				next := core.NewSink(core.SinkOptions{Propagation: core.Propagation{
					OnBlocked: func(core.Signal, core.BlockReason) { s.Because(core.Signal{Name: "blocked"}).Raise("blocked") },
				}})
				next.Subscribe("a", handler)
				next.Raise("a")
			}
			s.Subscribe("a", handler)
		},
		"of retractions": func(s *core.Sink, calls *int) {
			var handler func(core.Retraction)
			handler = func(core.Retraction) {
				count(calls)
				defer s.SubscribeRetracted("b", handler)()
				s.Raise("b")
				s.Retract("b")
			}
			s.Subscribe("a", func(core.Signal) {
				s.SubscribeRetracted("b", handler)
				s.Raise("b")
				s.Retract("b")
			})
		},
		"of forwarded signals": func(s *core.Sink, calls *int) {
			to := core.NewSink(core.SinkOptions{})
			cancelForward := s.Forward(to, "a")
			var cancel func()
			var handler func(core.Signal)
			handler = func(core.Signal) {
				count(calls)
				cancel()
				cancelForward()
				cancel = to.Subscribe("a", handler)
				cancelForward = s.Forward(to, "a")
				if !s.Raise("a") || to.Stats().Blocked > 0 {
					s.Because(core.Signal{Name: "blocked"}).Raise("blocked")
				}
			}
			cancel = to.Subscribe("a", handler)
		},
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			if core.Often(1, 0) == 0 && (name == "one more each time" || name == "of retractions") {
				t.Skip("thousands of looks at a deep stack")
			}
			calls := 0
			s := core.NewSink(core.SinkOptions{Propagation: core.Propagation{Terminal: "blocked"}})
			setup(s, &calls)
			coretest.Check(t, s.Raise("a"), "the first raise was refused")
			coretest.Check(t, calls != 0 && calls <= 10_000 && s.Stats().Panics <= 0, "%d calls, %d panics before the loop ended", calls, s.Stats().Panics)
			coretest.Check(t, s.Stats().Blocked != 0, "after %d calls nothing was counted as blocked", calls)
		})
	}
}

// A loop that branches ends soon. If only the deepest raise of each branch were refused, there would be 2 to the
// power of 64 calls.
func TestLoopThatBranches(t *testing.T) {
	tests := map[string]func(s *core.Sink, call func()){
		"two handlers": func(s *core.Sink, call func()) {
			for range 2 {
				s.Subscribe("a", func(core.Signal) { call(); s.Raise("a") })
			}
		},
		"one that raises twice": func(s *core.Sink, call func()) {
			s.Subscribe("a", func(core.Signal) { call(); s.Raise("a"); s.Raise("a") })
		},
		"over two names": func(s *core.Sink, call func()) {
			for range 3 {
				s.Subscribe("a", func(core.Signal) { call(); s.Raise("b") })
				s.Subscribe("b", func(core.Signal) { call(); s.Raise("a") })
			}
		},
		"everything raises everything": func(s *core.Sink, call func()) {
			for _, name := range []string{"a", "b", "c"} {
				s.Subscribe(name, func(core.Signal) { call(); s.Raise("a"); s.Raise("b"); s.Raise("c") })
			}
		},
		"over forwards in circles": func(s *core.Sink, call func()) {
			other := core.NewSink(core.SinkOptions{})
			for _, from := range []*core.Sink{s, other} {
				from.Subscribe("a", func(core.Signal) { call(); from.Raise("a") })
			}
			s.Forward(other, "a")
			other.Forward(s, "a")
		},
		"over two sinks": func(s *core.Sink, call func()) {
			other := core.NewSink(core.SinkOptions{})
			for range 2 {
				s.Subscribe("a", func(core.Signal) { call(); other.Raise("a") })
				other.Subscribe("a", func(core.Signal) { call(); s.Raise("a") })
			}
		},
		"over a forward": func(s *core.Sink, call func()) {
			other := core.NewSink(core.SinkOptions{})
			s.Forward(other, "a")
			for range 2 {
				other.Subscribe("a", func(core.Signal) { call(); s.Raise("a") })
			}
		},
		"of unique names": func(s *core.Sink, call func()) {
			n := 0
			for range 2 {
				s.Subscribe("a*", func(core.Signal) { call(); n++; s.Raise(fmt.Sprint("a", n)) })
			}
		},
		"of holds": func(s *core.Sink, call func()) {
			for range 2 {
				s.Subscribe("a", func(core.Signal) { call(); s.Hold("a", "", 0)() })
			}
		},
		"of retractions": func(s *core.Sink, call func()) {
			for range 2 {
				s.SubscribeRetracted("b", func(core.Retraction) { call(); s.Raise("b"); s.Retract("b") })
			}
			s.Subscribe("a", func(core.Signal) { s.Raise("b"); s.Retract("b") })
		},
		"of handlers that add handlers": func(s *core.Sink, call func()) {
			var handler func(core.Signal)
			handler = func(core.Signal) {
				call()
				s.Subscribe("a", handler)
				s.Raise("a")
				s.Raise("a")
			}
			s.Subscribe("a", handler)
		},
	}
	for name, setup := range tests {
		t.Run(name, func(t *testing.T) {
			if core.Often(1, 0) == 0 && name == "of handlers that add handlers" {
				t.Skip("thousands of looks at a deep stack")
			}
			s := core.NewSink(core.SinkOptions{})
			calls := 0
			setup(s, func() {
				if calls++; calls > 100*endless {
					t.FailNow()
				}
			})
			s.Raise("a")
			t.Logf("%d calls, %d blocked", calls, s.Stats().Blocked)
			coretest.Check(t, calls <= endless && s.Stats().Panics <= 0, "%d calls, %d panics before the loop ended", calls, s.Stats().Panics)
		})
	}
}

// After a loop, nesting is legal again, on the same goroutine and on others, and while others are in the handler.
func TestAfterALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := core.NewSink(core.SinkOptions{}), core.NewSink(core.SinkOptions{})
		loop, depth := true, 0
		for range 2 {
			s.Subscribe("a", func(core.Signal) {
				if loop || depth > 0 {
					depth--
					s.Raise("a")
				}
			})
		}
		door := make(chan struct{})
		s.Subscribe("a", func(a core.Signal) {
			if a.Key == "stay" {
				<-door
			}
		})
		other.Subscribe("a", func(core.Signal) { s.Raise("a") })

		s.Raise("a")
		blocked := s.Stats().Blocked
		if blocked == 0 {
			t.Fatal("the loop was not refused")
		}
		check := func(when string, raise func()) {
			t.Helper()
			depth = 20
			before := s.Stats().Raised
			raise()
			if got := s.Stats(); got.Blocked != blocked || got.Raised != before+21 {
				t.Errorf("%s: %d blocked, %d raised, want none and 21", when, got.Blocked-blocked, got.Raised-before)
			}
		}
		loop = false
		check("by itself", func() { s.Raise("a") })
		loop = true
		s.Raise("a")
		loop, blocked = false, s.Stats().Blocked
		check("from another delivery", func() { other.Raise("a") })
		loop = true
		s.Raise("a")
		loop, blocked = false, s.Stats().Blocked
		go s.RaiseKey("a", "stay") // so that the handlers are never idle from here on
		synctest.Wait()
		check("while another is in the handler", func() { s.Raise("a") })
		loop = true
		s.Raise("a")
		loop, blocked = false, s.Stats().Blocked
		check("likewise, right after a loop", func() { s.Raise("a") })
		check("and from another delivery", func() { other.Raise("a") })
		close(door)
	})
}

// While one goroutine leaves a loop, others can raise the same signal, also inside deliveries.
func TestLoopConcernsOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := core.NewSink(core.SinkOptions{}), core.NewSink(core.SinkOptions{})
		door, refused := make(chan struct{}), 0
		for range 2 {
			s.Subscribe("a", func(a core.Signal) {
				if a.Key == "loop" && !s.RaiseKey("a", "loop") {
					if refused++; refused == 10 {
						<-door // half-way out
					}
				}
			})
		}
		other.Subscribe("a", func(core.Signal) {
			coretest.Check(t, s.RaiseKey("a", "innocent"), "refused for somebody else's loop")
		})
		go s.RaiseKey("a", "loop")
		synctest.Wait()
		if refused != 10 {
			t.Fatalf("got %d refused so far, want 10", refused)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { other.Raise("a") })
			wg.Go(func() { s.Raise("a") })
		}
		wg.Wait()
		close(door)
		synctest.Wait()
		if got := s.Stats(); got.Raised > 300 || got.Blocked < 10 || got.Blocked > 300 {
			t.Errorf("got %d raised, %d blocked", got.Raised, got.Blocked)
		}
	})
}

// Many loops at once, on many goroutines, for the race detector.
func TestManyLoopsAtOnce(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	var calls atomic.Int64
	for range 2 {
		s.Subscribe("a", func(core.Signal) {
			if calls.Add(1) > 100*endless {
				t.Error("endless")
				panic("endless")
			}
			s.Raise("a")
		})
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { s.Raise("a") })
	}
	wg.Wait()
	if got := s.Stats(); got.Panics > 0 || got.Blocked < 20 {
		t.Errorf("got %+v", got)
	}
	t.Logf("%d calls", calls.Load())
}

// A handler that was subscribed deep inside of deliveries is a handler like others.
func TestSubscribeDeepInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := core.NewSink(core.SinkOptions{})
		const deep = 100
		var heard atomic.Int64
		for i := range deep {
			s.Subscribe(fmt.Sprint("n", i), func(core.Signal) {
				if i == deep-1 {
					s.Subscribe("a", func(core.Signal) {
						heard.Add(1)
						time.Sleep(time.Second)
					})
					return
				}
				coretest.Check(t, s.Raise(fmt.Sprint("n", i+1)), "refused at depth %d", i)
			})
		}
		s.Raise("n0")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				coretest.Check(t, s.Raise("a"), "refused")
			})
			time.Sleep(time.Second / 2)
		}
		wg.Wait()
		coretest.Check(t, heard.Load() == 10 && s.Stats().Blocked == 0, "heard %d, %d blocked, want 10, 0", heard.Load(), s.Stats().Blocked)
	})
}
