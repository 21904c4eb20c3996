// Command demo runs the file pipeline: thumbnails, metadata and duplicates of all images below a directory.
//
// Usage:
//
//	go run ./demo [flags]
//	go run ./demo scenario NAME | all | list
//	go run ./demo menu
//	go run ./demo help
//
// See package filepipeline for what it does and the -h flag for its limits. What links more than
// core and images is a program beside it: serve, durable and mesh; "demo serve" starts it with the
// go command. See the README.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/filepipeline"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
)

func main() { program.Main(run) }

// runPipeline is the default command.
func runPipeline(ctx context.Context, args []string, stdout, stderr *os.File) int {
	cfg, err := parse(ctx, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage())
		return program.OK
	}
	if err != nil {
		fmt.Fprintf(stderr, "demo: %v\nrun it with -h to see how it is used\n", err)
		return program.Unusable
	}
	program.ExitAfter(ctx, *cfg.drain, stderr)
	summary, err := process(ctx, cfg, stdout, stderr)
	if summary != nil {
		err = errors.Join(err, summary.Print(stdout))
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return program.Unusable
	case summary.Interrupted:
		return program.Interrupted
	case cfg.strict && summary.Failed > 0:
		return program.Failures
	default:
		return program.OK
	}
}

// process runs the pipeline. The summary is nil if it could not begin.
func process(ctx context.Context, cfg config, stdout io.Writer, stderr *os.File) (summary *filepipeline.Summary, err error) {
	in, err := filepipeline.OpenInput(cfg.in)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if cfg.out == "" {
		if cfg.out, err = os.MkdirTemp("", "ephemeral-demo-"); err != nil {
			return nil, err
		}
	}
	out, err := filepipeline.OpenOutput(ctx, cfg.out, cfg.in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	fmt.Fprintf(stdout, "reading %s\nwriting %s\n\n", filepipeline.Printable(cfg.in), filepipeline.Printable(cfg.out))

	cfg.options.Sink = signals.NewSink(signals.SinkOptions{})
	stop := showProgress(ctx, stderr, cfg.options.Sink, in)
	s, err := filepipeline.Run(ctx, in, out, cfg.options)
	stop()
	return &s, err
}
