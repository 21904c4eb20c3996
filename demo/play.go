package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/demo/internal/program"
	"github.com/ephemeralgo/ephemeral/demo/menu"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// runScenario is the command "scenario".
func runScenario(ctx context.Context, args []string, stdout, stderr *os.File) int {
	fs, drain := program.NewFlags("scenario", stderr)
	if status, ok := program.Parse(fs, args); !ok {
		return status
	}
	program.ExitAfter(ctx, *drain, stderr)
	name := fs.Arg(0)
	list := slices.DeleteFunc(slices.Clone(scenarios), func(s scenario.Scenario) bool { return name != "all" && s.Name != name })
	switch {
	case fs.NArg() == 1 && name == "list":
		printList(stdout)
		return program.OK
	case fs.NArg() == 1 && len(list) > 0:
		return play(ctx, stdout, list)
	}
	fmt.Fprintf(stderr, "demo: unknown scenario %q: there are %s\n", strings.Join(fs.Args(), " "), strings.Join(append(names(), "all", "list"), ", "))
	return program.Unusable
}

func names() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.Name)
	}
	return names
}

// printList prints a line for each scenario.
func printList(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	defer t.Flush()
	for _, s := range scenarios {
		fmt.Fprintf(t, "%s\t%s\n", s.Name, s.Title)
	}
}

// play runs one scenario after the other, and then prints a table.
func play(ctx context.Context, w io.Writer, list []scenario.Scenario) (status int) {
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "SCENARIO\tSECONDS\t\n")
	begin := time.Now()
	for _, s := range list {
		fmt.Fprintf(w, "== %s: %s\n", s.Name, s.Title)
		start, result := time.Now(), ""
		if err := menu.Play(ctx, s, scenario.New(w)); err != nil {
			fmt.Fprintf(w, "failed: %v\n", err)
			if p, ok := errors.AsType[*core.PanicError](err); ok {
				fmt.Fprintf(w, "%s", p.Stack)
			}
			status, result = program.Failures, "failed"
		}
		fmt.Fprintf(t, "%s\t%.2f\t%s\n", s.Name, time.Since(start).Seconds(), result)
		fmt.Fprintln(w)
		if ctx.Err() != nil {
			fmt.Fprintln(w, "interrupted: the other scenarios are not run")
			status = program.Interrupted
			break
		}
	}
	fmt.Fprintf(t, "total\t%.2f\t\n", time.Since(begin).Seconds())
	t.Flush()
	fmt.Fprint(w, table.String())
	return status
}

// runMenu is the command "menu".
func runMenu(ctx context.Context, args []string, stdout, stderr *os.File) int {
	fs, drain := program.NewFlags("menu", stderr)
	if status, ok := program.Parse(fs, args); !ok {
		return status
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(stdout.Fd())) {
		printList(stdout)
		fmt.Fprint(stdout, "\nThe menu needs a terminal. Without one: demo scenario NAME, or demo scenario all.\n")
		return program.OK
	}
	switch err := menu.Run(ctx, scenarios, *drain); {
	case errors.Is(err, menu.ErrInterrupted):
		return program.Interrupted
	case err != nil:
		fmt.Fprintf(stderr, "demo: %v\n", err)
		return program.Failures
	}
	return program.OK
}
