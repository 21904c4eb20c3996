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
		if _, err := c.Enqueue(ctx, name); err != nil {
			panic(err)
		}
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

	if _, err := files.Enqueue(ctx, "photo.jpg"); err != nil {
		panic(err)
	}
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
		f, err := c.Submit(ctx, n)
		if err != nil {
			panic(err)
		}
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
		if _, err := c.TryEnqueue(context.Background(), i); err != nil {
			panic(err)
		}
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
		if _, err := c.TryEnqueue(context.Background(), row); err != nil {
			panic(err)
		}
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
