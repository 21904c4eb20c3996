package mapping

import (
	"context"
	"io"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

const usage = `usage: ephemeral map [-json] [-signal PATTERN] [-package PATTERN] [-all] [-tests] [packages]

Draws which packages raise signals and which read them, as a Mermaid flowchart. A package of the
library is one node.

`

// Run runs the command and returns the exit status.
func Run(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	c := flow.NewCommand("map", usage, "print the signals with their places, as JSON", out, errOut)
	var s Select
	c.StringVar(&s.Signal, "signal", "", "only signals whose name matches this `pattern`")
	c.StringVar(&s.Package, "package", "", "only signals that a package whose path matches this `pattern` raises or reads")
	c.BoolVar(&s.All, "all", false, "also readers of all signals, such as Subscribe(\"*\")")
	w, ok := c.Open(ctx, args)
	if !ok {
		return 2
	}
	return flow.Print(c, Signals(w, s), Mermaid, 0)
}
