package flight_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/flight"
)

// Two callers want the same key, and its value is loaded once. One of them stops waiting
// soon: the load goes on for the other.
func Example() {
	var weather flight.Group[string, string]
	begun, finish := make(chan string), make(chan struct{})
	load := func(ctx context.Context, city string) (string, error) {
		begun <- city
		<-finish
		return "sunny", nil
	}

	patient := make(chan string)
	go func() {
		report, _ := weather.Do(context.Background(), "Rome", load)
		patient <- report
	}()
	fmt.Println("loading", <-begun)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := weather.Do(ctx, "Rome", load)
	fmt.Println("impatient:", err)
	close(finish)
	fmt.Println("patient:", <-patient)
	// Output:
	// loading Rome
	// impatient: context deadline exceeded
	// patient: sunny
}

// This is a cache in a few lines: it keeps values for ever.
type memo struct {
	loads  flight.Group[string, int] // its lock guards values as well
	values map[string]int
}

func (m *memo) get(ctx context.Context, key string, load func(ctx context.Context, key string) (int, error)) (int, error) {
	m.loads.Lock()
	if value, ok := m.values[key]; ok {
		m.loads.Unlock()
		return value, nil
	}
	call, first := m.loads.Join(ctx, key)
	m.loads.Unlock()
	if first {
		go flight.Run(func() (int, error) { return load(call.Context(), key) }, func(value int, err error) {
			m.loads.Lock()
			if m.loads.Remove(key, call) && err == nil {
				m.values[key] = value
			}
			m.loads.Unlock()
			call.Finish(value, err)
		})
	}
	return m.loads.Wait(ctx, key, call)
}

// A cache uses the parts of a Group. A load that needs itself gets an error.
func ExampleGroup_Join() {
	factorials := memo{values: map[string]int{}}
	var load func(ctx context.Context, n string) (int, error)
	load = func(ctx context.Context, n string) (int, error) {
		if n == "0" {
			return 1, nil
		}
		var number int
		fmt.Sscan(n, &number)
		before, err := factorials.get(ctx, fmt.Sprint(number-1), load)
		return number * before, err
	}
	ctx := context.Background()
	fmt.Println(factorials.get(ctx, "5", load))
	fmt.Println(factorials.values["4"])
	_, err := factorials.get(ctx, "loop", func(ctx context.Context, key string) (int, error) { return factorials.get(ctx, key, nil) })
	fmt.Println(errors.Is(err, core.ErrWouldDeadlock))
	// Output:
	// 120 <nil>
	// 24
	// true
}

// A cache that runs its loads elsewhere needs only a Table and a Load for each run.
func ExampleTable() {
	type call struct {
		load  *flight.Load
		done  chan struct{} // closed when the fields below are set
		value int
		err   error
	}
	var mu sync.Mutex
	var calls flight.Table[string, call] // guarded by mu
	var get func(ctx context.Context, word string) (int, error)
	run := func(c *call, word string) { // a program would run it as an operation of a coordinator
		if c.value = len(word); word == "loop" {
			_, c.err = get(c.load, word)
		}
		mu.Lock()
		calls.Remove(word, c)
		mu.Unlock()
		close(c.done)
	}
	get = func(ctx context.Context, word string) (int, error) {
		mu.Lock()
		c := calls.Get(word)
		if c == nil {
			c = &call{load: flight.NewLoad(ctx), done: make(chan struct{})}
			calls.Put(word, c)
			go run(c, word)
		}
		mu.Unlock()
		err := c.load.Await(ctx, func() error { <-c.done; return c.err })
		return c.value, err
	}

	fmt.Println(get(context.Background(), "seven"))
	_, err := get(context.Background(), "loop")
	fmt.Println(errors.Is(err, core.ErrWouldDeadlock))
	// Output:
	// 5 <nil>
	// true
}
