// Package chain shows a chain of atoms that start each other. Each signal knows its
// causes. So the whole chain can be seen in its last signal, and a chain that is a circle
// by mistake ends.
package chain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario sends three inputs through a chain of three atoms. A fourth listener makes the
// chain a circle.
var Scenario = scenario.Scenario{
	Name:  "chain",
	Title: "Signal chain: three atoms, and a circle that ends by itself",
	Run:   run,
}

func run(ctx context.Context, s *scenario.Screen) error {
	var atoms []*molecules.Trigger
	for _, link := range []struct{ name, on, then string }{
		{"stepA", "input", "stepA.complete"},
		{"stepB", "stepA.complete", "stepB.complete"},
		{"stepC", "stepB.complete", "stepC.complete"},
	} {
		atom, err := molecules.NewTrigger(s.Sink, link.on, func(ctx context.Context, cause signals.Signal) error {
			if err := scenario.Pause(ctx, 33*time.Millisecond); err != nil {
				return err
			}
			core.OperationFrom(ctx).Because(cause).Raise(link.then)
			return nil
		}, molecules.TriggerOptions{Name: link.name})
		if err != nil {
			return err
		}
		defer atom.Close()
		atoms = append(atoms, atom)
	}

	defer s.Sink.Subscribe("stepC.complete", func(last signals.Signal) {
		counts := ""
		for _, atom := range atoms {
			counts += fmt.Sprintf("  %s %d", atom.Name(), atom.Count("*.complete"))
		}
		s.Printf("%s  %s", last.Key, strings.Join(last.Path(), " > "))
		s.Printf("%s  chain complete, so far%s", last.Key, counts)
	})()

	// This is the mistake: the end of the chain is an input again.
	defer s.Sink.Subscribe("stepC.complete", func(last signals.Signal) {
		if !s.Sink.Because(last).RaiseKey("input", last.Key) {
			s.Printf("%s  input is refused: it is one of its own causes", last.Key)
		}
	})()

	blocked := s.Sink.Stats().Blocked
	const inputs = 3
	for i := range inputs {
		s.Sink.RaiseKey("input", fmt.Sprintf("input-%d", i+1))
		if err := scenario.Pause(ctx, 170*time.Millisecond); err != nil {
			return err
		}
	}
	if err := core.InOrder(atoms[0], atoms[1], atoms[2]).Drain(ctx); err != nil {
		return err
	}
	complete := atoms[2].Count("stepC.complete")
	blocked = s.Sink.Stats().Blocked - blocked
	if complete != inputs || blocked != inputs {
		return fmt.Errorf("chain: of %d inputs, %d are complete and %d circles were ended", inputs, complete, blocked)
	}
	s.Takeaway("%d inputs, %d complete chains; %d circles ended at the first repetition", inputs, complete, blocked)
	return nil
}
