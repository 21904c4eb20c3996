package mapping

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

const usage = `usage: ephemeral map [-json] [-signal PATTERN] [-package PATTERN] [-all] [-tests] [packages]

Draws which packages raise signals and which read them, as a Mermaid flowchart. A package of the
library is one node.

`

// Run runs the command and returns the exit status.
func Run(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("map", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() { fmt.Fprint(errOut, usage); flags.PrintDefaults() }
	var s Select
	flags.StringVar(&s.Signal, "signal", "", "only signals whose name matches this `pattern`")
	flags.StringVar(&s.Package, "package", "", "only signals that a package whose path matches this `pattern` raises or reads")
	flags.BoolVar(&s.All, "all", false, "also readers of all signals, such as Subscribe(\"*\")")
	asJSON := flags.Bool("json", false, "print the signals with their places, as JSON")
	w, ok := flow.Open(ctx, flags, args, errOut)
	if !ok {
		return 2
	}
	signals := Signals(w, s)
	if !*asJSON {
		fmt.Fprint(out, Mermaid(signals))
		return 0
	}
	if !flow.PrintJSON(signals, out, errOut) {
		return 2
	}
	return 0
}
