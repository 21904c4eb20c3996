package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/failsafe-go/failsafe-go"
	failsafebreaker "github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// breakerOf is a breaker of a library. It opens after five failures in 30 seconds. With a
// rate, it opens when half of at least 20 calls in 30 seconds have failed.
type breakerOf struct {
	check func() bool         // reports whether a call would be allowed
	call  func() (int, error) // calls a function that succeeds
}

func seven() (int, error) { return 7, nil }

var breakers = []struct {
	name string
	new  func(byRate, open bool) breakerOf
}{
	{"ours", func(byRate, open bool) breakerOf {
		opts := circuitbreaker.Options{OpenFor: time.Hour}
		if byRate {
			opts.Rate = 0.5
		}
		b := core.Must(circuitbreaker.New(signals.NewSink(signals.SinkOptions{}), opts))
		if open {
			b.Trip()
		}
		ctx := context.Background()
		work := circuitbreaker.WrapResult(b, func(context.Context, struct{}) (int, error) { return seven() })
		return breakerOf{
			check: func() bool { return b.Check() == nil },
			call:  func() (int, error) { return work(ctx, struct{}{}) },
		}
	}},
	{"gobreaker", func(byRate, open bool) breakerOf { // has no check
		opts := gobreaker.Settings{Interval: 30 * time.Second, Timeout: time.Hour}
		if byRate {
			opts.BucketPeriod = 3 * time.Second
			opts.ReadyToTrip = func(c gobreaker.Counts) bool { return c.Requests >= 20 && 2*c.TotalFailures >= c.Requests }
		}
		b := gobreaker.NewCircuitBreaker[int](opts)
		for range 20 {
			if open {
				_, _ = b.Execute(func() (int, error) { return 0, errors.New("down") })
			}
		}
		call := func() (int, error) { return b.Execute(seven) }
		return breakerOf{func() bool { _, err := call(); return err == nil }, call}
	}},
	{"failsafe", func(byRate, open bool) breakerOf {
		builder := failsafebreaker.NewBuilder[int]().WithDelay(time.Hour).WithFailureThresholdPeriod(5, 30*time.Second)
		if byRate {
			builder = builder.WithFailureRateThreshold(0.5, 20, 30*time.Second)
		}
		b := builder.Build()
		if open {
			b.Open()
		}
		with := failsafe.With[int](b)
		return breakerOf{b.TryAcquirePermit, func() (int, error) { return with.Get(seven) }}
	}},
}

// breakerRows measure the question whether a call is allowed, and a call that succeeds. In
// the first row gobreaker makes a call, because it has no other way to ask.
func breakerRows() []Row {
	var rows []Row
	add := func(op string, byRate, open bool, goals map[string]float64, maxAllocs float64, once func(breakerOf)) {
		for _, goroutines := range []int{1, 8} {
			row := Row{Name: fmt.Sprintf("op=%s/goroutines=%d", op, goroutines), MaxAllocs: maxAllocs}
			for _, library := range breakers {
				row.Sides = append(row.Sides, Side{library.name, goals[library.name], func() Body {
					b := library.new(byRate, open)
					return Body{Run: func(n int) {
						spread(goroutines, n, func(n int) {
							for range n {
								once(b)
							}
						})
					}}
				}})
			}
			rows = append(rows, row)
		}
	}
	checkOnce := func(b breakerOf) { b.check() }
	callOnce := func(b breakerOf) {
		_, err := b.call()
		check(err)
	}
	refusedOnce := func(b breakerOf) {
		if _, err := b.call(); err == nil {
			panic("bench: a breaker that is open allows a call")
		}
	}
	add("check", false, false, map[string]float64{"gobreaker": 0.1, "failsafe": 1.0}, 0, checkOnce)
	add("success", false, false, map[string]float64{"gobreaker": 0.3}, 0, callOnce)
	add("success-by-rate", true, false, map[string]float64{"gobreaker": 0.6}, 0, callOnce)
	add("refused", false, true, nil, 3, refusedOnce) // the error has the remaining time
	return rows
}
