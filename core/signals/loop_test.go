package signals_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Handlers that set themselves off, and do not pass the cause on, end soon: the propagation limit refuses and counts a
// raise, and signals are delivered as before. A loop may branch: if only the deepest raise of each branch were refused, there
// would be 2 to the power of 64 calls. Its handlers may be new each time, so that no handler is in many deliveries at once.
func TestLoopsEnd(t *testing.T) {
	type sink = *signals.Sink
	type listen = func(s sink, pattern string, do func()) (cancel func())
	operation := func(s sink, onSignal func(signals.Signal)) (o *core.Operation) {
		c := bodies(t, core.Options{Sink: s, OnSignal: onSignal})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error { o = core.OperationFrom(ctx); return nil }), nil)
		return o
	}
	for name, setup := range map[string]func(s sink, on listen){
		"one: a handler raises its own signal": func(s sink, on listen) {
			on(s, "a", func() { s.Raise("a") })
		},
		"one: two raise each other's": func(s sink, on listen) {
			on(s, "a", func() { s.Raise("b") })
			on(s, "b", func() { s.Raise("a") })
		},
		"one: any raises any": func(s sink, on listen) {
			on(s, "*", func() { s.Raise("any") })
		},
		"one: of an operation": func(s sink, on listen) {
			o := operation(s, nil)
			on(s, "a", func() { o.Raise("b") })
			on(s, "b", func() { o.Raise("a") })
		},
		"one: through OnSignal": func(s sink, on listen) {
			var o *core.Operation
			o = operation(s, func(signals.Signal) { o.Raise("b") })
			on(s, "a", func() { o.Raise("b") })
		},
		"one: through a scope": func(s sink, on listen) {
			on(s, "*a", func() { s.Scoped("x", "y", "z").Raise("a") })
		},
		"over two names": func(s sink, on listen) {
			for range 2 {
				on(s, "a", func() { s.Raise("b") })
				on(s, "b", func() { s.Raise("a") })
			}
		},
		"everything raises everything": func(s sink, on listen) {
			for _, name := range []string{"a", "b", "c"} {
				on(s, name, func() { s.Raise("a"); s.Raise("b"); s.Raise("c") })
			}
		},
		"over forwards in circles": func(s sink, on listen) {
			other := signals.NewSink(signals.SinkOptions{})
			for _, from := range []sink{s, other} {
				on(from, "a", func() { from.Raise("a") })
			}
			s.Forward(other, "a")
			other.Forward(s, "a")
		},
		"over two sinks": func(s sink, on listen) {
			other := signals.NewSink(signals.SinkOptions{})
			for range 2 {
				on(s, "a", func() { other.Raise("a") })
				on(other, "a", func() { s.Raise("a") })
			}
		},
		"over a forward": func(s sink, on listen) {
			other := signals.NewSink(signals.SinkOptions{})
			s.Forward(other, "a")
			for range 2 {
				on(other, "a", func() { s.Raise("a") })
			}
		},
		"of unique names": func(s sink, on listen) {
			n := 0
			for range 2 {
				on(s, "a*", func() { n++; s.Raise(fmt.Sprint("a", n)) })
			}
		},
		"of holds": func(s sink, on listen) {
			for range 2 {
				on(s, "a", func() { s.Hold("a", "", 0)() })
			}
		},
		"of retractions": func(s sink, on listen) {
			for range 2 {
				s.SubscribeRetracted("b", func(signals.Retraction) { s.Raise("b"); s.Retract("b") })
			}
			on(s, "a", func() { s.Raise("b"); s.Retract("b") })
			on(s, "b", func() {})
		},
		"slow: of handlers that add handlers": func(s sink, on listen) {
			var handle func()
			handle = func() { on(s, "a", handle); s.Raise("a"); s.Raise("a") }
			on(s, "a", handle)
		},
		"slow: of handlers of retractions that add handlers": func(s sink, on listen) {
			var handle func(signals.Retraction)
			handle = func(signals.Retraction) {
				defer s.SubscribeRetracted("b", handle)()
				s.Raise("b")
				s.Retract("b")
			}
			on(s, "b", func() {})
			on(s, "a", func() { s.SubscribeRetracted("b", handle); s.Raise("b"); s.Retract("b") })
		},
		"of a handler in place of itself": func(s sink, on listen) {
			var cancel, handle func()
			handle = func() { cancel(); cancel = on(s, "a", handle); s.Raise("a") }
			cancel = on(s, "a", handle)
		},
		"of a handler for another name each time": func(s sink, on listen) {
			n := 0
			var handle func()
			handle = func() { n++; defer on(s, fmt.Sprint("a", n), handle)(); s.Raise(fmt.Sprint("a", n)) }
			on(s, "a", handle)
		},
		"of a handler on another sink each time": func(s sink, on listen) {
			var handle func()
			handle = func() {
				next := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{
					OnBlocked: func(signals.Signal, signals.BlockReason) { s.Because(signals.Signal{Name: "blocked"}).Raise("blocked") },
				}})
				on(next, "a", handle)
				next.Raise("a")
			}
			on(s, "a", handle)
		},
		"of a handler behind another forward each time": func(s sink, on listen) {
			to := signals.NewSink(signals.SinkOptions{})
			var cancel, cancelForward, handle func()
			handle = func() {
				cancel()
				cancelForward()
				cancel, cancelForward = on(to, "a", handle), s.Forward(to, "a")
				if !s.Raise("a") || to.Stats().Blocked > 0 {
					s.Because(signals.Signal{Name: "blocked"}).Raise("blocked")
				}
			}
			cancel, cancelForward = on(to, "a", handle), s.Forward(to, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if long.Often(1, 0) == 0 && strings.HasPrefix(name, "slow: ") {
				t.Skip("thousands of looks at a deep stack")
			}
			calls, refused := 0, 0
			s := signals.NewSink(signals.SinkOptions{Propagation: signals.Propagation{Terminal: "blocked", OnBlocked: func(s signals.Signal, why signals.BlockReason) {
				refused++
				coretest.Check(t, why == signals.BlockedDepth || s.Name == "blocked", "%s was blocked: %v", s.Name, why)
			}}})
			setup(s, func(s sink, pattern string, do func()) func() {
				return s.Subscribe(pattern, func(signals.Signal) {
					if calls++; calls > endless {
						t.FailNow()
					}
					do()
				})
			})
			coretest.Check(t, s.Raise("a"), "the first raise was refused")
			stats := s.Stats()
			coretest.Check(t, calls > 0 && stats.Panics == 0, "%d calls and %d panics before the loop ended", calls, stats.Panics)
			if strings.HasPrefix(name, "one: ") {
				coretest.Check(t, stats.Blocked == 1 && refused == 1 && calls <= 1000, "%d refusals counted, %d reported, want 1, after %d calls", stats.Blocked, refused, calls)
			}
			coretest.Check(t, stats.Blocked > 0 || strings.Contains(name, "over"), "nothing was counted as blocked")
			heard := false
			s.Subscribe("unrelated", func(signals.Signal) { heard = true })
			coretest.Check(t, s.Raise("unrelated") && heard, "after a loop nothing is delivered any more")
		})
	}
}

