package stages_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/core/stages"
)

func Example() {
	parse := func(ctx context.Context, line string) (string, error) {
		name, price, found := strings.Cut(line, ";")
		if !found {
			return "", fmt.Errorf("%q has no price", line)
		}
		return name + " costs " + price, nil
	}
	publish := func(ctx context.Context, text string) (string, error) {
		return strings.ToUpper(text), nil
	}

	sink := signals.NewSink(signals.SinkOptions{})
	prices, err := stages.New([]stages.Stage[string]{
		{Name: "parse", Work: parse},
		{Name: "publish", Work: publish, When: "prices.approved", MaxConcurrency: 1},
	}, core.Options{Sink: sink})
	if err != nil {
		panic(err)
	}

	// The prices are approved after all of them have been parsed.
	sink.Subscribe(stages.SignalComplete, func(s signals.Signal) {
		if s.Key == "parse" {
			sink.Raise("prices.approved")
		}
	})

	results, err := prices.Run(context.Background(), []string{"tea;3", "water", "milk;2"})
	fmt.Println(err)
	show := func(r stages.Result[string]) {
		if r.Err != nil {
			fmt.Println(r.Item, "did not pass", r.Stage)
			return
		}
		fmt.Println(r.Item)
	}
	for _, r := range results {
		show(r)
	}
	// Output:
	// stages: stage "parse": "water" has no price
	// TEA COSTS 3
	// water did not pass parse
	// MILK COSTS 2
}
