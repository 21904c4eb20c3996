// Command ephemeral checks the names of signals in a program, shows its status page in a terminal, and tries other
// limits on its recorded traffic.
//
//	go install github.com/ephemeralgo/ephemeral/cmd/ephemeral@latest
//
// It is also a tool for go vet: go vet -vettool=$(which ephemeral) ./...
//
// Each command prints its own usage with -h. The exit status is 0 if all is well, 1 if the
// command found a fault, and 2 if it could not do its work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/analyzer"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/mapping"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/top"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/vet"
)

// command is a word after "ephemeral", with the function that runs it on the arguments
// after the word and returns the exit status.
type command struct {
	name, does string
	run        func(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int
}

// commands lists all commands.
var commands = []command{
	{"vet", "reports names of signals, lanes and classes that cannot be right", vet.Run},
	{"map", "draws which package raises and which package reads which signals", mapping.Run},
	{"whatif", "shows what other limits would have done to recorded traffic", whatif},
	{"top", "shows the status page of a program in the terminal", top.Run},
}

func main() {
	if len(os.Args) > 1 && (strings.HasPrefix(os.Args[1], "-V") || os.Args[1] == "-flags" || strings.HasSuffix(os.Args[len(os.Args)-1], ".cfg")) {
		unitchecker.Main(analyzer.Analyzer) // go vet -vettool runs it; it does not return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// whatif runs the command of core. It is not part of this program: it decides as the core does that the user's module
// requires, in whose directory it runs.
func whatif(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	c := exec.CommandContext(ctx, "go", append([]string{"run", "github.com/ephemeralgo/ephemeral/core/whatif/main"}, args...)...)
	c.Stdin, c.Stdout, c.Stderr = in, out, errOut
	if err := c.Run(); err != nil {
		if c.ProcessState == nil {
			fmt.Fprintln(errOut, "ephemeral whatif:", err)
		}
		return 2
	}
	return 0
}

// run runs the command that the first argument names, and returns the exit status.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) > 0 {
		if i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] }); i >= 0 {
			return commands[i].run(ctx, args[1:], in, out, errOut)
		}
	}
	fmt.Fprintln(errOut, "usage: ephemeral COMMAND [flags] [arguments]")
	for _, c := range commands {
		fmt.Fprintf(errOut, "  %-6s %s\n", c.name, c.does)
	}
	return 2
}