// After a loop, nesting is legal again, on the same goroutine and on others, and while others are in the handler.
func TestAfterALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		loop, depth := true, 0
		for range 2 {
			s.Subscribe("a", func(signals.Signal) {
				if loop || depth > 0 {
					depth--
					s.Raise("a")
				}
			})
		}
		door := make(chan struct{})
		s.Subscribe("a", func(a signals.Signal) {
			if a.Key == "stay" {
				<-door
			}
		})
		other.Subscribe("a", func(signals.Signal) { s.Raise("a") })

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
		s, other := signals.NewSink(signals.SinkOptions{}), signals.NewSink(signals.SinkOptions{})
		door, refused := make(chan struct{}), 0
		for range 2 {
			s.Subscribe("a", func(a signals.Signal) {
				if a.Key == "loop" && !s.RaiseKey("a", "loop") {
					if refused++; refused == 10 {
						<-door // half-way out
					}
				}
			})
		}
		other.Subscribe("a", func(signals.Signal) {
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

// A handler that was subscribed deep inside of deliveries is a handler like others.
func TestSubscribeDeepInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := signals.NewSink(signals.SinkOptions{})
		const deep = 100
		var heard atomic.Int64
		for i := range deep {
			s.Subscribe(fmt.Sprint("n", i), func(signals.Signal) {
				if i == deep-1 {
					s.Subscribe("a", func(signals.Signal) {
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
