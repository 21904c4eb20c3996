// Package rate shows a rate limiter that obeys commands: the rate follows the load while
// requests keep coming.
package rate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario adapts the rate of a limiter to the load in 15 cycles.
var Scenario = scenario.Scenario{
	Name:  "rate",
	Title: "Dynamic rate: commands on the sink change a limiter",
	Run:   run,
}

const (
	cycles   = 15
	interval = 130 * time.Millisecond
	requests = 4 // in each cycle
)

func run(ctx context.Context, s *scenario.Screen) error {
	limiter, err := ratelimit.New(core.Rate{PerSecond: 15, Burst: 10}, ratelimit.Options{Name: "api", Sink: s.Sink})
	if err != nil {
		return err
	}
	defer limiter.Close()

	// The limiter reports what it has done: a refused command changes nothing here.
	adjusted := 0
	defer ratelimit.RateApplied.Subscribe(s.Sink, func(_ signals.Signal, c ratelimit.Change) {
		adjusted++
		s.Printf("the limiter obeys: now %g per second", c.Rate)
	})()

	s.Printf("%d requests every %v; the load is a fixed random walk", requests, interval)
	walk := rand.New(rand.NewPCG(216, 0)) // a fixed sequence, so that each run is the same
	load := 30.0
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range cycles {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		level, rate := "low", 30.0
		switch {
		case load >= 75:
			level, rate = "high", 6
		case load >= 50:
			level, rate = "middle", 15
		}
		if math.Abs(rate-limiter.Rate()) > 0.5 {
			s.Sink.RaiseKey(fmt.Sprintf("%s:%g", ratelimit.CommandSet, rate), "api")
			if limiter.Rate() != rate {
				return fmt.Errorf("rate: the limiter has %g/s and not %g/s", limiter.Rate(), rate)
			}
		}
		allowed := 0
		for range requests {
			if limiter.Allow() {
				allowed++
			}
		}
		s.Printf("load %2.0f %% (%s): %d allowed, %d limited at %g/s", load, level, allowed, requests-allowed, limiter.Rate())
		load = math.Round(min(95, max(10, load+50*(walk.Float64()-0.5))))
	}
	end := limiter.Stats()
	if adjusted == 0 || end.Allowed == 0 || end.Denied == 0 {
		return fmt.Errorf("rate: %d adjustments, %d allowed, %d limited: there must be some of each", adjusted, end.Allowed, end.Denied)
	}
	s.Takeaway("%d adjustments by signal; %d of %d requests allowed, %d limited", adjusted, end.Allowed, end.Allowed+end.Denied, end.Denied)
	return nil
}
