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

// Jobs follow the operations of a coordinator, and read the values that these have stored.
func Example_crossOperation() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	uploads, err := core.NewCoordinator(func(ctx context.Context, name string) error {
		op := core.OperationFrom(ctx)
		op.Set("FilePath", "/data/"+name)
		op.Set("MimeType", "image/jpeg")
		op.Raise("file.saved") // starts the jobs
		return nil
	}, core.Options{MaxConcurrency: 8, Sink: sink})
	if err != nil {
		panic(err)
	}
	defer uploads.Close()

	thumbnail := func(ctx context.Context, s signals.Signal) error {
		source, ok := uploads.Lookup(s.Operation)
		if !ok {
			return errors.New("the source operation is gone")
		}
		op := core.OperationFrom(ctx)
		path, _ := core.Value[string](source, "FilePath")
		if mime, _ := core.Value[string](source, "MimeType"); !strings.HasPrefix(mime, "image/") {
			op.Raise("skipped.not_image")
			return nil
		}
		op.Set("ThumbnailPath", path+".thumb")
		return nil
	}
	scan := func(ctx context.Context, s signals.Signal) error {
		core.OperationFrom(ctx).Raise("virus.clean")
		return nil
	}
	save := func(ctx context.Context, s signals.Signal) error { return nil }

	runner, err := jobs.New(sink, []jobs.Job{
		jobs.On("file.saved", thumbnail, jobs.Options{Name: "thumbnail", MaxConcurrency: 4, EmitOnStart: "thumbnail.start", EmitOnComplete: "thumbnail.complete"}),
		jobs.On("file.saved", scan, jobs.Options{Name: "scan", MaxConcurrency: 2, EmitOnComplete: "virus_scan.complete"}),
		jobs.On("file.saved", save, jobs.Options{Name: "metadata", Lane: "database", EmitOnComplete: "metadata.saved"}),
	}, core.Options{})
	if err != nil {
		panic(err)
	}
	defer runner.Close()

	if err := uploads.Do(ctx, "photo.jpg"); err != nil {
		panic(err)
	}
	if err := runner.Drain(ctx); err != nil { // all three ran side by side
		panic(err)
	}
	fmt.Println(sink.Count("thumbnail.*"), sink.Has("virus_scan.complete"), sink.Has("metadata.saved"))
	for op := range runner.Operations(core.OperationQuery{}) {
		if path, ok := core.Value[string](op, "ThumbnailPath"); ok {
			fmt.Println(path)
		}
	}
	// Output:
	// 2 true true
	// /data/photo.jpg.thumb
}

// An error in the log starts the job escalate. Its completion raises incident.created, which
// starts the job notify.
func Example_logWatcher() {
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	escalate := func(ctx context.Context, s signals.Signal) error {
		fmt.Println("escalating", s.Name, "for", s.Key)
		return nil
	}
	notify := func(ctx context.Context, s signals.Signal) error {
		fmt.Println("notified incident for", s.Key)
		return nil
	}
	watcher, err := jobs.New(sink, []jobs.Job{
		jobs.On("log.error.*", escalate, jobs.Options{Name: "escalate", Priority: 1, MaxConcurrency: 2, Lane: "hot:4", EmitOnComplete: "incident.created"}),
		jobs.On("incident.created", notify, jobs.Options{Name: "notify", EmitOnStart: "incident.monitor.start"}),
	}, core.Options{})
	if err != nil {
		panic(err)
	}
	defer watcher.Close()

	sink.RaiseKey("log.error.orders.DbFailure", "orders") // as the logging bridge does
	if err := watcher.WaitIdle(ctx); err != nil {
		panic(err)
	}
	// Output:
	// escalating log.error.orders.DbFailure for orders
	// notified incident for orders
}

// Orders are processed. Then their customers are notified, and each customer gets one notification
// at a time. The operation of an order is pinned until it is acknowledged.
func Example_orders() {
	type order struct{ ID, Customer string }
	processed := signals.NewKind[order]("orders.processed")
	process := func(ctx context.Context, s signals.Signal) error {
		fmt.Println("processing", s.Key)
		processed.Raise(core.OperationFrom(ctx), s.Key, order{s.Key, "ann"})
		return nil
	}
	notify := func(ctx context.Context, s signals.Signal, o order) error {
		fmt.Println("notified", o.Customer, "of", o.ID)
		core.OperationFrom(ctx).Sink().RaiseKey("responsibility.ack.notified", s.Operation.String())
		return nil
	}
	ctx, sink := context.Background(), signals.NewSink(signals.SinkOptions{})
	pipeline := jobs.Group{Prefix: "pipeline", Lane: "io", MaxConcurrency: 2}.Jobs(
		jobs.On("orders.process", process, jobs.Options{
			Name: "process", Priority: 1, MaxConcurrency: 3, Lane: "hot:4", Key: jobs.SignalKey, Pin: true, ExpireAfter: time.Hour,
		}),
		jobs.OnKindKeyed(processed, func(o order) string { return o.Customer }, notify, jobs.Options{Name: "notify"}),
	)
	runner, err := jobs.New(sink, pipeline, core.Options{})
	if err != nil {
		panic(err)
	}
	defer runner.Close()

	sink.RaiseKey("pipeline.orders.process", "order-42")
	if err := runner.WaitIdle(ctx); err != nil {
		panic(err)
	}
	// Output:
	// processing order-42
	// notified ann of order-42
}
