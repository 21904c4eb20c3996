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

	"github.com/schollz/progressbar/v3"
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
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("files"),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(65*time.Millisecond),
	)
	cancel := sink.Subscribe(accounted, func(signals.Signal) { bar.Add(1) })
	return func() {
		cancel()
		bar.Exit()
		fmt.Fprintln(w)
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
