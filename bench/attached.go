package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/adaptiverate"
	"github.com/ephemeralgo/ephemeral/patterns/anomalydetector"
	"github.com/ephemeralgo/ephemeral/patterns/backpressure"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
	"github.com/ephemeralgo/ephemeral/patterns/dynamicconcurrency"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
	"github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads"
	"github.com/ephemeralgo/ephemeral/patterns/signallogwatcher"
)

// attachedRows measure a signal that matches none of 50 patterns on its sink, beside a sink
// without patterns. With unique names, no answer about a name is cached.
func attachedRows() []Row {
	list := uniqueNames(small)
	next := 0
	unique := func(s *signals.Sink, n int) {
		for range n {
			s.Raise(list[next&(len(list)-1)])
			next++
		}
	}
	var rows []Row
	for _, age := range ages {
		bare := func() *signals.Sink { return fullSink(signals.SinkOptions{Capacity: small, MaxAge: age.age}) }
		rows = append(rows,
			Row{Name: "patterns=50/" + age.name, Sides: []Side{crowded(bare, raiseNames), onSink("no-patterns", 1.05, bare, raiseNames), now(0)}},
			Row{Name: "patterns=50/names=unique/" + age.name, MaxAllocs: -1, Sides: []Side{crowded(bare, unique), onSink("no-patterns", 0, bare, unique)}},
		)
	}
	return rows
}

func crowded(sink func() *signals.Sink, run func(s *signals.Sink, n int)) Side {
	return Side{"ours", 0, func() Body {
		s := sink()
		return Body{Run: func(n int) { run(s, n) }, Close: attach(s)}
	}}
}

// attach lets 50 patterns listen to the sink: breakers, detectors, watchers, bridges, and
// coordinators with gates. It returns a function that ends all of them.
func attach(s *signals.Sink) (end func()) {
	var closers []io.Closer
	for i := range 50 {
		name := fmt.Sprint("p", i)
		opts := core.Options{Name: name, Sink: s}
		var c io.Closer
		var err error
		switch i % 8 {
		case 0:
			c, err = circuitbreaker.New(s, circuitbreaker.Options{Name: name, Failure: name + ".failed"})
		case 1:
			c, err = anomalydetector.New(s, anomalydetector.Options{Name: name, Pattern: "error." + name + ".*"})
		case 2:
			c, err = signallogwatcher.New(s, "", func(context.Context, signals.Signal) error { return nil }, core.Options{Name: name})
		case 3:
			c, err = backpressure.New(nothing, opts)
		case 4:
			c, err = adaptiverate.New(nothing, opts)
		case 5:
			c, err = dynamicconcurrency.New(nothing, dynamicconcurrency.Scale{}, opts)
		case 6:
			c, err = signalcoordinatedreads.New(nothing, signalcoordinatedreads.Updates{}, opts)
		case 7:
			c, err = logging.NewBridge(s, slog.DiscardHandler, logging.BridgeOptions{Name: name, Pattern: "*.failed, circuit.*"})
		}
		check(err)
		closers = append(closers, c)
	}
	return func() {
		for _, c := range closers {
			check(c.Close())
		}
	}
}
