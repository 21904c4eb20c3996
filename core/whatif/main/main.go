// Command main shows what other limits would have done to the traffic of a trace that package whatif has recorded.
//
//	go run github.com/ephemeralgo/ephemeral/core/whatif/main trace.bin -limit 8,16,32 -class stripe.rate=25,50
//
// It is part of core, so that it decides as the core does that your module requires. "ephemeral whatif" runs it.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/whatif"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit status: 0, or 2 if the command could not do its work.
func run(args []string, out, errOut io.Writer) int {
	err := show(args, out, errOut)
	switch {
	case guard.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(errOut, err)
		return 2
	}
	return 0
}

// change is a value of an option to try.
type change struct {
	text string
	set  func(o *core.Options) error
}

func show(args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("whatif", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints errors
	flags.Usage = func() {}
	usage := func() {
		fmt.Fprintln(errOut, "usage: ephemeral whatif TRACE [-limit 8,16] [-lane batch.limit=8,16] [-class stripe.rate=25,50] [-p99 200ms] [-of batch]")
		fmt.Fprintln(errOut, "It prints a row for each combination; without flags, a report on the recorded options. A value takes the place of the recorded one.")
		flags.SetOutput(errOut)
		flags.PrintDefaults()
	}
	var tries [][]change // a row for each combination
	flags.Func("limit", "try these limits of all operations, such as 8,16,32", func(list string) error {
		return try(&tries, "limit", list, func(o *core.Options, n float64) error { o.MaxConcurrency = int(n); return nil })
	})
	flags.Func("lane", "try these limits of a lane, such as batch.limit=8,16; may be repeated", func(list string) error {
		return tryPart(&tries, list, func(o *core.Options, name, field string, n float64) bool {
			i := slices.IndexFunc(o.Lanes, func(l core.Lane) bool { return l.Name == name })
			if i >= 0 {
				o.Lanes[i].Limit = int(n)
			}
			return i >= 0 && field == "limit"
		})
	})
	flags.Func("class", "try these limits or rates a second of a class, such as stripe.rate=50, stripe.cost=1000 or stripe.limit=4,8; a rate keeps the recorded burst; may be repeated", func(list string) error {
		return tryPart(&tries, list, func(o *core.Options, name, field string, n float64) bool {
			i := slices.IndexFunc(o.Classes, func(c core.Class) bool { return c.Name == name })
			if i < 0 {
				return false
			}
			c := &o.Classes[i]
			switch field {
			case "limit":
				c.Limit = int(n)
			case "rate":
				c.Rate.PerSecond = n
			case "cost":
				c.CostRate.PerSecond = n
			}
			return slices.Contains([]string{"limit", "rate", "cost"}, field)
		})
	})
	p99 := flags.Duration("p99", 0, "search the smallest limit of all operations with which the p99 of the waits is at most this, such as 200ms, and no more are refused than recorded. The search halves, so it is right if higher limits are never worse")
	of := flags.String("of", "", "the lane or class that -p99 and the rows are about; all operations without it")
	file := ""
	for rest := args; ; { // flags may follow the file
		if err := flags.Parse(rest); err != nil {
			return helped(err, usage)
		}
		if rest = flags.Args(); len(rest) == 0 {
			break
		}
		if file != "" {
			return fmt.Errorf("whatif: there is one trace, but %q and %q are given", file, rest[0])
		}
		file, rest = rest[0], rest[1:]
	}
	if file == "" {
		usage()
		return errors.New("whatif: the file of a trace is missing")
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	trace, err := whatif.Read(f)
	if trace == nil {
		return err
	}
	if err != nil {
		fmt.Fprintln(errOut, err)
	}
	rows := [][]change{nil}
	for _, values := range tries {
		var more [][]change
		for _, row := range rows {
			for _, v := range values {
				more = append(more, append(slices.Clip(row), v))
			}
		}
		rows = more
	}
	if len(tries) == 0 && *p99 == 0 {
		report, err := whatif.Run(trace, trace.Options)
		if err == nil {
			_, err = io.WriteString(out, report.String())
		}
		return err
	}
	fmt.Fprintf(out, "%-40s %9s %9s %9s %9s %9s %9s %9s\n", cmp.Or(*of, "all operations"), "started", "refused", "p50", "p95", "p99", "longest", "starved")
	last := "" // line of a report, which says what it does not know
	for i, row := range append([][]change{nil}, rows...) {
		name := "recorded"
		o := options(trace)
		for j, c := range row {
			if name += ", " + c.text; j == 0 {
				name = c.text
			}
			if err := c.set(&o); err != nil {
				return err
			}
		}
		if *p99 > 0 && i > 0 {
			o.MaxConcurrency = smallest(trace, o, *of, *p99)
			name = fmt.Sprintf("%slimit %d", strings.TrimPrefix(name+", ", "recorded, "), o.MaxConcurrency)
		}
		report, err := whatif.Run(trace, o)
		if err != nil {
			return err
		}
		lines := strings.SplitAfter(report.String(), "\n")
		last = lines[len(lines)-2]
		result := report.Simulated
		if i == 0 {
			result = report.Recorded
		}
		w, err := part(result, *of)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-40s %9d %9d %9v %9v %9v %9v %9d\n", name, w.Started, w.Refused, short(w.P50), short(w.P95), short(w.P99), short(w.Longest), result.Starved)
		if *p99 > 0 && i > 0 && !keeps(report, *of, *p99) {
			fmt.Fprintf(out, "no limit keeps the p99 at %v and refuses no more than recorded: something else is scarce\n", *p99)
		}
	}
	_, err = io.WriteString(out, last)
	return err
}

// helped is the error of flags. It shows the usage if the error is the request for it.
func helped(err error, usage func()) error {
	if guard.Is(err, flag.ErrHelp) {
		usage()
		return err
	}
	return fmt.Errorf("whatif: %w", err)
}

// options are a copy of the recorded options.
func options(t *whatif.Trace) core.Options {
	o := t.Options
	o.Lanes, o.Classes = slices.Clone(o.Lanes), slices.Clone(o.Classes)
	return o
}

// part is the row of a lane or class, or of all operations.
func part(r whatif.Result, name string) (whatif.Waits, error) {
	for _, w := range r.Waits {
		if cmp.Or(w.Lane, w.Class) == name {
			return w, nil
		}
	}
	return whatif.Waits{}, fmt.Errorf("whatif: the trace has no lane or class %q", name)
}

// keeps reports whether the p99 of a part is low enough, and not because more are refused.
func keeps(r whatif.Report, of string, p99 time.Duration) bool {
	was, _ := part(r.Recorded, of)
	w, _ := part(r.Simulated, of)
	return w.P99 <= p99 && w.Refused <= was.Refused
}

// smallest is the smallest limit that keeps the p99 of a part, or the largest limit that was tried.
func smallest(t *whatif.Trace, o core.Options, of string, p99 time.Duration) int {
	low, high := 1, 1<<14
	for low < high {
		o.MaxConcurrency = (low + high) / 2
		report, err := whatif.Run(t, o)
		if err != nil {
			return o.MaxConcurrency // the caller gets the same error
		}
		if keeps(report, of, p99) {
			high = o.MaxConcurrency
		} else {
			low = o.MaxConcurrency + 1
		}
	}
	return low
}

// try adds the values of a list.
func try(tries *[][]change, what, list string, set func(o *core.Options, n float64) error) error {
	var values []change
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		n, err := number(text, strings.HasSuffix(what, "limit"))
		if err != nil {
			return err
		}
		values = append(values, change{what + " " + text, func(o *core.Options) error { return set(o, n) }})
	}
	*tries = append(*tries, values)
	return nil
}

// number reads a value.
func number(text string, whole bool) (n float64, err error) {
	switch n, err = strconv.ParseFloat(text, 64); {
	case strings.HasPrefix(text, "+"), strings.HasPrefix(text, "-"):
		return n, fmt.Errorf("%q has a sign, but a value is the new limit or rate itself, not how much it changes", text)
	case err != nil, math.IsNaN(n), math.IsInf(n, 0):
		return n, fmt.Errorf("%q is not a number", text)
	case whole && (n != math.Trunc(n) || n > math.MaxInt32):
		return n, fmt.Errorf("%q is not a whole number up to %d, as a limit must be", text, math.MaxInt32)
	}
	return n, nil
}

// tryPart adds the values of NAME.FIELD=LIST.
func tryPart(tries *[][]change, text string, set func(o *core.Options, name, field string, n float64) bool) error {
	what, list, _ := strings.Cut(text, "=")
	dot := strings.LastIndex(what, ".")
	if dot < 0 {
		return errors.New("it must be NAME.FIELD=VALUES")
	}
	name, field := what[:dot], what[dot+1:]
	return try(tries, what, list, func(o *core.Options, n float64) error {
		if !set(o, name, field, n) {
			return fmt.Errorf("whatif: the trace has no %q", what)
		}
		return nil
	})
}

// short leaves three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}
