// Command original measures what the original, the C# library as a program, measures: rows
// with the same names and the same numbers of operations.
//
// Usage:
//
//	go run ./bench/original [flags] [filter | =name]
//
// A line is go|row|ns (minimum)|ns (median)|bytes, per operation. With -beside, the program
// runs the original and itself in turns, and prints a table. See README.md of bench.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/bench"
)

func main() { bench.Main("original", run) }

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("original", flag.ContinueOnError)
	flags.SetOutput(stderr)
	list := flags.Bool("list", false, "print the rows and their numbers of operations, and measure nothing")
	beside := flags.String("beside", "", "a command that prints lines of this format, such as the original: run both in turns, and print a table")
	rounds := flags.Int("rounds", 3, "how often -beside runs each row of each program")
	doc := flags.String("doc", "", "write the table of -beside into this Markdown file; rows that are not measured keep their lines")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rows := selected(bench.Originals(), flags.Arg(0))
	switch {
	case flags.NArg() > 1:
		return errors.New("there can be one filter")
	case len(rows) == 0:
		return fmt.Errorf("no row matches %q", flags.Arg(0))
	case *rounds < 1:
		return errors.New("-rounds must be positive")
	case *doc != "" && *beside == "":
		return errors.New("-doc needs -beside")
	}
	if *beside != "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		machine := bench.Machine() // read before a new file changes the tree
		return besides(rows, *rounds, program{self}, strings.Fields(*beside), stdout, func(lines map[string]string) error {
			if *doc == "" {
				return nil
			}
			return save(*doc, machine, lines)
		})
	}
	for _, row := range rows {
		switch {
		case row.New == nil:
		case *list:
			fmt.Fprintf(stdout, "%s|%d\n", row.Name, row.Ops)
		default:
			fmt.Fprintln(stdout, measure(row))
		}
	}
	return nil
}

// selected returns the rows whose names contain the filter, or the row whose name is after
// its "=".
func selected(rows []bench.Original, filter string) []bench.Original {
	name, exact := strings.CutPrefix(filter, "=")
	return slices.DeleteFunc(rows, func(o bench.Original) bool {
		return exact && o.Name != name || !strings.Contains(o.Name, name)
	})
}

const (
	mostRuns = 9
	longest  = time.Second // of all runs of a row, unless one takes longer
)

// measure does the operations of a row several times, the first time not measured.
func measure(row bench.Original) result {
	body := row.New()
	defer body.Done()
	once := func() (ns, bytes float64) {
		body.Prepare(row.Ops)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		body.Run(row.Ops)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		return float64(took) / float64(row.Ops), float64(after.TotalAlloc-before.TotalAlloc) / float64(row.Ops)
	}
	once()
	var times, bytes []float64
	for begun := time.Now(); len(times) == 0 || len(times) < mostRuns && time.Since(begun) < longest; {
		ns, b := once()
		times, bytes = append(times, ns), append(bytes, b)
	}
	runtime.KeepAlive(bench.Ballast)
	return result{row.Name, slices.Min(times), median(times), slices.Min(bytes)}
}

// median is the middle value of list, or the lower one of the two in the middle.
func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[(len(list)-1)/2] }

// result is what a program says about a row, per operation.
type result struct {
	row               string
	ns, middle, bytes float64
}

func (r result) String() string {
	return fmt.Sprintf("go|%s|%.1f|%.1f|%.0f", r.row, r.ns, r.middle, r.bytes)
}
