package core_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func upTo(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestForEach(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var running, most atomic.Int64
		var started []int
		err := core.ForEach(t.Context(), upTo(20), func(_ context.Context, i int) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second)
			return nil
		}, core.Options{MaxConcurrency: 4})
		checkError(t, "ForEach", err, nil)
		checkEqual(t, "most at once", most.Load(), 4)

		err = core.ForEach(t.Context(), upTo(20), func(_ context.Context, i int) error {
			started = append(started, i)
			return nil
		}, core.Options{MaxConcurrency: 1})
		checkError(t, "ForEach", err, nil)
		checkSlice(t, "started", started, slices.Collect(upTo(20)))

		none := func(context.Context, int) error { t.Error("work without an item"); return nil }
		checkError(t, "ForEach of nothing", core.ForEach(t.Context(), upTo(0), none, core.Options{}), nil)
	})
}

// The errors of bodies are returned, joined. Beyond a hundred, they are counted.
func TestForEachJoinsErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		even := errors.New("even")
		var n int
		err := core.ForEach(t.Context(), upTo(6), func(_ context.Context, i int) error {
			n++
			switch {
			case i == 3:
				panic("three")
			case i%2 == 0:
				return fmt.Errorf("item %d: %w", i, even)
			}
			return nil
		}, core.Options{MaxConcurrency: 1})
		checkEqual(t, "items", n, 6)
		checkError(t, "ForEach", err, even)
		if _, ok := errors.AsType[*core.PanicError](err); !ok {
			t.Errorf("got %v, want it to contain the panic", err)
		}
		want := "item 0: even\nitem 2: even\ncore: operation panicked: three\nitem 4: even"
		checkEqual(t, "text", err.Error(), want)
		err = core.ForEach(t.Context(), upTo(1000), func(_ context.Context, i int) error { return fmt.Errorf("no. %d", i) }, core.Options{MaxConcurrency: 1})
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != 101 || lines[99] != "no. 99" || lines[100] != "core: and 900 more errors" {
			t.Errorf("got %d lines that end with %q, want 100 errors and a count", len(lines), lines[len(lines)-1])
		}
	})
}

func TestForEachStopOnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var began, cancelled atomic.Int64
		err := core.ForEach(t.Context(), upTo(1_000_000), func(ctx context.Context, i int) error {
			began.Add(1)
			if i == 1 {
				time.Sleep(time.Second)
				return errOnPurpose
			}
			select {
			case <-ctx.Done():
				cancelled.Add(1)
				checkError(t, "cause in the other body", context.Cause(ctx), errOnPurpose)
				return ctx.Err()
			case <-time.After(time.Hour):
				return nil
			}
		}, core.Options{MaxConcurrency: 2, MaxQueued: 3, StopOnError: true})
		checkError(t, "ForEach", err, errOnPurpose)
		checkEqual(t, "text", err.Error(), errOnPurpose.Error()) // only this error, not its consequences
		checkEqual(t, "begun and cancelled", [2]int64{began.Load(), cancelled.Load()}, [2]int64{2, 1})
	})
}

// When the context ends, ForEach returns after the bodies have returned. It returns the cause, with the errors of bodies,
// unless all items are done.
func TestForEachCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		ended := 0
		var cause error
		begun := time.Now()
		err := core.ForEach(ctx, upTo(1_000_000), func(ctx context.Context, i int) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			time.Sleep(time.Minute)
			ended++
			return ctx.Err()
		}, core.Options{MaxConcurrency: 1})
		checkError(t, "ForEach", err, errOnPurpose)
		checkError(t, "cause in the body", cause, errOnPurpose)
		checkEqual(t, "bodies ended", ended, 1)
		checkEqual(t, "took", time.Since(begun), time.Second+time.Minute)
		checkEqual(t, "text", err.Error(), errOnPurpose.Error())

		ran := false
		err = core.ForEach(ctx, upTo(3), func(context.Context, int) error { ran = true; return nil }, core.Options{})
		checkError(t, "ForEach with a context that has ended", err, errOnPurpose)
		checkEqual(t, "ran", ran, false)

		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = core.ForEach(late, upTo(1), func(ctx context.Context, i int) error {
			<-ctx.Done()
			return errOnPurpose
		}, core.Options{})
		checkError(t, "ForEach of a body that fails because of it", err, context.DeadlineExceeded)
		checkError(t, "ForEach of a body that fails because of it", err, errOnPurpose)

		last, cancel := context.WithCancel(t.Context())
		err = core.ForEach(last, upTo(3), func(_ context.Context, i int) error {
			if i == 2 {
				time.Sleep(time.Second) // until it is the only one left
				cancel()
			}
			return nil
		}, core.Options{})
		checkError(t, "ForEach when all items are done", err, nil)
	})
}

