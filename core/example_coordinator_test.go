package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Give work to a coordinator and see its result.
func ExampleNewCoordinator() {
	greet := func(ctx context.Context, name string) error {
		if name == "" {
			return errors.New("nobody to greet")
		}
		fmt.Println("hello,", name)
		return nil
	}
	c, err := core.NewCoordinator(greet, core.Options{MaxConcurrency: 1})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	ctx := context.Background()
	for _, name := range []string{"Ada", "", "Grace"} {
		core.Must(c.Enqueue(ctx, name))
	}
	if err := c.Drain(ctx); err != nil {
		panic(err)
	}
	s := c.Stats()
	fmt.Println(s.Succeeded, "succeeded,", s.Failed, "failed")
	// Output:
	// hello, Ada
	// hello, Grace
	// 2 succeeded, 1 failed
}

// Do enqueues an item and waits for its own result.
func ExampleCoordinator_Do() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
		if n < 0 {
			return fmt.Errorf("%d is negative", n)
		}
		return nil
	}, core.Options{}))
	defer c.Close()

	fmt.Println(c.Do(context.Background(), 1))
	fmt.Println(c.Do(context.Background(), -1))
	// Output:
	// <nil>
	// -1 is negative
}

// TryEnqueue does not wait when the queue is full: the producer decides what to do.
func ExampleCoordinator_TryEnqueue() {
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
		core.Options{MaxConcurrency: 1, MaxQueued: 2}))
	defer c.Close()

	c.Pause() // so that nothing leaves the queue
	for i := range 3 {
		if _, err := c.TryEnqueue(context.Background(), i); errors.Is(err, core.ErrFull) {
			fmt.Println("no room for", i)
		}
	}
	// Output: no room for 2
}

// One operation saves a file and says so; another one makes a thumbnail of it. The
// signal has the id of the operation. While the operation is in its coordinator's
// window, it has the details.
func ExampleCoordinator_Lookup() {
	type File struct{ Path, By string }
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})

	files := core.Must(core.NewCoordinator(func(ctx context.Context, name string) error {
		op := core.OperationFrom(ctx)
		op.Set("file", File{Path: "/srv/" + name, By: "alice"})
		op.Raise("file.saved")
		return nil
	}, core.Options{Name: "files", Sink: sink}))
	defer files.Close()

	thumbs := core.Must(core.NewCoordinator(func(ctx context.Context, source core.OperationID) error {
		op, ok := files.Lookup(source)
		if !ok {
			return errors.New("the source operation is gone")
		}
		file, ok := core.Value[File](op, "file")
		if !ok {
			return errors.New("the source operation left no file")
		}
		fmt.Printf("thumbnail of %s for %s\n", file.Path, file.By)
		return nil
	}, core.Options{Name: "thumbs", Sink: sink}))
	defer thumbs.Close()

	cancel := sink.Subscribe("file.saved", func(s signals.Signal) {
		if _, err := thumbs.Enqueue(ctx, s.Operation); err != nil {
			sink.Raise("error.thumbnail_refused")
		}
	})
	defer cancel()

	core.Must(files.Enqueue(ctx, "photo.jpg"))
	if err := errors.Join(files.Drain(ctx), thumbs.Drain(ctx)); err != nil {
		panic(err)
	}
	// Output: thumbnail of /srv/photo.jpg for alice
}

// OnFinalized gets the last snapshot of every operation that leaves the window, by the window's size, by age, or at Close.
func ExampleCoordinator_OnFinalized() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		op := core.OperationFrom(ctx)
		op.SetKey(order)
		op.Raise("order.archived")
		return nil
	}, core.Options{}))

	c.OnFinalized(func(s core.Snapshot) {
		fmt.Println(s.Key, s.Status, s.Has("order.archived"))
	})
	for _, order := range []string{"order-1", "order-2"} {
		if err := c.Do(context.Background(), order); err != nil {
			panic(err)
		}
	}
	c.Close() // until here, nothing had to leave the window
	// Output:
	// order-1 succeeded true
	// order-2 succeeded true
}

// A Future says how its operation ended, also when many others have pushed that out of the window.
func ExampleCoordinator_Submit() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, n int) error {
		if n == 3 {
			return errors.New("three is bad")
		}
		return nil
	}, core.Options{MaxTracked: 10, MaxFailed: -1}))
	defer c.Close()
	ctx := context.Background()

	var futures []*core.Future[struct{}]
	for n := range 1000 {
		f := core.Must(c.Submit(ctx, n))
		futures = append(futures, f)
	}
	for n, f := range futures {
		if _, err := f.Wait(ctx); err != nil {
			fmt.Println("item", n, "failed:", err)
		}
	}
	// Output: item 3 failed: three is bad
}

