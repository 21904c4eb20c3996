package aggregate_test

import (
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/aggregate"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type Response struct {
	Took time.Duration
	Size int
}

var Served = signals.NewKind[Response]("response.served")

func Example() {
	sink := signals.NewSink(signals.SinkOptions{Capacity: 2}) // a capacity of 1 is enough
	served, err := aggregate.New(sink, Served, time.Minute, aggregate.Options{})
	if err != nil {
		panic(err)
	}
	defer served.Stop()

	for i := range 100 {
		Served.Raise(sink, "customer-7", Response{Took: time.Duration(i+1) * time.Millisecond, Size: 1000})
		sink.Raise("chatter")
	}

	took := served.Summarize(func(r Response) float64 { return r.Took.Seconds() })
	fmt.Printf("%d took %.3fs on average, 99%% took %.3fs or less\n", took.Count, took.Mean, took.Quantile(0.99))
	if !took.Complete {
		fmt.Println("in less than a minute")
	}
	// Output:
	// 100 took 0.051s on average, 99% took 0.099s or less
	// in less than a minute
}