// Items are taken from the source when there is room, so memory does not grow with the source.
func TestForEachTakesItemsAsNeeded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		taken := 0
		var done atomic.Int64
		seq := func(yield func(int) bool) {
			for i := range 100 {
				taken++
				if ahead := taken - int(done.Load()); ahead > 2+2+1 {
					t.Errorf("%d items taken ahead, want at most those that run, wait, and the one in hand", ahead)
				}
				if !yield(i) {
					return
				}
			}
		}
		err := core.ForEach(t.Context(), seq, func(context.Context, int) error {
			time.Sleep(time.Second)
			done.Add(1)
			return nil
		}, core.Options{MaxConcurrency: 2})
		checkError(t, "ForEach", err, nil)
		checkEqual(t, "done", done.Load(), 100)
	})
}

// A source or a key function that panics ends the loop, after the bodies that run.
func TestForEachOfPanickingSource(t *testing.T) {
	body := func(ended *bool) core.Work[int] {
		return func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			*ended = true
			return ctx.Err()
		}
	}
	second := func(i int) string {
		if i == 1 {
			synctest.Wait()
			panic(errOnPurpose)
		}
		return "k"
	}
	for name, loop := range map[string]func(context.Context, core.Work[int]){
		"source": func(ctx context.Context, work core.Work[int]) {
			core.ForEach(ctx, func(yield func(int) bool) {
				for i := range 3 {
					second(i)
					yield(i)
				}
			}, work, core.Options{})
		},
		"key": func(ctx context.Context, work core.Work[int]) {
			core.ForEachKeyed(ctx, upTo(3), second, work, core.Options{})
		},
	} {
		bubble(t, func(t *testing.T) {
			ended := false
			defer func() {
				checkEqual(t, name+": panic", recover(), any(errOnPurpose))
				checkEqual(t, name+": what ran has ended", ended, true)
			}()
			loop(t.Context(), body(&ended))
		})
	}
}

// The signals of a loop are on the sink, and the loop is deferred and refused by signals.
func TestForEachIsGatedAndRaisesSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		opts := core.Options{Sink: sink, CancelOn: "stop", DeferOn: "wait", MaxDefer: -1, MaxConcurrency: 1, MaxTracked: 100, Name: "loop"}
		sink.Hold("wait", "", time.Minute)
		begun := time.Now()
		ran := 0
		seen := 0
		err := core.ForEach(t.Context(), upTo(5), func(ctx context.Context, i int) error {
			ran++
			core.OperationFrom(ctx).Raise(fmt.Sprint("item.", i))
			seen = max(seen, sink.Count("item.*"))
			if i == 2 {
				sink.Raise("stop")
			}
			return nil
		}, opts)
		checkRefusal(t, err, "stop")
		checkEqual(t, "deferred for", time.Since(begun), time.Minute)
		checkEqual(t, "ran", ran, 3)
		checkEqual(t, "signals on the sink", seen, 3)
	})
}

func TestForEachInsideABody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1})
		var parents []core.OperationID
		var self core.OperationID
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			self = core.OperationFrom(ctx).ID()
			return core.ForEach(ctx, upTo(3), func(ctx context.Context, i int) error {
				parents = append(parents, core.OperationFrom(ctx).Parent())
				return nil
			}, core.Options{MaxConcurrency: 1})
		}), nil)
		checkSlice(t, "parents", parents, []core.OperationID{self, self, self})
	})
}

