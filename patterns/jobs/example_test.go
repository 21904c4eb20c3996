package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/jobs"
)

// A file is saved. The first job makes thumbnails, at most four at once. The second job waits until
// the scanner is ready, and scans the files of each user in order. The third job follows the first.
func Example() {
	type file struct{ Path, User string }
	saved := signals.NewKind[file]("file.saved")
	user := func(f file) string { return f.User }
	var runner *jobs.Runner
	thumbnail := func(ctx context.Context, s signals.Signal, f file) error {
		core.OperationFrom(ctx).Set("path", strings.Replace(f.Path, ".", ".thumb.", 1))
		return nil
	}
	scan := func(ctx context.Context, s signals.Signal, f file) error { return nil }
	publish := func(ctx context.Context, s signals.Signal) error {
		source, _ := runner.Lookup(s.Operation) // the run that raised the signal
		path, _ := core.Value[string](source, "path")
		fmt.Println("published", path) // published cat.thumb.png
		return nil
	}
	sink := signals.NewSink(signals.SinkOptions{})
	runner = core.Must(jobs.New(sink, []jobs.Job{
		jobs.OnKind(saved, thumbnail, jobs.Options{Name: "thumbnail", Lane: "hot", MaxConcurrency: 4, MaxRetries: 3, EmitOnComplete: "thumbnail.done"}),
		jobs.OnKindKeyed(saved, user, scan, jobs.Options{Name: "scan", Lane: "io:2", Await: []string{"scanner.ready"}, AwaitTimeout: time.Minute}),
		jobs.On("thumbnail.done", publish, jobs.Options{Name: "publish", Lane: "io"}),
	}, core.Options{MaxConcurrency: 16}))
	defer runner.Close()
	saved.Raise(sink, "", file{"cat.png", "ann"})
	sink.Raise("scanner.ready")
	runner.WaitIdle(context.Background())
	fmt.Println(runner.Stats().Succeeded, "runs") // 3 runs
	// Output:
	// published cat.thumb.png
	// 3 runs
}

// large is a kind. Only its large values start jobs.
type large struct{ signals.Kind[int] }

func (l large) From(s signals.Signal) (int, bool) {
	size, ok := l.Kind.From(s)
	return size, ok && size > 1000
}

// A type with a method From can choose which signals start a job.
func ExamplePayload() {
	var kind jobs.Payload[int] = large{signals.NewKind[int]("file.saved")}
	sink := signals.NewSink(signals.SinkOptions{})
	runner, err := jobs.New(sink, []jobs.Job{jobs.OnKind(kind, func(_ context.Context, _ signals.Signal, size int) error {
		fmt.Println("compress", size)
		return nil
	}, jobs.Options{Name: "compress"})}, core.Options{})
	if err != nil {
		panic(err)
	}
	defer runner.Close()
	saved := signals.NewKind[int]("file.saved")
	saved.Raise(sink, "", 10)
	saved.Raise(sink, "", 5000)
	if err := runner.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// compress 5000
}

// Jobs of a group share a prefix, a lane and a limit.
func ExampleGroup() {
	print := func(ctx context.Context, s signals.Signal) error {
		fmt.Println(s.Name, s.Key)
		return nil
	}
	stages := jobs.Group{Prefix: "stage", Lane: "pipeline"}.Jobs(
		jobs.On("ingest", print, jobs.Options{Name: "ingest", EmitOnComplete: "stage.finalize"}),
		jobs.On("finalize", print, jobs.Options{Name: "finalize"}),
	)
	sink := signals.NewSink(signals.SinkOptions{})
	runner, err := jobs.New(sink, stages, core.Options{})
	if err != nil {
		panic(err)
	}
	defer runner.Close()
	for _, j := range runner.Jobs() {
		fmt.Println(j.Name, j.Trigger, j.Lane)
	}
	sink.RaiseKey("stage.ingest", "file-1")
	if err := runner.WaitIdle(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// ingest stage.ingest pipeline
	// finalize stage.finalize pipeline
	// stage.ingest file-1
	// stage.finalize file-1
}

// A dead-letter job gets the runs that have failed. It can raise their signals again.
func ExampleFailure() {
	paid := signals.NewKind[int]("order.paid")
	online := false
	ship := func(ctx context.Context, s signals.Signal, order int) error {
		if !online {
			return errors.New("the warehouse is offline")
		}
		fmt.Println("shipped order", order)
		return nil
	}
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	again := func(ctx context.Context, s signals.Signal, f jobs.Failure) error {
		fmt.Println(f.Run.Job, "after", f.Attempt, "attempts:", f.Err)
		online = true
		f.Run.Raise(sink)
		return nil
	}
	runner, err := jobs.New(sink, []jobs.Job{
		jobs.OnKind(paid, ship, jobs.Options{Name: "ship", MaxRetries: 1, RetryDelay: time.Millisecond}),
		jobs.OnKind(jobs.Failed, again, jobs.Options{Name: "letters"}),
	}, core.Options{})
	if err != nil {
		panic(err)
	}
	defer runner.Close()

	paid.Raise(sink, "", 7)
	if err := runner.WaitIdle(ctx); err != nil {
		panic(err)
	}
	// Output:
	// ship after 2 attempts: the warehouse is offline
	// shipped order 7
}
