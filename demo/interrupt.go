package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var errInterrupted = errors.New("interrupted")

// interruptible returns a context that ends with the first Ctrl-C or SIGTERM. Then commands
// accept no more work, and finish running work. The second Ctrl-C ends the process.
func interruptible() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx
}

// drainFlag sets how long running work may take after the first Ctrl-C.
func drainFlag(fs *flag.FlagSet) *time.Duration {
	return fs.Duration("drain", 10*time.Second, "after Ctrl-C, wait for `DURATION` at most until what has begun is finished")
}

// exitAfter ends the process if it has not ended by the time d after the first Ctrl-C.
func exitAfter(ctx context.Context, d time.Duration, stderr io.Writer) {
	context.AfterFunc(ctx, func() {
		time.AfterFunc(d, func() {
			fmt.Fprintf(stderr, "demo: not drained within %v\n", d)
			os.Exit(exitInterrupted)
		})
	})
}