// The limit may change at any time: more start at once, and nothing that runs is
// stopped.
func ExampleCoordinator_SetMaxConcurrency() {
	var ready sync.WaitGroup
	finish := make(chan struct{})
	c := core.Must(core.NewCoordinator(func(context.Context, int) error {
		ready.Done()
		<-finish
		return nil
	}, core.Options{MaxConcurrency: 2}))
	defer c.Close()

	ready.Add(2)
	for i := range 10 {
		core.Must(c.TryEnqueue(context.Background(), i))
	}
	ready.Wait()
	fmt.Println("running:", c.Stats().Running)

	ready.Add(3)
	if err := c.SetMaxConcurrency(5); err != nil {
		panic(err)
	}
	ready.Wait()
	fmt.Println("running:", c.Stats().Running)

	ready.Add(5)
	close(finish)
	// Output:
	// running: 2
	// running: 5
}

// Items wait while a signal matches DeferOn.
func ExampleOptions_deferOn() {
	sink := signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(_ context.Context, row int) error {
		fmt.Println("read row", row)
		return nil
	}, core.Options{Sink: sink, DeferOn: "update.in-progress", MaxConcurrency: 1}))
	defer c.Close()

	release := sink.Hold("update.in-progress", "", time.Minute)
	for row := range 2 {
		core.Must(c.TryEnqueue(context.Background(), row))
	}
	fmt.Println("updated")
	release()
	if err := c.Drain(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// updated
	// read row 0
	// read row 1
}

// A signal that matches CancelOn refuses items, and the error says which.
func ExampleRefusedError() {
	sink := signals.NewSink(signals.SinkOptions{})
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil },
		core.Options{Sink: sink, CancelOn: "maintenance.*, shutting-down"}))
	defer c.Close()

	sink.Raise("maintenance.planned")
	_, err := c.TryEnqueue(context.Background(), 1)
	if refused, ok := errors.AsType[*core.RefusedError](err); ok {
		fmt.Println("refused because of", refused.Signal.Name)
	}
	// Output: refused because of maintenance.planned
}

// Run work for every item of a sequence, four at a time, and get all errors.
func ExampleForEach() {
	urls := []string{"a.example", "b.example", "c.example"}
	err := core.ForEach(context.Background(), slices.Values(urls), func(ctx context.Context, url string) error {
		if url == "b.example" {
			return fmt.Errorf("%s does not answer", url)
		}
		return nil
	}, core.Options{MaxConcurrency: 4})
	fmt.Println(err)
	// Output: b.example does not answer
}

// Turn items into results, concurrently and in order.
func ExampleMap() {
	words := slices.Values([]string{"one", "three", "five"})
	length := func(_ context.Context, word string) (int, error) { return len(word), nil }
	for n, err := range core.Map(context.Background(), words, length, core.Options{MaxConcurrency: 2}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(n)
	}
	// Output:
	// 3
	// 5
	// 4
}

// Cancel ends the context of a running operation; a pending operation does not start.
func ExampleControl_Cancel() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, core.Options{}))
	defer c.Close()

	ctx := context.Background()
	id := core.Must(c.Enqueue(ctx, "order-1"))
	fmt.Println(c.Cancel(id, errors.New("customer left")))
	fmt.Println(c.Wait(ctx, id))
	// Output:
	// true
	// customer left
}

// While a coordinator is paused, it accepts items and starts none.
func ExampleControl_Pause() {
	c := core.Must(core.NewCoordinator(func(context.Context, string) error { return nil }, core.Options{}))
	defer c.Close()

	ctx := context.Background()
	c.Pause()
	id := core.Must(c.Enqueue(ctx, "order-1"))
	why, _ := c.Explain(id)
	fmt.Println(why.Status, why.Reasons[0].Kind)
	c.Resume()
	fmt.Println(c.Wait(ctx, id))
	// Output:
	// pending paused
	// <nil>
}

