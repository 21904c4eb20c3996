package flightrecorder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/flightrecorder"
)

func Example() {
	dir := core.Must(os.MkdirTemp("", "flights"))
	defer os.RemoveAll(dir)
	sink := signals.NewSink(signals.SinkOptions{})
	uploads := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{Name: "uploads"}))
	recorder := core.Must(flightrecorder.New(sink, flightrecorder.Options{
		On: "breaker.opened.*", Dir: dir, Coordinators: []core.Inspector{uploads},
	}))
	defer recorder.Close()
	flightrecorder.Recorded.Subscribe(sink, func(_ signals.Signal, r flightrecorder.Recording) {
		text, err := os.ReadFile(r.Report)
		var report flightrecorder.Report
		if err := errors.Join(err, json.Unmarshal(text, &report)); err != nil {
			panic(err)
		}
		fmt.Println(r.Cause, report.Busy)
	})

	sink.Raise("breaker.opened.carrier")
	if err := recorder.Flush(context.Background()); err != nil {
		panic(err)
	}
	// Output: breaker.opened.carrier map[uploads:[]]
}
