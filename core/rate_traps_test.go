package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A body that waits for an item that waits for a token is in no circle: the token comes. Neither is one that waits for
// a key without tokens.
func TestWaitForATokenIsNoCircle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		slow := core.Rate{PerSecond: 1, Burst: 1}
		c := keyedBodies(t, core.Options{MaxConcurrency: 1, KeyRate: slow, Classes: []core.Class{{Name: "api", Rate: slow}}})
		begun := time.Now()
		for range 2 {
			enqueue(t, c.Class("api"), keyedBody{"", quick})
			enqueue(t, c, keyedBody{"ann", quick})
		}
		var class, key error
		enqueue(t, c, keyedBody{"", func(ctx context.Context) error {
			class = c.Class("api").Do(ctx, keyedBody{"", quick})
			key = c.Do(ctx, keyedBody{"ann", quick})
			return nil
		}})
		checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
		checkError(t, "Do in a class", class, nil)
		checkError(t, "Do for a key", key, nil)
		checkEqual(t, "took", time.Since(begun), 2*time.Second)
	})
}

// A suspended operation needs no second token to go on. Pause and a full coordinator do not save tokens beyond the
// burst, except the tokens of the last 20 ms, which make up for late timers.
func TestResumedOperationNeedsNoToken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, answer := newStarts(), newGate()
		c := bodies(t, core.Options{MaxConcurrency: 1, Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 1}}}})
		waits := enqueue(t, c.Class("api"), answer.suspended(s.body("resumed")))
		for range 4 {
			enqueue(t, c.Class("api"), s.body("next"))
		}
		synctest.Wait()
		answer.open()
		checkError(t, "Wait", c.Wait(t.Context(), waits), nil)
		c.Pause()
		time.Sleep(time.Minute)
		c.Resume()
		checkError(t, "Drain", c.Drain(t.Context()), nil)
		s.check(t, "resumed 0", "next 60000", "next 60980", "next 61980", "next 62980")
	})
}

// An unlimited rate is a rate, and a limited one after it starts with a full bucket.
func TestUnlimitedRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newStarts()
		unlimited := core.Rate{PerSecond: bucket.Unlimited, Burst: 1}
		c := bodies(t, core.Options{Classes: []core.Class{{Name: "api", Rate: unlimited, CostRate: unlimited}}})
		for range 3 {
			checkError(t, "Do", c.Class("api").Cost(1e9).Do(t.Context(), s.body("item")), nil)
		}
		checkError(t, "SetClass", c.SetClass(core.Class{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 2}}), nil)
		for range 3 {
			checkError(t, "Do", c.Class("api").Do(t.Context(), s.body("limited")), nil)
		}
		s.check(t, "item 0", "item 0", "item 0", "limited 0", "limited 0", "limited 1000")
	})
}

// On a real clock, with timers that are late, a rate is never exceeded, and reached, even a high one
// with a small burst. A machine that has much to do may stop the program for longer than tokens
// are kept, so the second promise has three attempts.
func TestRateOnARealClock(t *testing.T) {
	span := time.Duration(core.Often(10_000, 200)) * time.Millisecond
	var all sync.WaitGroup
	for _, rate := range []float64{100, 1000, 10_000} {
		for _, burst := range []int{1, 10, 100} {
			all.Go(func() { // not a parallel test: there would be only one for each processor
				reached := 0.0
				for attempt := 0; attempt < 3 && reached < 0.98; attempt++ {
					started, came := startedOf(t, core.Rate{PerSecond: rate, Burst: burst}, span)
					if started > came+float64(burst) {
						t.Errorf("%g a second, burst %d: %g started, %g tokens came", rate, burst, started, came)
					}
					if reached = started / came; span < time.Second {
						return
					}
				}
				if reached < 0.98 {
					t.Errorf("%g a second, burst %d: only %.1f %% were reached", rate, burst, 100*reached)
				}
			})
		}
	}
	all.Wait()
}

// startedOf returns how many operations of a class with that rate start, and how many tokens come.
func startedOf(t *testing.T, rate core.Rate, span time.Duration) (started, came float64) {
	var n atomic.Int64
	c := coordinator(t, func(context.Context, int) error { n.Add(1); return nil },
		core.Options{MaxConcurrency: 4, MaxQueued: 200_000, Classes: []core.Class{{Name: "api", Rate: rate}}})
	api, begun := c.Class("api"), time.Now()
	for i := range int(2*rate.PerSecond*span.Seconds()) + rate.Burst {
		enqueue(t, api, i)
	}
	<-time.After(span)
	started = float64(n.Load())
	came = rate.PerSecond * time.Since(begun).Seconds()
	checkError(t, "Close", c.Close(), nil)
	return started, came
}
