// Command compare measures the library beside other libraries, all sides in turns, and
// prints their times and ratios as a Markdown table.
//
// Usage:
//
//	go run ./bench/compare [flags]
//
// See package bench for what is measured, and README.md there for how to read it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/ephemeralgo/ephemeral/bench"
)

func main() { bench.Main("compare", run) }

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := flags.Int("rounds", 10, "how often everything is measured")
	span := flags.Duration("cell", 150*time.Millisecond, "how long each side of a row is measured in a round")
	hits := flags.Int("hits", 0, "instead of times, show the hit ratios of caches over so many requests, say 2000000")
	wal := flags.Int("wal", 0, "instead of times, show the commits and the WAL of so many items of the group durable, say 2000")
	wait := flags.Duration("starts", 0, "instead of times, show how long items of the group durable wait for their start, measured for so long each, say 20s")
	cores := flags.Int("cpu", 0, "measure only rows for so many cores: 1 takes the rows for one core, more takes the others; 0 takes all")
	doc := flags.String("doc", "", "write the rows with a goal beside other libraries into this Markdown file, with the machine, the version and the command")
	only := flags.String("run", "", "measure only rows whose group/name matches this regular expression")
	names := flags.Bool("list", false, "print the rows that -run and -cpu select, and measure nothing")
	commit := flags.String("against", "", "print only the rows in which our side is slower than at this commit, which is built and run in turns")
	factor := flags.Float64("slower", 1.03, "with -against: how many times as long a row takes that is slower")
	if err := flags.Parse(args); err != nil {
		return err
	}
	match, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return err
	case *rounds < 1 || *span <= 0:
		return errors.New("-rounds and -cell must be positive")
	case *hits < 0 || *cores < 0 || *wal < 0 || *wait < 0:
		return errors.New("-hits, -wal, -starts and -cpu must not be negative")
	case *names && (*hits > 0 || *wal > 0 || *wait > 0 || *doc != ""):
		return errors.New("-list measures nothing: leave out -hits, -wal, -starts and -doc")
	case *commit != "" && (*names || *hits > 0 || *wal > 0 || *wait > 0 || *doc != ""):
		return errors.New("-against prints rows that are slower: leave out -list, -hits, -wal, -starts and -doc")
	case *factor < 1:
		return errors.New("-slower must be at least 1")
	}
	sel := selection{match, *cores, stderr}

	if *names {
		return sel.list(stdout)
	}
	if *commit != "" {
		once := []string{"-rounds=1", "-cell=" + span.String(), "-run=" + *only, fmt.Sprintf("-cpu=%d", *cores)}
		return against(*commit, once, *rounds, *factor, stdout, stderr)
	}
	if *hits > 0 {
		hitRatios(stdout, *hits)
		return nil
	}
	if *wal > 0 {
		return walPerItem(stdout, *wal)
	}
	if *wait > 0 {
		return starts(stdout, *wait)
	}
	if *cores > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(*cores))
	}
	machine := bench.Machine() // read before a new file changes the tree
	t := table{all: stdout, doc: io.Discard}
	if *doc != "" {
		head := docHead(args)
		file, err := os.Create(*doc)
		if err != nil {
			return err
		}
		defer file.Close()
		t.doc = file
		io.WriteString(file, head)
	}
	fmt.Fprintf(io.MultiWriter(t.all, t.doc), "%s, %d rounds of %v, medians (quartiles)\n\n", machine, *rounds, *span)
	t.head()
	found := false
	for group, rows := range sel.groups() {
		found = true
		fmt.Fprintf(stderr, "measuring %s: %d rows\n", group.Name, len(rows))
		for _, row := range rows {
			t.row(group.Name, measure(row, *rounds, *span))
		}
		debug.FreeOSMemory() // frees the windows of this group before the next one
	}
	runtime.KeepAlive(bench.Ballast)
	if !found {
		return errNoRow
	}
	return nil
}
