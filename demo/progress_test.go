package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
)

func TestShowLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		var b sharedBuffer
		check := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := b.take(); got != want {
				t.Errorf("printed %q, want %q", got, want)
			}
		}
		stop := showLines(&b, sink, time.Second)

		sink.Raise(filepipeline.SignalFileSaved)
		time.Sleep(time.Second - 1)
		check("")
		time.Sleep(time.Nanosecond)
		check("1 files, 0 failed\n")
		time.Sleep(5 * time.Second)
		check("")

		filepipeline.FileFailed.Raise(sink, "x", filepipeline.Failure{})
		filepipeline.FileSkipped.Raise(sink, "y", filepipeline.ReasonEmpty)
		filepipeline.ThumbnailFailed.Raise(sink, "z", filepipeline.Failure{})
		time.Sleep(time.Second)
		check("3 files, 2 failed\n")

		sink.Raise(filepipeline.SignalFileSaved)
		stop()
		check("4 files, 2 failed\n")
		sink.Raise(filepipeline.SignalFileSaved)
		time.Sleep(time.Minute)
		check("")
	})
}

// sharedBuffer is written by one goroutine and emptied by another.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sharedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sharedBuffer) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

func TestShowBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		var b sharedBuffer
		see := func(wants ...string) {
			t.Helper()
			drawn := b.take()
			for _, want := range wants {
				if !strings.Contains(drawn, want) {
					t.Errorf("drew %q, want %q", drawn, want)
				}
			}
		}
		stop := showBar(&b, sink, 2)
		sink.Raise(filepipeline.SignalFileSaved)
		time.Sleep(time.Second)
		see("files", "50 %", "1/2", "1/s")
		filepipeline.FileFailed.Raise(sink, "x", filepipeline.Failure{})
		filepipeline.FileSkipped.Raise(sink, "appeared since the count", filepipeline.ReasonEmpty)
		stop()
		see("100 %", "2/2", "\n")
	})
}

// A run may end before all files are counted, and there may be none.
func TestShowBarEndsEarly(t *testing.T) {
	for _, total := range []int64{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			var b sharedBuffer
			showBar(&b, signals.NewSink(signals.SinkOptions{}), total)()
			if drawn := b.take(); !strings.Contains(drawn, fmt.Sprintf("0/%d", total)) || !strings.HasSuffix(drawn, "\n") {
				t.Errorf("of %d: drew %q", total, drawn)
			}
		})
	}
}
