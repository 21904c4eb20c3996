package signalcoordinatedreads_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads"
)

// Ten reads are enqueued during an update. They run after it.
func Example() {
	ctx := context.Background()
	read := func(context.Context, int) error { time.Sleep(5 * time.Millisecond); return nil }
	reads := core.Must(signalcoordinatedreads.New(read, signalcoordinatedreads.Updates{WaitForReaders: true}, core.Options{MaxConcurrency: 4}))
	err := reads.Update(ctx, func(context.Context) error {
		for i := range 10 {
			core.Must(reads.Enqueue(ctx, i))
		}
		time.Sleep(50 * time.Millisecond)
		fmt.Println("during the update:", reads.Stats().Succeeded, "reads")
		return nil
	})
	if err != nil {
		panic(err)
	}
	if err := reads.Drain(ctx); err != nil {
		panic(err)
	}
	fmt.Println("after it:", reads.Stats().Succeeded, "reads")
	for s := range reads.Sink().Sense(signals.Query{}) {
		fmt.Println(s.Name)
	}
	var last signalcoordinatedreads.Ended
	for _, last = range signalcoordinatedreads.Done.Sense(reads.Sink(), signals.Query{}) {
	}
	fmt.Println("its error:", last.Err)
	// Output:
	// during the update: 0 reads
	// after it: 10 reads
	// read.waiting
	// update.done
	// its error: <nil>
}
