package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// A subcommand is a command that the first argument names.
type subcommand struct {
	name, args, does string
	run              func(ctx context.Context, args []string, stdout, stderr *os.File) int
}

func commands() []subcommand {
	return []subcommand{
		{"serve", "[-addr HOST:PORT] [-allow]", "runs it again and again beside other work, with a status page", runServe},
		{"scenario", "NAME | all | list", "runs small programs that show one thing each", runScenario},
		{"menu", "", "shows the scenarios in a terminal, with their signals", runMenu},
		{"durable", "[-items N]", "kills processes that share a queue, and shows that nothing is lost", runDurable},
		{"mesh", "", "runs three processes whose signals are everywhere, and kills one", runMesh},
		{"help", "", "prints this text", runHelp},
	}
}

// run finds the command. The default is the file pipeline.
func run(ctx context.Context, args []string, stdout, stderr *os.File) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return runPipeline(ctx, args, stdout, stderr)
	}
	var names []string
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], stdout, stderr)
		}
		names = append(names, c.name)
	}
	fmt.Fprintf(stderr, "demo: unknown command %q: there are %s\n", args[0], strings.Join(names, ", "))
	return exitUnusable
}

func runHelp(_ context.Context, _ []string, stdout, _ *os.File) int {
	fmt.Fprint(stdout, usage())
	return exitOK
}

// newFlags returns the flags that every command has.
func newFlags(name string, stderr io.Writer) (fs *flag.FlagSet, drain *time.Duration) {
	fs = flag.NewFlagSet("demo "+name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	return fs, drainFlag(fs)
}

// parseFlags reports whether the command goes on. If not, it ends with that status.
func parseFlags(fs *flag.FlagSet, args []string) (status int, ok bool) {
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK, false
	case err != nil:
		return exitUnusable, false
	}
	return exitOK, true
}
