// Package vet is the command ephemeral vet.
package vet

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/check"
	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

const usage = `usage: ephemeral vet [-tests] [-all] [-json] [packages]

Reports names of signals, lanes and classes that cannot be right, and calls whose result must
not be dropped. Names are checked in functions main and examples, each of which is a program.

`

// Run runs the command and returns the exit status: 1 if there is a sure finding.
func Run(ctx context.Context, args []string, _ io.Reader, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("vet", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() { fmt.Fprint(errOut, usage); flags.PrintDefaults() }
	all := flags.Bool("all", false, "also list what may be right, such as names that are data")
	asJSON := flags.Bool("json", false, "print an array of all findings; only those with \"sure\" are faults")
	w, ok := flow.Open(ctx, flags, args, errOut)
	if !ok {
		return 2
	}
	findings, status := check.Sorted(append(check.Programs(w), check.Calls(w)...)), 0
	for _, f := range findings {
		if f.Sure {
			status = 1
		}
	}
	if *asJSON {
		if !flow.PrintJSON(findings, out, errOut) {
			return 2
		}
		return status
	}
	for _, f := range findings {
		if f.Sure {
			fmt.Fprintln(out, f)
		} else if *all {
			f.Message = "(not sure) " + f.Message
			fmt.Fprintln(out, f)
		}
	}
	return status
}
