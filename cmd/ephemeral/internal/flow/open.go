package flow

import (
	"context"
	"flag"
	"fmt"
	"io"
)

// Open parses the arguments of a command and loads the packages that match the patterns after the
// flags, or that of the working directory. It adds the flag -tests. It reports whether it could do so,
// and prints why not.
func Open(ctx context.Context, flags *flag.FlagSet, args []string, errOut io.Writer) (w *World, ok bool) {
	tests := flags.Bool("tests", false, "read tests and examples, too")
	if flags.Parse(args) != nil { // which has printed the error
		return nil, false
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	w, err := Load(ctx, "", *tests, patterns...)
	if err != nil {
		fmt.Fprintln(errOut, err)
	}
	return w, err == nil
}
