// Package vet is the command ephemeral vet.
package vet

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/check"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

const usage = `usage: ephemeral vet [-tests] [-all] [-json] [packages]

Reports names of signals, lanes and classes that cannot be right, and calls whose result must
not be dropped. Names are checked in functions main and examples, each of which is a program.

`

// Run runs the command and returns the exit status: 1 if there is a sure finding.
func Run(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	c := flow.NewCommand("vet", usage, "print an array of all findings; only those with \"sure\" are faults", out, errOut)
	all := c.Bool("all", false, "also list what may be right, such as names that are data")
	w, ok := c.Open(ctx, args)
	if !ok {
		return 2
	}
	findings, status := check.Sorted(append(check.Programs(w), check.Calls(w)...)), 0
	var text strings.Builder
	for _, f := range findings {
		if f.Sure {
			status = 1
			fmt.Fprintln(&text, f)
		} else if *all {
			f.Message = "(not sure) " + f.Message
			fmt.Fprintln(&text, f)
		}
	}
	return flow.Print(c, findings, func([]check.Finding) string { return text.String() }, status)
}
