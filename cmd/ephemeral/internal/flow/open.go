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

// Command is a command that reads packages. Its flags are those of the command, -tests and -json.
type Command struct {
	flag.FlagSet
	tests, json *bool
	out         io.Writer
}

// NewCommand returns a command that prints to out, and what is wrong to errOut.
func NewCommand(name, usage, json string, out, errOut io.Writer) *Command {
	c := &Command{out: out}
	c.Init(name, flag.ContinueOnError)
	c.SetOutput(errOut)
	c.Usage = func() { fmt.Fprint(errOut, usage); c.PrintDefaults() }
	c.tests = c.Bool("tests", false, "read tests and examples, too")
	c.json = c.Bool("json", false, json)
	return c
}

// Open parses the arguments and loads the packages that match the patterns after the flags, or that
// of the working directory. It reports whether it could do so, and prints why not.
func (c *Command) Open(ctx context.Context, args []string) (w *World, ok bool) {
	if c.Parse(args) != nil { // which has printed the error
		return nil, false
	}
	patterns := c.Args()
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	w, err := Load(ctx, "", *c.tests, patterns...)
	if err != nil {
		fmt.Fprintln(c.Output(), err)
	}
	return w, err == nil
}

// Print prints a list: with -json for other programs, or else as a text. It returns the exit status,
// which is 2 if it could not, and prints why not.
func Print[E any](c *Command, list []E, text func([]E) string, status int) int {
	var err error
	if *c.json {
		enc := json.NewEncoder(c.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(append([]E{}, list...))
	} else {
		_, err = io.WriteString(c.out, text(list))
	}
	if err != nil {
		fmt.Fprintln(c.Output(), err)
		return 2
	}
	return status
}

// At is a place for people: below the working directory, the file is as seen from there.
func (w *World) At(pos token.Pos) token.Position {
	at := w.Fset.Position(pos)
	if name, err := filepath.Rel(w.dir, at.Filename); err == nil && filepath.IsLocal(name) {
		at.Filename = filepath.ToSlash(name)
	}
	return at
}
