package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
)

// accounted matches these signals: every file raises exactly one of them.
const accounted = "file.*"

// showProgress shows the progress of the run on w: a bar on a terminal, otherwise a line every few seconds. It reads
// only signals. The returned function ends the display.
func showProgress(ctx context.Context, w *os.File, sink *signals.Sink, in fs.FS) (stop func()) {
	if term.IsTerminal(int(w.Fd())) {
		return showBar(w, sink, filepipeline.Count(ctx, in))
	}
	return showLines(w, sink, 2*time.Second)
}

// showBar needs the total. To count, it walks the tree before the run; this opens no file.
func showBar(w io.Writer, sink *signals.Sink, total int64) (stop func()) {
	display := mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithRefreshRate(65*time.Millisecond))
	bar := display.AddBar(total,
		mpb.PrependDecorators(decor.Name("files "), decor.Percentage()),
		mpb.AppendDecorators(
			decor.CountersNoUnit("%d/%d "), decor.AverageSpeed(0, "%.0f/s "),
			decor.Elapsed(decor.ET_STYLE_GO), decor.Name(", left "), decor.AverageETA(decor.ET_STYLE_GO),
		),
	)
	var seen atomic.Int64 // may exceed total: files appear after the count
	cancel := sink.Subscribe(accounted, func(signals.Signal) {
		if seen.Add(1) <= total {
			bar.Increment()
		}
	})
	return func() {
		cancel()
		bar.Abort(false)
		display.Wait()
	}
}

// showLines prints a line in each interval and one at the end, if there is news.
func showLines(w io.Writer, sink *signals.Sink, interval time.Duration) (stop func()) {
	var done, failed atomic.Int64
	cancels := []func(){
		sink.Subscribe(accounted, func(signals.Signal) { done.Add(1) }),
		sink.Subscribe("*.failed", func(signals.Signal) { failed.Add(1) }),
	}
	var shown int64
	show := func() {
		if n := done.Load(); n != shown {
			shown = n
			fmt.Fprintf(w, "%d files, %d failed\n", n, failed.Load())
		}
	}
	quit := make(chan struct{})
	var printer sync.WaitGroup
	printer.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				show()
				return
			case <-ticker.C:
				show()
			}
		}
	})
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
		close(quit)
		printer.Wait()
	}
}
