package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
)

// The load shows what the page is for: gates that close, failures, dead items and waiting
// orders. The load does not grow with time, and accepted work is finished at the end.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		closed, begun := map[string]int{}, map[string]int{}
		ctx, stop := context.WithCancelCause(t.Context())
		l, err := newLoad(sink)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); l.run(ctx) }()

		minutes := 10
		if os.Getenv("EPHEMERAL_LONG") != "" {
			minutes = 40
		}
		var heap [2]uint64
		for minute := range minutes {
			for range 60 {
				time.Sleep(time.Second)
				for _, g := range l.orders.Gates() {
					if g.Closed {
						closed[g.Pattern]++
					}
				}
				s := l.orders.Stats()
				if begun["most"] = max(begun["most"], s.Pending); s.Pending > 3*40+8 {
					t.Fatalf("%d orders wait", s.Pending)
				}
			}
			if minute == 6 {
				heap[0] = liveHeap()
			}
		}
		heap[1] = liveHeap()
		if closed["maintenance.begun"] < 2*minutes || closed["inventory.begun"] < 5*minutes || begun["most"] < 40 {
			t.Errorf("gates were closed for seconds: %v; at most %d orders waited", closed, begun["most"])
		}
		if heap[1] > heap[0]+1<<20 {
			t.Errorf("memory grew from %d to %d bytes in %d minutes", heap[0], heap[1], minutes-7)
		}
		if s, err := l.mails.Stats(ctx); err != nil || s.Dead < 3 || s.Dead > 30 || s.Items > 500 {
			t.Errorf("mails: %v, %v", s, err)
		}

		stop(program.ErrInterrupted)
		<-ended
		if err := core.InOrder(l.plan, l.orders).Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.stop(t.Context()); err != nil {
			t.Error(err)
		}
		if s := l.orders.Stats(); s.Enqueued != s.Succeeded+s.Failed || s.Failed == 0 {
			t.Errorf("orders: %v", s)
		}
		l.mails.Close()
	})
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Each round finds everything in the album, and replaces the results of the previous round.
// Operations and signals of rounds go after five minutes.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink, dir := signals.NewSink(signals.SinkOptions{}), t.TempDir()
		images, err := fs.Sub(album().(slowFS).FS, "day-0")
		if err != nil {
			t.Fatal(err)
		}
		rounds := 6
		if os.Getenv("EPHEMERAL_LONG") != "" {
			rounds = 12
		}
		heap := make([]uint64, rounds)
		for i := range heap {
			time.Sleep(3 * time.Minute)
			if err := round(t.Context(), images, dir, filepipeline.Options{Sink: sink}); err != nil {
				t.Fatal(err)
			}
			heap[i] = liveHeap()
		}
		coretest.Check(t, heap[rounds-1] <= heap[3]+1<<20, "memory grows: %d", heap)
		for name, n := range map[string]int{"file.saved": 18, "file.skipped": 2, "thumbnail.failed": 2, "duplicate.found": 6} {
			if got := sink.Count(name); got != 2*n { // signals of the last five minutes
				t.Errorf("%d times %s in two rounds of %d", got, name, n)
			}
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "thumbs", "*")); len(files) > 18-6 {
			t.Errorf("%d thumbnails", len(files))
		}
	})
}
