package signalcoordinatedreads_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/signalcoordinatedreads"
)

func second(context.Context, int) error { time.Sleep(time.Second); return nil }

func newReads(t *testing.T, sink *signals.Sink, wait bool) *signalcoordinatedreads.Reads[int] {
	_, err := signalcoordinatedreads.New(second, signalcoordinatedreads.Updates{}, core.Options{ResumeOn: "update.done"})
	require.ErrorContains(t, err, `signalcoordinatedreads: Options.ResumeOn is "update.done"`)
	return core.Must(signalcoordinatedreads.New(second, signalcoordinatedreads.Updates{WaitForReaders: wait}, core.Options{Sink: sink}))
}

// The end of one update does not start readers while another runs. The end of the last one
// starts them at once. Neither MaxDefer nor many other signals start them earlier.
func TestReadersWaitForTheLastUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{Capacity: 1})
		coretest.NothingLeft(t, sink, func() {
			reads, start := newReads(t, sink, false), time.Now()
			for _, d := range []time.Duration{10 * time.Second, 20 * time.Second} {
				go reads.Update(t.Context(), func(context.Context) error { time.Sleep(d); return nil })
			}
			time.AfterFunc(30*time.Second, sink.Hold(signalcoordinatedreads.SignalInProgress, "other code", 0))
			synctest.Wait()
			require.NoError(t, reads.Do(t.Context(), 1))
			assert.Equal(t, 31*time.Second, time.Since(start))
			require.NoError(t, reads.Drain(t.Context()))
		})
	})
}

// With WaitForReaders, an update waits for readers. However it ends, readers go on, and
// "update.done" has the error.
func TestAnUpdateThatWaitsForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := newReads(t, nil, true)
		core.Must(reads.Enqueue(t.Context(), 1))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, reads.Update(ctx, nil), context.DeadlineExceeded)
		assert.PanicsWithValue(t, "after 1 read", func() {
			reads.Update(t.Context(), func(context.Context) error { panic(fmt.Sprintf("after %d read", reads.Stats().Succeeded)) })
		})
		var said []string
		require.NoError(t, reads.Update(t.Context(), func(context.Context) error { return nil }))
		for _, ended := range signalcoordinatedreads.Done.Sense(reads.Sink(), signals.Query{}) {
			said = append(said, fmt.Sprint(ended.Err))
		}
		assert.Equal(t, []string{"context deadline exceeded", "signalcoordinatedreads: the update has panicked", "<nil>"}, said)
		require.NoError(t, reads.Do(t.Context(), 2))
	})
}
