// Package notification shows the first of three ways to use signals: pure notification. A
// signal says that something has happened, and nothing more. The atom holds the state, and
// listeners ask the atom.
package notification

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// Scenario saves three files, with two listeners.
var Scenario = scenario.Scenario{
	Name:  "notification",
	Title: "Pure notification: a signal says that, the atom knows what",
	Run:   run,
}

// file is what the atom knows about a file that it has saved.
type file struct {
	Name string
	At   time.Time
}

func run(ctx context.Context, s *scenario.Screen) error {
	// The atom saves one file at a time, and keeps the facts in its operations.
	saver, err := molecules.NewTrigger(s.Sink, "file.save", save,
		molecules.TriggerOptions{Name: "saver", MaxConcurrency: 1})
	if err != nil {
		return err
	}
	defer saver.Close()

	// The two listeners do not know each other. The atom does not know them either.
	total, audited := 0, 0
	defer s.Sink.Subscribe("file.saved", func(signals.Signal) {
		total = saver.Count("file.saved")
		s.Printf("notify: %d saved so far", total)
	})()
	defer s.Sink.Subscribe("file.saved", func(saved signals.Signal) {
		op, _ := saver.Lookup(saved.Operation)
		if f, ok := core.Value[file](op, "file"); ok {
			audited++
			s.Printf("audit:  %s was saved at %s", f.Name, f.At.Format("15:04:05.000"))
		}
	})()

	names := []string{"report.txt", "photo.jpg", "budget.csv"}
	for _, name := range names {
		s.Printf("raise file.save, about %s", name)
		s.Sink.RaiseKey("file.save", name)
		if err := scenario.Pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if err := saver.Drain(ctx); err != nil {
		return err
	}
	if total != len(names) || audited != len(names) {
		return fmt.Errorf("notification: of %d files, the total says %d and the audit %d", len(names), total, audited)
	}
	s.Takeaway("the signals said that, the atom knew what: %d saved, %d audited", total, audited)
	return nil
}

// save is the work of the atom. It stores the state first, and raises the signal after that,
// so that listeners find the state.
func save(ctx context.Context, order signals.Signal) error {
	if err := scenario.Pause(ctx, 65*time.Millisecond); err != nil {
		return err
	}
	op := core.OperationFrom(ctx)
	op.Set("file", file{Name: order.Key, At: time.Now()})
	op.Because(order).Raise("file.saved")
	return nil
}
