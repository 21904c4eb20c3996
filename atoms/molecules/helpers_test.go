package molecules_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/molecules"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var errOnPurpose = errors.New("failed on purpose")

// terminal matches the signals with which runs end.
const terminal = molecules.SignalCompleted + "," + molecules.SignalFailed + "," + molecules.SignalCancelled

type do = func(context.Context, *molecules.Run) error

func quick(context.Context, *molecules.Run) error { return nil }

func fail(context.Context, *molecules.Run) error { return errOnPurpose }

// takes returns a function that runs for d, or until it is cancelled.
func takes(d time.Duration) do {
	return func(ctx context.Context, _ *molecules.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// journal is a list of events, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() (lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines, j.lines = j.lines, nil
	return lines
}

// notes returns the function of a step, which adds what to the journal and returns err.
func (j *journal) notes(what string, err error) do {
	return func(context.Context, *molecules.Run) error { j.add("%s", what); return err }
}

// bubble runs a subtest in a synctest bubble.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func newSink() *signals.Sink { return signals.NewSink(signals.SinkOptions{}) }

func newRunner(sink *signals.Sink, opts molecules.Options, blueprints ...molecules.Blueprint) *molecules.Runner {
	return core.Must(molecules.New(sink, blueprints, opts))
}

func steps(do ...do) (steps []molecules.Step) {
	for i, do := range do {
		steps = append(steps, molecules.Step{Name: fmt.Sprint("step", i), Do: do})
	}
	return steps
}

func blueprint(do ...do) molecules.Blueprint {
	return molecules.Blueprint{Name: "m", On: "go", Steps: steps(do...)}
}

// event returns the payload of a signal of a runner.
func event(s signals.Signal) molecules.Event { return s.Payload().(molecules.Event) }

// submit returns a function that raises a body as the payload of a signal, with a new key each time.
// If the signal starts nothing, the function returns core.ErrClosed.
func submit(body signals.Kind[coretest.Body], sink *signals.Sink, stats func() core.Stats) func(context.Context, coretest.Body) error {
	var (
		turn sync.Mutex
		n    int
	)
	return func(_ context.Context, b coretest.Body) error {
		turn.Lock()
		defer turn.Unlock()
		before := stats().Enqueued
		n++
		body.Raise(sink, fmt.Sprint(n), b)
		if stats().Enqueued == before {
			return core.ErrClosed
		}
		return nil
	}
}
