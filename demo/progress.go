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

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
)

// accounted matches the signals of which every file raises exactly one.
const accounted = "file.*"

// showProgress shows on w how far the run behind sink is: a bar on a terminal, a line every few seconds elsewhere. The
// pipeline knows nothing of it. The result ends the display.
func showProgress(ctx context.Context, w *os.File, sink *core.Sink, in fs.FS) (stop func()) {
	if term.IsTerminal(int(w.Fd())) {
		return showBar(w, sink, filepipeline.Count(ctx, in))
	}
	return showLines(w, sink, 2*time.Second)
}

// showBar needs the total; counting takes one walk ahead of the run, in which no file is opened.
func showBar(w io.Writer, sink *core.Sink, total int64) (stop func()) {
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("files"),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionFullWidth(),
		progressbar.OptionThrottle(65*time.Millisecond),
	)
	cancel := sink.Subscribe(accounted, func(core.Signal) { bar.Add(1) })
	return func() {
		cancel()
		bar.Exit()
		fmt.Fprintln(w)
	}
}

// showLines prints a line per interval and one at the end, if there is news.
func showLines(w io.Writer, sink *core.Sink, interval time.Duration) (stop func()) {
	var done, failed atomic.Int64
	cancels := []func(){
		sink.Subscribe(accounted, func(core.Signal) { done.Add(1) }),
		sink.Subscribe("*.failed", func(core.Signal) { failed.Add(1) }),
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
