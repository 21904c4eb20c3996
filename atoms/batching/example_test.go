package batching_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/batching"
	"github.com/ephemeralgo/ephemeral/core"
)

func Example() {
	insert := func(ctx context.Context, rows []string) error {
		fmt.Println("insert", rows)
		return nil
	}
	batcher, err := batching.New(insert, batching.Options[string]{
		MaxSize:  3,
		MaxDelay: time.Second,
		OnError:  func(rows []string, err error) { fmt.Println("not inserted:", rows, err) },
	})
	if err != nil {
		panic(err)
	}
	defer batcher.Close()

	ctx := context.Background()
	for _, row := range []string{"a", "b", "c", "d"} {
		if err := batcher.Enqueue(ctx, row); err != nil {
			panic(err)
		}
	}
	if err := batcher.Drain(ctx); err != nil { // flushes the rest
		panic(err)
	}
	fmt.Println(batcher.Stats().Succeeded, "rows in", batcher.Stats().Batches, "batches")
	// Output:
	// insert [a b c]
	// insert [d]
	// 4 rows in 2 batches
}

// Do waits until the item is flushed, and returns its error. A flush that knows which
// items are bad says so with ItemErrors.
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
	batcher, err := batching.New(publish, batching.Options[string]{MaxSize: 2})
	if err != nil {
		panic(err)
	}
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

// Many callers load one record each; the store is asked for many at once.
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
	users, err := batching.NewResultBatcher(load, batching.Options[int]{MaxSize: 100, MaxDelay: time.Millisecond})
	if err != nil {
		panic(err)
	}
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

// Bisecting finds the item that makes a batch fail, and flushes the rest.
func ExampleOptions_bisect() {
	insert := func(ctx context.Context, rows []string) error {
		if strings.Contains(strings.Join(rows, ""), "?") {
			return errors.New("syntax error")
		}
		fmt.Println("insert", rows)
		return nil
	}
	batcher, err := batching.New(insert, batching.Options[string]{
		MaxSize: 4,
		Bisect:  true,
		OnError: func(rows []string, err error) { fmt.Println("bad:", rows) },
	})
	if err != nil {
		panic(err)
	}
	for _, row := range []string{"a", "b", "c?", "d"} {
		if err := batcher.Enqueue(context.Background(), row); err != nil {
			panic(err)
		}
	}
	if err := batcher.Drain(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(batcher.Stats().Calls, "calls")
	// Output:
	// insert [a b]
	// insert [d]
	// bad: [c?]
	// 5 calls
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
	if err := batcher.Drain(ctx); err != nil {
		panic(err)
	}
	// Output:
	// Flushing 2 entries
}
