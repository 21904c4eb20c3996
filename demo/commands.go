package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"os"
	"os/exec"
	"strings"
)

// A subcommand is a command that the first argument names.
type subcommand struct {
	name, args, does string
	run              func(ctx context.Context, args []string, stdout, stderr *os.File) int
}

func commands() []subcommand {
	return []subcommand{
		{"serve", "[-addr HOST:PORT] [-allow]", "runs it again and again beside other work, with a status page", beside("serve")},
		{"scenario", "NAME | all | list", "runs small programs that show one thing each", runScenario},
		{"menu", "", "shows the scenarios in a terminal, with their signals", runMenu},
		{"durable", "[-items N]", "kills processes that share a queue, and shows that nothing is lost", beside("durable")},
		{"mesh", "", "runs three processes whose signals are everywhere, and kills one", beside("mesh")},
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
	return program.Unusable
}

// beside starts a program that links more than this one. It needs the go command, and a checkout.
func beside(name string) func(ctx context.Context, args []string, stdout, stderr *os.File) int {
	return func(_ context.Context, args []string, stdout, stderr *os.File) int {
		// It gets Ctrl-C from the terminal, too, and drains by itself.
		cmd := exec.Command("go", append([]string{"run", "github.com/ephemeralgo/ephemeral/demo/" + name}, args...)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		if err != nil {
			fmt.Fprintf(stderr, "demo: in a checkout of the repository, run: go run ./demo/%s: %v\n", name, err)
			return program.Unusable
		}
		return program.OK
	}
}

func runHelp(_ context.Context, _ []string, stdout, _ *os.File) int {
	fmt.Fprint(stdout, usage())
	return program.OK
}
