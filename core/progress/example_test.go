package progress_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/progress"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	progress.Reports.Subscribe(sink, func(s signals.Signal, r progress.Report) {
		fmt.Println(s.Key, r)
	})

	rows := make([]string, 12)
	p, err := progress.New(sink, "ingest", int64(len(rows)), progress.Options{Every: 5})
	if err != nil {
		panic(err)
	}
	defer p.Done()
	for range rows {
		p.Add(1)
	}
	// Output:
	// ingest 5/12
	// ingest 10/12
	// ingest 12/12
}

// A page shows the reports in the window. Operations raise the reports, so their
// coordinator has them as well.
func ExampleAll() {
	downloads := core.Must(core.NewCoordinator(func(ctx context.Context, url string) error {
		p, err := progress.New(core.OperationFrom(ctx), url, 0, progress.Options{})
		if err != nil {
			return err
		}
		defer p.Done()
		p.Add(8192)
		return nil
	}, core.Options{}))
	defer downloads.Close()
	if err := downloads.Do(context.Background(), "https://example.org/a"); err != nil {
		panic(err)
	}
	fmt.Println(progress.All(downloads))
	// Output: map[https://example.org/a:8192]
}
