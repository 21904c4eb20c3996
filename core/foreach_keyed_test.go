package core_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
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

// A slow key does not hold up other keys, as far as MaxQueued looks ahead.
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

// When DrainOn ends the intake, no more items are taken.
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
		checkError(t, "ForEach", err, core.ErrClosed)
		checkEqual(t, "text", fmt.Sprint(err), `core: coordinator "coordinator" is closed`)
	})
}
