package batching_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example() {
	insert := func(ctx context.Context, rows []string) error {
		fmt.Println("insert", rows) // insert [a b c], then insert [d]
		return nil
	}
	batcher := core.Must(batching.New(insert, batching.Options[string]{
		MaxSize:  3,
		MaxDelay: time.Second,
		OnError:  func(rows []string, err error) { fmt.Println("not inserted:", rows, err) },
	}))
	defer batcher.Close()

	ctx := context.Background()
	for _, row := range []string{"a", "b", "c", "d"} {
		if err := batcher.Enqueue(ctx, row); err != nil {
			panic(err)
		}
	}
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := batcher.Drain(deadline); err != nil { // flushes the rest, which Close would drop
		panic(err)
	}
	fmt.Println(batcher.Counters().Succeeded, "rows in", batcher.Counters().Batches, "batches") // 4 rows in 2 batches
	// Output:
	// insert [a b c]
	// insert [d]
	// 4 rows in 2 batches
}

// Do waits until the item is flushed, and returns its error. A flush that knows which
// items are bad returns ItemErrors.
func ExampleBatcher_Do() {
	errEmpty := errors.New("empty message")
	publish := func(ctx context.Context, messages []string) error {
		errs := make(batching.ItemErrors, len(messages))
		for i, m := range messages {
			if m == "" {
				errs[i] = errEmpty
			}
		}
		return errs
	}
	batcher := core.Must(batching.New(publish, batching.Options[string]{MaxSize: 2}))
	defer batcher.Close()

	messages := []string{"hello", ""}
	errs := make([]error, len(messages))
	var all sync.WaitGroup
	for i, m := range messages {
		all.Go(func() { errs[i] = batcher.Do(context.Background(), m) })
	}
	all.Wait()
	fmt.Println(errs[0])
	fmt.Println(errs[1])
	// Output:
	// <nil>
	// empty message
}

// Many callers load one record each. The store is asked for many records at once.
func ExampleResultBatcher() {
	queries := 0
	load := func(ctx context.Context, ids []int) ([]string, error) {
		queries++
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = fmt.Sprint("user ", id)
		}
		return names, nil
	}
	users := core.Must(batching.NewResultBatcher(load, batching.Options[int]{MaxSize: 100, MaxDelay: time.Millisecond}))
	defer users.Close()

	names := make([]string, 100)
	var all sync.WaitGroup
	for id := range names {
		all.Go(func() { names[id], _ = users.Do(context.Background(), id) })
	}
	all.Wait()
	fmt.Println(names[0], names[99], queries < 100)
	// Output:
	// user 0 user 99 true
}

// Log entries are written a hundred at a time, or after five seconds.
func Example_logEntries() {
	type LogEntry struct{ Text string }
	ctx := context.Background()
	flush := func(ctx context.Context, batch []LogEntry) error {
		fmt.Println("Flushing", len(batch), "entries")
		return nil // write them to the database
	}
	batcher := core.Must(batching.New(flush, batching.Options[LogEntry]{
		MaxSize:  100,
		MaxDelay: 5 * time.Second, // flush after 5s even if not full
	}))
	defer batcher.Close()

	for _, text := range []string{"User logged in", "Request received"} {
		if err := batcher.Enqueue(ctx, LogEntry{text}); err != nil { // batched automatically
			panic(err)
		}
	}
	// ... a batch is flushed when it is full OR after 5 seconds
	deadline, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := batcher.Drain(deadline); err != nil {
		panic(err)
	}
	// Output:
	// Flushing 2 entries
}

// The signals about a batch carry a Batch. It says why the batch was flushed.
func ExampleBatch() {
	insert := func(ctx context.Context, rows []string) error { return nil }
	batcher := core.Must(batching.New(insert, batching.Options[string]{MaxSize: 2}))
	defer batcher.Close()
	flushes := map[string]int{}
	batching.Batches.Named(batching.SignalFlushed).Subscribe(batcher.Sink(), func(_ signals.Signal, b batching.Batch) {
		fmt.Println(b.Items, "rows in", b.Calls, "call, because of", b.Reason)
		flushes[b.Reason]++
	})

	ctx := context.Background()
	for _, row := range []string{"a", "b", "c"} {
		if err := batcher.Enqueue(ctx, row); err != nil {
			panic(err)
		}
	}
	if err := batcher.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println("full batches:", flushes["size"])
	// Output:
	// 2 rows in 1 call, because of size
	// 1 rows in 1 call, because of flush
	// full batches: 1
}
