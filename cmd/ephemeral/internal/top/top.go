// Package top is the command "ephemeral top": the status page of a program in a terminal.
//
// It reads the JSON of the page, once a second, and sends actions to it. All text of the page
// is shown without control characters.
package top

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
)

const usage = `usage: ephemeral top [-once] URL

Shows the status page at URL in the terminal, such as http://localhost:8080/. If the page
needs a token, EPHEMERAL_TOKEN has it.

With -once, it prints lines for scripts, and ends. Tabs separate the columns. The first column
is the kind of the line, such as coordinator, operation or queue. A line that begins with # has
the names of the columns: they are fields of the page's JSON. An empty column is "-". Of each
coordinator, it prints the oldest 200 operations that have not ended; of each sink, held
signals and the newest 200 others; of each queue, 200 items that are halted or dead.
`

// Run runs the command with its arguments until the user leaves it or ctx ends. It returns
// the exit status: 0, or 2 if there is nothing to show. If the page stops answering later, the
// screen says so, and Run goes on asking.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("top", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() { fmt.Fprint(errOut, usage) }
	once := flags.Bool("once", false, "print once, for scripts")
	err := flags.Parse(args)
	address := flags.Arg(0)
	if err == nil && flags.NArg() > 0 {
		err = flags.Parse(flags.Args()[1:]) // flags after the address
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil && (address == "" || flags.NArg() > 0):
		flags.Usage()
		fallthrough
	case err != nil:
		return 2
	}
	c, err := newClient(address, os.Getenv("EPHEMERAL_TOKEN"))
	if err == nil && *once {
		err = printOnce(ctx, c, out)
	} else if err == nil {
		err = show(ctx, c, in, out)
	}
	if err != nil {
		fmt.Fprintf(errOut, "ephemeral top: %s\n", clean(err.Error()))
		return 2
	}
	return 0
}

// printOnce prints the overview, and the views that it opens. It returns the errors of those
// that cannot be read.
func printOnce(ctx context.Context, c *client, out io.Writer) error {
	rows := map[string][]row{} // by kind
	var errs []error
	views := []view{overview}
	for i := 0; i < len(views); i++ {
		frame, now, err := c.get(ctx, views[i])
		if err != nil && i == 0 {
			return err
		}
		errs = append(errs, err)
		for _, r := range frame.rows(views[i], clock{now, true}) {
			rows[r.kind.name] = append(rows[r.kind.name], r)
			if r.opens.name != "" && r.opens.name != "operation" {
				views = append(views, r.opens)
			}
		}
	}
	w := bufio.NewWriter(out)
	for _, name := range []string{"overview", "operations", "signals", "items"} {
		for _, k := range kinds[name] {
			fmt.Fprintf(w, "#%s\t%s\n", k.name, strings.Join(strings.Fields(k.columns), "\t"))
			for _, r := range rows[k.name] {
				fmt.Fprintf(w, "%s\t%s\n", k.name, strings.Join(r.cells, "\t"))
			}
		}
	}
	return errors.Join(append(errs, w.Flush())...)
}

// show shows the page until the user leaves it. A page that cannot be read at the start is an
// error.
func show(ctx context.Context, c *client, in io.Reader, out io.Writer) error {
	if !isTerminal(in) || !isTerminal(out) {
		return errors.New("input or output is no terminal: use -once")
	}
	m := newModel(ctx, c)
	if m.Update(m.ask()()); m.err != nil {
		return m.err
	}
	_, err := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out)).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

func isTerminal(stream any) bool {
	file, ok := stream.(term.File)
	return ok && term.IsTerminal(file.Fd())
}
