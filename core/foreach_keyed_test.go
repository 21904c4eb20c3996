package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// customer is a key of a type of its own.
type customer string

type order struct {
	customer customer
	n        int
}

func byCustomer(o order) customer { return o.customer }

// orders are some of each customer, in turn.
func orders(each int, customers ...customer) []order {
	var all []order
	for n := range each {
		for _, c := range customers {
			all = append(all, order{c, n})
		}
	}
	return all
}

// Items of a key are worked on one after the other, in order; those of different
// keys side by side.
func TestForEachKeyed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var (
			mu   sync.Mutex
			done = make(map[customer][]int)
			keys []string
		)
		begun := time.Now()
		err := core.ForEachKeyed(t.Context(), slices.Values(orders(10, "ada", "bob", "eve")), byCustomer, func(ctx context.Context, o order) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			done[o.customer] = append(done[o.customer], o.n)
			keys = append(keys, core.OperationFrom(ctx).Key())
			return nil
		}, core.Options{MaxConcurrency: 8})
		checkError(t, "ForEachKeyed", err, nil)
		checkEqual(t, "took", time.Since(begun), 10*time.Second)
		for _, c := range []customer{"ada", "bob", "eve"} {
			checkSlice(t, string(c), done[c], slices.Collect(upTo(10)))
		}
		slices.Sort(keys)
		checkSlice(t, "keys", slices.Compact(keys), []string{"ada", "bob", "eve"})
	})
}

// Weak point 10: a slow key holds up the others. It does not, as far ahead as
// MaxQueued looks.
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

func TestForEachKeyedMaxPerKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		most, running := make(map[customer]int), make(map[customer]int)
		var mu sync.Mutex
		err := core.ForEachKeyed(t.Context(), slices.Values(orders(10, "ada", "bob")), byCustomer, func(_ context.Context, o order) error {
			mu.Lock()
			running[o.customer]++
			most[o.customer] = max(most[o.customer], running[o.customer])
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running[o.customer]--
			mu.Unlock()
			return nil
		}, core.Options{MaxConcurrency: 8, MaxPerKey: 3})
		checkError(t, "ForEachKeyed", err, nil)
		if want := map[customer]int{"ada": 3, "bob": 3}; !maps.Equal(most, want) {
			t.Errorf("most at once: got %v, want %v", most, want)
		}
	})
}

// Weak point 10: failures are swallowed.
func TestForEachKeyedJoinsErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		err := core.ForEachKeyed(t.Context(), slices.Values(orders(3, "ada", "bob")), byCustomer, func(_ context.Context, o order) error {
			switch {
			case o == order{"ada", 1}:
				return fmt.Errorf("%s, no. %d: %w", o.customer, o.n, errOnPurpose)
			case o == order{"bob", 2}:
				panic("bob")
			}
			return nil
		}, core.Options{MaxConcurrency: 1})
		checkError(t, "ForEachKeyed", err, errOnPurpose)
		if _, ok := errors.AsType[*core.PanicError](err); !ok {
			t.Errorf("got %v, want it to contain the panic", err)
		}
		checkEqual(t, "text", err.Error(), "ada, no. 1: failed on purpose\nephemeral: operation panicked: bob")
	})
}

func TestForEachKeyedStopOnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ran []order
		err := core.ForEachKeyed(t.Context(), slices.Values(orders(100, "ada")), byCustomer, func(_ context.Context, o order) error {
			ran = append(ran, o)
			if o.n == 2 {
				return errOnPurpose
			}
			return nil
		}, core.Options{MaxConcurrency: 8, StopOnError: true})
		checkEqual(t, "text", fmt.Sprint(err), errOnPurpose.Error())
		checkSlice(t, "ran", ran, orders(3, "ada"))
	})
}

// Weak point 10: on cancellation the call returns while bodies still run.
func TestForEachKeyedCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		var began, ended int
		var mu sync.Mutex
		begun := time.Now()
		err := core.ForEachKeyed(ctx, slices.Values(orders(1000, "ada", "bob")), byCustomer, func(ctx context.Context, _ order) error {
			mu.Lock()
			began++
			mu.Unlock()
			<-ctx.Done()
			checkError(t, "cause in the body", context.Cause(ctx), errOnPurpose)
			time.Sleep(time.Minute)
			mu.Lock()
			ended++
			mu.Unlock()
			return ctx.Err()
		}, core.Options{MaxConcurrency: 8})
		checkEqual(t, "text", fmt.Sprint(err), errOnPurpose.Error())
		checkEqual(t, "took", time.Since(begun), time.Second+time.Minute)
		if began != 2 || ended != 2 {
			t.Errorf("got %d begun and %d ended, want one of each key", began, ended)
		}
	})
}

func TestForEachKeyedBadInput(t *testing.T) {
	work := func(context.Context, order) error { t.Error("it ran"); return nil }
	seq := slices.Values(orders(1, "ada"))
	for name, err := range map[string]error{
		"nil key":                core.ForEachKeyed[order, customer](t.Context(), seq, nil, work, core.Options{}),
		"nil work":               core.ForEachKeyed(t.Context(), seq, byCustomer, nil, core.Options{}),
		"nil items":              core.ForEachKeyed(t.Context(), nil, byCustomer, work, core.Options{}),
		"bad options":            core.ForEachKeyed(t.Context(), seq, byCustomer, work, core.Options{MaxPerKey: -1}),
		"lanes":                  core.ForEachKeyed(t.Context(), seq, byCustomer, work, core.Options{Lanes: []core.Lane{{Name: "hot"}}}),
		"MaxPerKey without keys": core.ForEach(t.Context(), seq, work, core.Options{MaxPerKey: 2}),
		"no items to ForEach":    core.ForEach(t.Context(), nil, work, core.Options{}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "core: ") {
			t.Errorf("%s: got error %v, want one of core", name, err)
		}
	}
	// A key function that panics does so on the caller's goroutine, and leaves
	// nothing behind.
	bubble(t, func(t *testing.T) {
		defer func() { checkEqual(t, "panic", recover(), any("no key")) }()
		core.ForEachKeyed(t.Context(), seq, func(order) customer { panic("no key") }, work, core.Options{})
	})
}

// When DrainOn ends the intake, no more items are taken, however many there are.
func TestForEachEndsWithItsIntake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
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
		checkEqual(t, "text", fmt.Sprint(err), core.ErrClosed.Error())
	})
}

// A result that Map would wait for in vain is refused, and its item cancelled. Its
// body may still write the result: that is not looked at, as the race detector
// would tell.
func TestMapRefusesToWaitInVain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := bodies(t, core.Options{MaxConcurrency: 1})
		var cause error
		checkError(t, "Do", a.Do(t.Context(), func(ctx context.Context) error {
			seq := func(yield func(int) bool) {
				yield(0)
				synctest.Wait() // the item waits for the body, not yet the body for the item
			}
			for out, err := range core.Map(ctx, seq, func(ctx context.Context, i int) (int, error) {
				err := a.Do(ctx, quick)
				cause = context.Cause(ctx)
				return 7, err
			}, core.Options{}) {
				checkError(t, "Map", err, core.ErrWouldDeadlock)
				checkEqual(t, "result", out, 0)
			}
			return nil
		}), nil)
		checkError(t, "cause in the item", cause, core.ErrWouldDeadlock)
	})
}