// The signals of a loop stay on the sink when it is over. They no longer close gates, and the sink can retract
// them.
func TestForEachLeavesItsSignalsOnTheSink(t *testing.T) {
	ctx := t.Context()
	sink := signals.NewSink(signals.SinkOptions{})
	gated := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{Sink: sink, CancelOn: "resize.failed"}))
	monitor := sink.Monitor("resize.*", 0)
	var failed core.OperationID
	err := core.ForEach(ctx, slices.Values([]string{"a", "b", "c"}), func(ctx context.Context, s string) error {
		op := core.OperationFrom(ctx)
		if s == "b" {
			failed = op.ID()
			op.RaiseKey("resize.failed", s)
			if _, err := gated.TryEnqueue(context.Background(), 0); err == nil {
				t.Error("a signal of a loop that goes on closes no gate")
			}
			return nil
		}
		op.RaiseKey("resize.done", s)
		return nil
	}, core.Options{Name: "resize", Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	if got := sink.Count("resize.*"); got != 3 || monitor.Count() != 3 {
		t.Errorf("%d signals on the sink, %d counted by a monitor, want 3", got, monitor.Count())
	}
	facts := slices.Collect(sink.Sense(signals.Query{Operation: failed, Source: "resize"}))
	checkEqual(t, "signals of the operation", words(len(facts), facts[0].Name, facts[0].Key), "1 resize.failed b")
	if err := gated.Do(ctx, 0); err != nil {
		t.Errorf("held up by a loop that is over: %v", err)
	}
	if got := sink.Retract("resize.*"); got != 3 || sink.Has("resize.*") || monitor.Count() != 0 {
		t.Errorf("retracted %d, want 3 and none left", got)
	}
}

// customer is a key type.
type customer string

type order struct {
	customer customer
	n        int
}

func byCustomer(o order) customer { return o.customer }

// orders are some orders of each customer, in turn.
func orders(each int, customers ...customer) []order {
	var all []order
	for n := range each {
		for _, c := range customers {
			all = append(all, order{c, n})
		}
	}
	return all
}

// Of a key, MaxPerKey items are worked on at once, by default one after the other and in order; those of different
// keys side by side.
func TestForEachKeyed(t *testing.T) {
	for perKey, want := range map[int]time.Duration{0: 12 * time.Second, 3: 4 * time.Second} {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			done, keys := make(map[customer][]int), make(map[string]bool)
			begun := time.Now()
			err := core.ForEachKeyed(t.Context(), slices.Values(orders(12, "ada", "bob", "eve")), byCustomer, func(ctx context.Context, o order) error {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				done[o.customer] = append(done[o.customer], o.n)
				keys[core.OperationFrom(ctx).Key()] = true
				return nil
			}, core.Options{MaxConcurrency: 12, MaxPerKey: perKey})
			checkError(t, "ForEachKeyed", err, nil)
			checkEqual(t, fmt.Sprint("with MaxPerKey ", perKey, " took"), time.Since(begun), want)
			for c, got := range done {
				if perKey == 0 {
					checkSlice(t, string(c), got, slices.Collect(upTo(12)))
				}
			}
			checkSlice(t, "keys", slices.Sorted(maps.Keys(keys)), []string{"ada", "bob", "eve"})
		})
	}
}

// A slow key does not hold up other keys while the queue has room (MaxQueued).
func TestForEachKeyedLooksAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begun := time.Now()
		finished := make(map[customer]time.Duration)
		var mu sync.Mutex
		items := append(orders(20, "slow"), orders(20, "quick")...)
		err := core.ForEachKeyed(t.Context(), slices.Values(items), byCustomer, func(_ context.Context, o order) error {
			if o.customer == "slow" {
				time.Sleep(time.Minute)
			} else {
				time.Sleep(time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			finished[o.customer] = time.Since(begun)
			return nil
		}, core.Options{MaxConcurrency: 2, MaxQueued: 100})
		checkError(t, "ForEachKeyed", err, nil)
		checkEqual(t, "quick", finished["quick"], 20*time.Second)
		checkEqual(t, "slow", finished["slow"], 20*time.Minute)
	})
}

// When DrainOn ends the intake, no more items are taken.
func TestForEachEndsWithItsIntake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		taken := 0
		endless := func(yield func(int) bool) {
			for yield(taken) {
				if taken++; taken > 100 {
					t.Fatal("it takes items it cannot have worked on")
				}
			}
		}
		err := core.ForEach(t.Context(), endless, func(_ context.Context, i int) error {
			if i == 3 {
				sink.Raise("drain")
			}
			return nil
		}, core.Options{Sink: sink, DrainOn: "drain", MaxConcurrency: 1})
		checkError(t, "ForEach", err, core.ErrClosed)
		checkEqual(t, "text", fmt.Sprint(err), `core: coordinator "coordinator" is closed`)
	})
}
