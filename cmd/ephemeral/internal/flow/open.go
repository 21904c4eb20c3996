package flow

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/token"
	"io"
	"path/filepath"
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

// PrintJSON prints a list for other programs. It reports whether it could do so, and prints why not.
func PrintJSON[E any](list []E, out, errOut io.Writer) (ok bool) {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	err := enc.Encode(append([]E{}, list...))
	if err != nil {
		fmt.Fprintln(errOut, err)
	}
	return err == nil
}

// At is a place for people: below the working directory, the file is as seen from there.
func (w *World) At(pos token.Pos) token.Position {
	at := w.Fset.Position(pos)
	if name, err := filepath.Rel(w.dir, at.Filename); err == nil && filepath.IsLocal(name) {
		at.Filename = filepath.ToSlash(name)
	}
	return at
}
