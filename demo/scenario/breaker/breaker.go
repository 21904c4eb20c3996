// Package breaker shows a circuit breaker: it opens after failures, refuses calls, tries
// one call after a pause, and closes when that call succeeds.
package breaker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// Scenario makes 30 calls of a service that sometimes fails.
var Scenario = scenario.Scenario{
	Name:  "breaker",
	Title: "Circuit breaker: refuse calls while a service fails",
	Run:   run,
}

const (
	calls    = 30
	interval = 80 * time.Millisecond
	cooldown = 19 * interval / 2 // so that it does not end at the moment of a call
	success  = 0.7               // share of the calls that the service answers
)

func run(ctx context.Context, s *scenario.Screen) error {
	// Three failures open the breaker for the cooldown. Then it is half-open: one call, the
	// probe, decides whether it closes or opens again.
	b, err := circuitbreaker.New(s.Sink, circuitbreaker.Options{
		Name:      "service",
		Failure:   "service.failure", // Wrap raises it when a call fails
		Threshold: 3,
		Window:    2 * cooldown,
		OpenFor:   cooldown,
		HalfOpen:  1,
	})
	if err != nil {
		return err
	}
	defer b.Close()

	chance := rand.New(rand.NewPCG(6, 0)) // a fixed sequence, so that each run is the same
	service := func(ctx context.Context, _ int) error {
		if chance.Float64() >= success {
			return errors.New("no answer")
		}
		core.OperationFrom(ctx).Raise("service.success")
		return nil
	}
	// While the breaker is open it holds circuit.open.service on the sink. CancelOn makes
	// the coordinator refuse items meanwhile: they do not even become operations.
	api, err := core.NewCoordinator(circuitbreaker.Wrap(b, service), core.Options{
		Name:           "api",
		Sink:           s.Sink,
		MaxConcurrency: 1,
		CancelOn:       circuitbreaker.SignalOpen + ".service",
	})
	if err != nil {
		return err
	}
	defer api.Close()

	opened, closed := 0, 0 // there is one call at a time, so they need no lock
	defer s.Sink.Subscribe(circuitbreaker.SignalOpen+".service", func(signals.Signal) { opened++ })()

	s.Printf("%d calls, of which about %.0f %% succeed (a fixed sequence)", calls, 100*success)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for call := 1; call <= calls; call++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		before := b.State()
		if before == breaker.HalfOpen {
			s.Printf("half-open: the next call is a probe; %d refused so far", api.Stats().Rejected)
		}
		err := api.Do(ctx, call)
		switch _, refused := errors.AsType[*core.RefusedError](err); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case refused: // the coordinator counts it
		case err != nil:
			s.Printf("call %2d failed: %v", call, err)
		default:
			s.Printf("call %2d succeeded", call)
		}
		switch now := b.State(); {
		case now == breaker.Open && before != breaker.Open:
			s.Printf("open: calls are refused for %v", b.ClosesIn().Round(time.Millisecond))
		case now == breaker.Closed && before != breaker.Closed:
			closed++
			s.Printf("closed: the probe succeeded")
		}
	}
	if err := api.Drain(ctx); err != nil {
		return err
	}
	end := api.Stats()
	if opened < 2 || closed == 0 || end.Rejected == 0 {
		return errors.New("breaker: the circuit did not open, open again and close")
	}
	s.Takeaway("%d succeeded, %d failed, %d refused without a call; opened %d times, closed %d",
		end.Succeeded, end.Failed, end.Rejected, opened, closed)
	return nil
}
