package echo_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/echo"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

var _ echo.Source = (*core.ResultCoordinator[string, string])(nil)

func Example() {
	type lastState struct{ Order, Status string }
	captured := signals.NewKind[lastState]("echo.capture")
	orders := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		captured.Raise(core.OperationFrom(ctx), order, lastState{order, "archived"})
		return nil
	}, core.Options{MaxConcurrency: 1}))
	archive := func(ctx context.Context, e echo.Entry[lastState]) error {
		for _, c := range e.Captures {
			fmt.Println(c.Payload.Order, "is", c.Payload.Status) // order-1 is archived, then order-2
		}
		return nil
	}
	rec, err := echo.New(orders, captured, archive, echo.Options{})
	if err != nil {
		panic(err)
	}
	defer rec.Close()
	rec.Failed().Subscribe(rec.Sink(), func(_ signals.Signal, f lastwords.Failure[echo.Entry[lastState]]) {
		fmt.Println("not archived:", f.Value.Key, f.Err)
	})

	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2"} {
		core.Must(orders.Enqueue(ctx, order))
	}
	err = orders.Drain(ctx) // all work is done
	orders.Close()          // all operations leave its list
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := errors.Join(err, rec.Drain(deadline)); err != nil { // Close would drop the entries that wait
		panic(err)
	}
	// Output:
	// order-1 is archived
	// order-2 is archived
}

// A signal starts a job, and the operation of the job raises other signals. Signals before the
// activation are not captured.
func Example_activation() {
	type payload struct{ Order, State string }
	var (
		capture = signals.NewKind[payload]("echo.capture")
		detail  = signals.NewKind[payload]("echo.detail")
	)
	sink := signals.NewSink(signals.SinkOptions{})
	jobs, err := core.NewProcessor(func(ctx context.Context, s signals.Signal) error {
		op := core.OperationFrom(ctx)
		detail.Raise(op, s.Key, payload{s.Key, "on its way"})
		capture.Raise(op, s.Key, payload{s.Key, "archivable"})
		detail.Raise(op, s.Key, payload{s.Key, "on shelf 7"})
		return nil
	}, core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}
	defer sink.Subscribe("job.done", jobs.Process)()

	rec, err := echo.New(jobs, capture, func(ctx context.Context, e echo.Entry[payload]) error {
		for _, c := range e.Captures {
			fmt.Println(c.Signal.Name, c.Payload)
		}
		return nil
	}, echo.Options{Activate: "echo.capture", Capture: "echo.*", MaxQueued: 128})
	if err != nil {
		panic(err)
	}
	defer rec.Close()

	ctx := context.Background()
	sink.RaiseKey("job.done", "order-1")
	err = jobs.Drain(ctx)
	jobs.Close()
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := errors.Join(err, rec.Drain(deadline)); err != nil {
		panic(err)
	}
	// Output:
	// echo.capture {order-1 archivable}
	// echo.detail {order-1 on shelf 7}
}
