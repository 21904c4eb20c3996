package progress_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

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
	download := func(ctx context.Context, url string) error {
		p, err := progress.New(core.OperationFrom(ctx), url, 0, progress.Options{})
		if err != nil {
			return err
		}
		defer p.Done()
		for range 4 {
			p.Add(8192)
		}
		return nil
	}
	downloads, err := core.NewCoordinator(download, core.Options{})
	if err != nil {
		panic(err)
	}
	defer downloads.Close()
	for _, url := range []string{"https://example.org/a", "https://example.org/b"} {
		if err := downloads.Do(context.Background(), url); err != nil {
			panic(err)
		}
	}

	page := json.NewEncoder(os.Stdout)
	page.SetIndent("", "  ")
	if err := page.Encode(progress.All(downloads)); err != nil {
		panic(err)
	}
	// Output:
	// {
	//   "https://example.org/a": {
	//     "current": 32768,
	//     "total": 0,
	//     "done": true
	//   },
	//   "https://example.org/b": {
	//     "current": 32768,
	//     "total": 0,
	//     "done": true
	//   }
	// }
}
