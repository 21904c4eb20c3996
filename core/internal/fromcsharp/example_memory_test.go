package fromcsharp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
	"github.com/ephemeralgo/ephemeral/core/responsibility"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Echoes have the signals of operations that have left the window.
func Example_echoes() {
	ctx := context.Background()
	coordinator := core.Must(core.NewCoordinator(archive, core.Options{
		MaxTracked:   -1, // nothing stays
		EchoCapacity: 256,
		EchoAge:      time.Minute,
	}))
	defer coordinator.Close()
	if err := coordinator.Do(ctx, "broken.txt"); err != nil {
		fmt.Println(err)
	}

	for echo := range coordinator.Echoes(signals.Query{Pattern: "error.*", Within: time.Minute}) {
		fmt.Println(echo.Key, echo.Status, echo.Signals[0].Name)
	}
	// Output:
	// it cannot be read
	// broken.txt failed error.unreadable
}

// A function is called for each operation that leaves.
func Example_finalized() {
	ctx := context.Background()
	coordinator := core.Must(core.NewCoordinator(archive, core.Options{}))

	coordinator.OnFinalized(func(s core.Snapshot) {
		fmt.Println("finalizing", s.Key, "with", len(s.Signals), "signals")
	})

	if err := coordinator.Do(ctx, "a.txt"); err != nil {
		panic(err)
	}
	coordinator.Close() // all operations leave the window
	// Output: finalizing a.txt with 1 signals
}

// A note of every operation that has left.
func Example_lastWords() {
	ctx := context.Background()
	coordinator := core.Must(core.NewCoordinator(archive, core.Options{}))

	notes := core.Must(lastwords.NewRelay(coordinator, func(s core.Snapshot) (lastwords.Note, bool) {
		note := lastwords.NoteOf(s)
		note.Metadata = map[string]string{"reason": "evicted"}
		if s.Pins > 0 {
			note.Metadata["reason"] = "responsibility"
		}
		return note, true
	}, store, core.Options{}))
	defer notes.Close()

	core.Must(coordinator.Enqueue(ctx, "a.txt"))
	err := coordinator.Drain(ctx)
	coordinator.Close() // the rest of the window leaves
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	fmt.Println(errors.Join(err, notes.Drain(deadline))) // Close would drop the notes that wait
	// Output:
	// a.txt succeeded archived map[reason:evicted]
	// <nil>
}

// An operation stays in the window until its data was read.
func Example_responsibility() {
	ctx := context.Background()
	sink := signals.NewSink(signals.SinkOptions{})
	uploads := core.Must(core.NewCoordinator(archive, core.Options{Sink: sink}))
	defer uploads.Close()

	keeper := core.Must(responsibility.New(uploads, sink, responsibility.Options{MaxPin: 5 * time.Minute}))
	defer keeper.Close()

	id := core.Must(uploads.Enqueue(ctx, "a.txt"))
	kept := keeper.Keep(id, responsibility.Promise{ // pins, then raises file.ready
		Announce:    "file.ready",
		Key:         "a.txt",
		Description: "awaiting read of a.txt",
	})
	fmt.Println(kept, keeper.Len())

	// downstream: seen
	sink.RaiseKey("file.ready.ack", "a.txt")
	fmt.Println(keeper.Len())
	// Output:
	// true 1
	// 0
}

// Code can pin an operation directly.
func Example_pin() {
	ctx := context.Background()
	coordinator := core.Must(core.NewCoordinator(archive, core.Options{MaxTracked: 1}))
	defer coordinator.Close()

	id := core.Must(coordinator.Enqueue(ctx, "a.txt"))
	unpin, ok := coordinator.Pin(id)
	if !ok {
		panic("it has left already")
	}
	for range 10 {
		if err := coordinator.Do(ctx, "b.txt"); err != nil {
			panic(err)
		}
	}
	if err := coordinator.Flush(ctx); err != nil {
		panic(err)
	}
	operation, ok := coordinator.Lookup(id)
	fmt.Println(operation.Key, ok)
	unpin()
	// Output: a.txt true
}

// TryKill: cancel the operation if it runs, and remove it from the window.
func Example_kill() {
	ctx := context.Background()
	started := make(chan struct{})
	coordinator := core.Must(core.NewCoordinator(func(ctx context.Context, _ string) error {
		close(started)
		<-ctx.Done()
		return context.Cause(ctx)
	}, core.Options{}))
	defer coordinator.Close()

	id := core.Must(coordinator.Enqueue(ctx, "endless"))
	<-started
	coordinator.Cancel(id, errors.New("no longer wanted"))
	fmt.Println(coordinator.Wait(ctx, id))
	fmt.Println(coordinator.Evict(id), coordinator.Stats().Cancelled)
	// Output:
	// no longer wanted
	// true 1
}

// These functions stand for your code.

func archive(ctx context.Context, name string) error {
	op := core.OperationFrom(ctx)
	op.SetKey(name)
	if name == "broken.txt" {
		op.Raise("error.unreadable")
		return errors.New("it cannot be read")
	}
	op.Raise("archived")
	return nil
}

func store(_ context.Context, n lastwords.Note) error {
	fmt.Println(n.Key, n.Status, n.Signal, n.Metadata)
	return nil
}
