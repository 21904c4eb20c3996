package signals_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A function that only looks takes a Sensor: a sink is one, and a coordinator is another.
func ExampleSensor() {
	overloaded := func(s signals.Sensor) bool { return s.Count("load.high") > 2 }
	kept := func(s signals.SinkStats) string { return fmt.Sprintf("%d of %d", s.Stored, s.Capacity) }

	sink := signals.NewSink(signals.SinkOptions{Capacity: 100})
	for range 3 {
		sink.Raise("load.high")
	}
	fmt.Println(overloaded(sink), kept(sink.Stats()))
	// Output: true 3 of 100
}

// A Cause says which signal led to another, and which operation raised it.
func ExampleCause() {
	direct := func(id signals.OperationID) bool { return id == 0 } // raised on the sink itself

	sink := signals.NewSink(signals.SinkOptions{})
	defer sink.Subscribe("file.saved", func(s signals.Signal) { signals.Because(sink, s).Raise("index.updated") })()
	defer sink.Subscribe("index.*", func(s signals.Signal) {
		for _, c := range s.Causes() {
			print := func(c signals.Cause) { fmt.Println(s.Name, "because of", c.Name, direct(c.Operation)) }
			print(c)
		}
	})()
	sink.Raise("file.saved")
	// Output: index.updated because of file.saved true
}

// A Family is a Kind of all names that match a pattern.
func ExampleFamily() {
	type reading struct{ Celsius float64 }
	var measured signals.Family[reading] = signals.NewFamily[reading]("sensor.*.measured")

	sink := signals.NewSink(signals.SinkOptions{})
	defer measured.Subscribe(sink, func(s signals.Signal, r reading) { fmt.Println(s.Name, r.Celsius) })()
	measured.Named("sensor.roof.measured").Raise(sink, "", reading{21.5})
	// Output: sensor.roof.measured 21.5
}

// What a coordinator does because of a signal has it as its cause.
func ExampleCausedBy() {
	sink := signals.NewSink(signals.SinkOptions{})
	mails := core.Must(core.NewCoordinator(func(ctx context.Context, to string) error {
		core.OperationFrom(ctx).Raise("mail.sent")
		return nil
	}, core.Options{Sink: sink}))
	defer sink.Subscribe("order.placed", func(s signals.Signal) {
		core.Must(mails.TryEnqueue(signals.CausedBy(context.Background(), s), s.Key))
	})()
	sink.RaiseKey("order.placed", "ada@example.com")
	if err := mails.Drain(context.Background()); err != nil {
		panic(err)
	}
	for s := range sink.Sense(signals.Query{Pattern: "mail.*"}) {
		fmt.Println(s.Path())
	}
	// Output: [order.placed mail.sent]
}
