// Package program has what the programs of the demo share: exit statuses, flags and Ctrl-C.
package program

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

// Exit statuses.
const (
	OK          = 0
	Failures    = 1   // something failed
	Unusable    = 2   // bad usage, or something that cannot be used
	Interrupted = 130 // running work is finished
)

// ErrInterrupted is the cause with which the context ends at the first Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// Main runs a program and ends the process with its status. The context ends with the first Ctrl-C or
// SIGTERM: then programs accept no more work, and finish running work. The second Ctrl-C ends the process.
func Main(run func(ctx context.Context, args []string, stdout, stderr *os.File) (status int)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(ErrInterrupted)
		<-signals
		os.Exit(Interrupted)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// NewFlags returns the flags that every program has.
func NewFlags(name string, stderr io.Writer) (fs *flag.FlagSet, drain *time.Duration) {
	fs = flag.NewFlagSet("demo "+name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	return fs, DrainFlag(fs)
}

// DrainFlag sets how long running work may take after the first Ctrl-C.
func DrainFlag(fs *flag.FlagSet) *time.Duration {
	return fs.Duration("drain", 10*time.Second, "after Ctrl-C, wait for `DURATION` at most until what has begun is finished")
}

// Parse reports whether the program goes on. If not, it ends with that status.
func Parse(fs *flag.FlagSet, args []string) (status int, ok bool) {
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return OK, false
	case err != nil:
		return Unusable, false
	}
	return OK, true
}

// ExitAfter ends the process if it has not ended by the time d after the first Ctrl-C.
func ExitAfter(ctx context.Context, d time.Duration, stderr io.Writer) {
	context.AfterFunc(ctx, func() {
		time.AfterFunc(d, func() {
			fmt.Fprintf(stderr, "demo: not drained within %v\n", d)
			os.Exit(Interrupted)
		})
	})
}
