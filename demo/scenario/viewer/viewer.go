// Package viewer shows signals while they are raised: a tail of the signals on a sink, with a
// filter, and the counts of each family. At the end it dumps what the sink still has.
package viewer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/patterns/signallogwatcher"
)

// Scenario raises signals for three seconds, or until ctx ends, and shows them.
var Scenario = scenario.Scenario{
	Name:  "viewer",
	Title: "Live viewer: a filtered tail, counts by family, and the dump",
	Run:   run,
}

// The seed is fixed: names and pauses look random, and are the same in every run.
const seed = 203

const (
	shown = "info.*, warn.*, error.*" // the filter of the tail
	all   = shown + ", debug.*, trace.*"
)

var names = []string{
	"info.login", "info.order.placed", "info.order.shipped", "warn.disk.low", "warn.response.slow",
	"error.database", "error.timeout", "debug.cache.hit", "debug.cache.miss", "trace.request",
}

func run(ctx context.Context, s *scenario.Screen) error {
	// The tail runs in the background: it never delays the code that raises signals.
	tail, err := signallogwatcher.New(s.Sink, shown, func(_ context.Context, signal signals.Signal) error {
		s.Printf("%06d  %s", signal.Seq, signal.Name)
		return nil
	}, core.Options{Name: "tail"})
	if err != nil {
		return err
	}
	defer tail.Close()

	// A monitor counts the signals of the last second. It does not depend on the window.
	failures := s.Sink.Monitor("error.*", time.Second)
	defer failures.Stop()
	defer failures.OnCount(3, 1, func(over bool) {
		if over {
			s.Printf("        ALARM, errors within a second: %d", failures.Count())
		} else {
			s.Printf("        alarm ends, errors within a second: %d", failures.Count())
		}
	})()

	s.Printf("a fixed sequence (seed %d); the tail shows %s", seed, shown)
	raised, stopped := raise(ctx, s.Sink)
	// The dump comes even when ctx has ended. The remaining signals of the tail take no
	// time.
	if err := tail.Drain(context.WithoutCancel(ctx)); err != nil {
		return err
	}

	s.Printf("the window at the end:")
	for _, name := range names {
		s.Printf("  %-20s %3d", name, s.Sink.Count(name))
	}
	line := ""
	for _, family := range []string{"error", "warn", "info", "debug", "trace"} {
		line += fmt.Sprintf("  %s %d", family, s.Sink.Count(family+".*"))
	}
	s.Printf("by family:%s", line)
	if stopped != nil {
		return stopped
	}
	received, logged := s.Sink.Count(all), int(tail.Stats().Succeeded)
	if received != raised || logged != s.Sink.Count(shown) {
		return fmt.Errorf("viewer: %d signals were raised, %d received and %d shown", raised, received, logged)
	}
	s.Takeaway("%d signals received, %d shown, %d filtered out, none lost", received, logged, received-logged)
	return nil
}

// raise raises signals for three seconds, or until ctx ends, and returns how many.
func raise(ctx context.Context, sink *signals.Sink) (n int, err error) {
	fixed := rand.New(rand.NewPCG(seed, 1))
	for start := time.Now(); time.Since(start) < 3*time.Second; n++ {
		sink.Raise(names[fixed.IntN(len(names))])
		if err := scenario.Pause(ctx, time.Duration(35+fixed.IntN(130))*time.Millisecond); err != nil {
			return n + 1, err
		}
	}
	return n, nil
}
