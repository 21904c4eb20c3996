package windowsize_test

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/windowsize"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 200, MaxAge: time.Minute})
	resizer := core.Must(windowsize.New(sink, windowsize.Options{}))
	defer resizer.Close()

	sink.Raise("window.size.increase:100")
	sink.Raise("window.time.set:00:05:00")
	fmt.Println(sink.Stats().Capacity, sink.Stats().MaxAge)

	sink.Raise(windowsize.CommandSizeSet + ":1000000") // more than the bounds allow
	fmt.Println(sink.Stats().Capacity)
	// Output:
	// 300 5m0s
	// 50000
}

// The answer to a command is a signal.
func ExampleEvent() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 200, MaxAge: time.Minute})
	resizer, err := windowsize.New(sink, windowsize.Options{})
	if err != nil {
		panic(err)
	}
	defer resizer.Close()

	show := func(w windowsize.Window) string { return fmt.Sprint(w.Capacity, " signals for ", w.MaxAge) }
	windowsize.Events.Subscribe(sink, func(_ signals.Signal, e windowsize.Event) {
		if e.Err != nil {
			fmt.Println(e.Err)
			return
		}
		fmt.Println(e.Command+":", show(e.From), "->", show(e.To))
	})

	sink.Raise("window.time.decrease:30s")
	sink.Raise("window.time.set:30")
	// Output:
	// window.time.decrease:30s: 200 signals for 1m0s -> 200 signals for 30s
	// windowsize: "30" is not a duration like 30s, 5m, 500ms or 00:05:00
}