// Flush waits for the items that were accepted before, and leaves the intake open. Drain ends it.
func ExampleControl_Drain() {
	c := core.Must(core.NewCoordinator(func(_ context.Context, order string) error {
		fmt.Println(order)
		return nil
	}, core.Options{}))

	ctx := context.Background()
	core.Must(c.Enqueue(ctx, "order-1"))
	fmt.Println(c.Flush(ctx))
	core.Must(c.Enqueue(ctx, "order-2"))
	fmt.Println(c.Drain(ctx))
	_, err := c.Enqueue(ctx, "order-3")
	fmt.Println(errors.Is(err, core.ErrClosed))
	// Output:
	// order-1
	// <nil>
	// order-2
	// <nil>
	// true
}

// Stop lets running operations finish, and cancels those that wait.
func ExampleControl_Stop() {
	started, dropped := make(chan bool), make(chan bool)
	c := core.Must(core.NewCoordinator(func(_ context.Context, order string) error {
		close(started)
		<-dropped
		return nil
	}, core.Options{MaxConcurrency: 1, OnDone: func(op core.Snapshot) {
		fmt.Println(op.Item, op.Status)
		if op.Status == core.StatusCancelled {
			close(dropped)
		}
	}}))

	ctx := context.Background()
	core.Must(c.Enqueue(ctx, "order-1"))
	<-started
	core.Must(c.Enqueue(ctx, "order-2"))
	fmt.Println(c.Stop(ctx))
	// Output:
	// order-2 cancelled
	// order-1 succeeded
	// <nil>
}

// A pinned operation stays in the window, whatever comes after it.
func ExampleControl_Pin() {
	c := core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{MaxTracked: 1}))
	defer c.Close()

	ctx := context.Background()
	first := core.Must(c.Submit(ctx, 0))
	unpin, ok := c.Pin(first.ID())
	defer unpin()
	for n := range 10 {
		c.Do(ctx, n)
	}
	_, found := c.Lookup(first.ID())
	fmt.Println(ok, found)
	// Output: true true
}

// The window has the newest failures, with their items. Stats counts all.
func ExampleControl_Operations() {
	c := core.Must(core.NewCoordinator(func(_ context.Context, order string) error {
		if order == "order-2" {
			return errors.New("no address")
		}
		return nil
	}, core.Options{}))
	defer c.Close()

	ctx := context.Background()
	for _, order := range []string{"order-1", "order-2", "order-3"} {
		core.Must(c.Enqueue(ctx, order))
	}
	c.WaitIdle(ctx)
	for op := range c.Operations(core.OperationQuery{Status: core.StatusFailed, NewestFirst: true, Limit: 10}) {
		fmt.Println(op.Item, op.Err)
	}
	stats := c.Stats()
	fmt.Println(stats.Enqueued, stats.Succeeded, stats.Failed)
	// Output:
	// order-2 no address
	// 3 2 1
}

// Values that a body stores can be read while it runs, and as long as the operation is in the window.
func ExampleOperation_Set() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, path string) error {
		op := core.OperationFrom(ctx)
		op.Set("thumbnail", "small-"+path)
		op.Raise("image.resized")
		return nil
	}, core.Options{}))
	defer c.Close()

	ctx := context.Background()
	id := core.Must(c.Enqueue(ctx, "cat.png"))
	c.Wait(ctx, id)
	op, _ := c.Lookup(id)
	fmt.Println(core.Value[string](op, "thumbnail"))
	fmt.Println(op.Has("image.*"))
	// Output:
	// small-cat.png true
	// true
}

// A condition that a body holds ends with its operation at the latest.
func ExampleOperation_Hold() {
	c := core.Must(core.NewCoordinator(func(ctx context.Context, name string) error {
		release := core.OperationFrom(ctx).Hold("index.rebuilding", 0)
		defer release()
		fmt.Println(core.OperationFrom(ctx).Sink().Has("index.rebuilding"))
		return nil
	}, core.Options{}))
	defer c.Close()

	c.Do(context.Background(), "index")
	fmt.Println(c.Sink().Has("index.rebuilding"))
	// Output:
	// true
	// false
}

// A coordinator cannot see that a body waits for a server. The body says it, and Explain shows it.
func ExampleOperation_WaitsFor() {
	asked, answer := make(chan bool), make(chan bool)
	c := core.Must(core.NewCoordinator(func(ctx context.Context, order string) error {
		defer core.OperationFrom(ctx).WaitsFor("the carrier", time.Time{})()
		close(asked)
		<-answer
		return nil
	}, core.Options{}))
	defer c.Close()
	defer close(answer)

	id := core.Must(c.Enqueue(context.Background(), "order-1"))
	<-asked
	why, _ := c.Explain(id)
	fmt.Println(why.Status, why.Reasons[0].Kind, why.Reasons[0].What)
	// Output: running body the carrier
}
