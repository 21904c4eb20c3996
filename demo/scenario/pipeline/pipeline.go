// Package pipeline shows a pipeline of atoms behind a rate limiter. Each atom knows the
// signal that starts it and the signal that it raises, and no other atom.
package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario sends ten requests to a limiter. The requests that pass go through three atoms.
var Scenario = scenario.Scenario{
	Name:  "pipeline",
	Title: "Multi-step pipeline: three atoms behind a rate limiter",
	Run:   run,
}

func run(ctx context.Context, s *scenario.Screen) error {
	limiter, err := ratelimit.New(core.Rate{PerSecond: 4.5, Burst: 3}, ratelimit.Options{Name: "api", Sink: s.Sink})
	if err != nil {
		return err
	}
	defer limiter.Close()

	validator, err := atom(s, "validator", "api.request", 17*time.Millisecond, "request.validated")
	if err != nil {
		return err
	}
	defer validator.Close()
	processor, err := atom(s, "processor", "request.validated", 33*time.Millisecond, "request.processed")
	if err != nil {
		return err
	}
	defer processor.Close()
	storage, err := atom(s, "storage", "request.processed", 25*time.Millisecond, "request.complete")
	if err != nil {
		return err
	}
	defer storage.Close()

	// The sink shows how long a request has taken.
	defer s.Sink.Subscribe("request.complete", func(done signals.Signal) {
		for request := range s.Sink.Sense(signals.Query{Pattern: "api.request", Key: done.Key}) {
			s.Printf("%s  complete after %v", done.Key, done.Time.Sub(request.Time).Round(time.Millisecond))
		}
	})()

	for i := range 10 {
		request := fmt.Sprintf("request-%02d", i+1)
		if limiter.Allow() {
			s.Printf("%s  allowed, tokens left: %.2f", request, limiter.Tokens())
			s.Sink.RaiseKey("api.request", request)
		} else {
			s.Printf("%s  LIMITED, tokens left: %.2f", request, limiter.Tokens())
			s.Sink.RaiseKey("api.limited", request)
		}
		if err := scenario.Pause(ctx, 70*time.Millisecond); err != nil {
			return err
		}
	}
	if err := core.InOrder(validator, processor, storage).Drain(ctx); err != nil {
		return err
	}

	l := limiter.Stats()
	s.Printf("limiter    %d allowed, %d limited", l.Allowed, l.Denied)
	for _, a := range []*molecules.Trigger{validator, processor, storage} {
		done := a.Stats().Succeeded
		s.Printf("%-9s  %d done", a.Name(), done)
		if done != l.Allowed {
			return fmt.Errorf("pipeline: %s has done %d requests, and %d were allowed", a.Name(), done, l.Allowed)
		}
	}
	if l.Denied == 0 {
		return fmt.Errorf("pipeline: all %d requests were allowed", l.Allowed)
	}
	s.Takeaway("%d of %d requests were limited, all others passed 3 atoms", l.Denied, l.Allowed+l.Denied)
	return nil
}

// atom makes an atom. For each signal with the name on, it works for the time takes, and
// then raises a signal with the name then and the same key.
func atom(s *scenario.Screen, name, on string, takes time.Duration, then string) (*molecules.Trigger, error) {
	return molecules.NewTrigger(s.Sink, on, func(ctx context.Context, cause signals.Signal) error {
		if err := scenario.Pause(ctx, takes); err != nil {
			return err
		}
		core.OperationFrom(ctx).Because(cause).Raise(then)
		return nil
	}, molecules.TriggerOptions{Name: name, MaxConcurrency: 1})
}
