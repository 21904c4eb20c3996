// Package command shows the third of three ways to use signals: commands. A signal says what
// to do, and an atom does it. Commands are for infrastructure, such as the window of a sink:
// the code that raises one needs no reference to the atom.
package command

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/windowsize"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario changes the window of a sink by four commands, one of which is refused.
var Scenario = scenario.Scenario{
	Name:  "command",
	Title: "Command: signals that change the window of a sink",
	Run:   run,
}

func run(ctx context.Context, s *scenario.Screen) error {
	// The sink of this scenario is small. The screen shows its commands and the answers.
	sink := signals.NewSink(signals.SinkOptions{Capacity: 100})
	defer sink.Forward(s.Sink, "window.*")()

	resizer, err := windowsize.New(sink, windowsize.Options{})
	if err != nil {
		return err
	}
	defer resizer.Close()
	obeyed, refused := 0, 0
	defer windowsize.Events.Subscribe(sink, func(_ signals.Signal, e windowsize.Event) { // on the goroutine that raises the command
		if e.Err != nil {
			refused++
			s.Printf("rejected: %s", e.Command)
			return
		}
		obeyed++
		if e.To.Capacity != e.From.Capacity {
			s.Printf("applied:  capacity %d, before %d", e.To.Capacity, e.From.Capacity)
		} else {
			s.Printf("applied:  retention %v, before %v", e.To.MaxAge, e.From.MaxAge)
		}
	})()

	fill(s, sink)
	var full []int // how many signals the window holds after each command
	for _, command := range []string{
		windowsize.CommandSizeSet + ":500",
		windowsize.CommandSizeIncrease + ":200",
		windowsize.CommandSizeSet + ":many",
		windowsize.CommandTimeSet + ":30s",
	} {
		s.Printf("raise %s", command)
		sink.Raise(command) // the command is carried out when Raise returns
		full = append(full, fill(s, sink))
		if err := scenario.Pause(ctx, 35*time.Millisecond); err != nil {
			return err
		}
	}

	retention := sink.Stats().MaxAge
	if full[0] != 500 || full[1] != 700 || retention != 30*time.Second || obeyed != 3 || refused != 1 {
		return fmt.Errorf("command: the window held %v signals, retention %v, %d obeyed, %d refused", full, retention, obeyed, refused)
	}
	s.Takeaway("it held %d, then %d signals, for %v: %d commands obeyed, %d refused",
		full[0], full[1], retention, obeyed, refused)
	return nil
}

// fill raises more signals than the window has room for, and returns how many it holds.
func fill(s *scenario.Screen, sink *signals.Sink) int {
	const n = 1000
	for range n {
		sink.Raise("request.handled")
	}
	w := sink.Stats()
	s.Printf("          %d signals more; the window holds %d for %v", n, w.Stored, w.MaxAge)
	return w.Stored
}
