package filepipeline

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// Summary is what one run did.
type Summary struct {
	Bytes       int64 // bytes of the images that were read and hashed
	Elapsed     time.Duration
	Interrupted bool // the intake ended early; accepted files are finished

	Signals  map[string]uint64 // how often each was raised
	Skipped  map[Reason]uint64
	Failed   uint64    // files and directories
	Failures []Failure // the first failures in path order
	Stages   []StageSummary
}

// Files is how many entries the run accounts for.
func (s Summary) Files() uint64 {
	return s.Images() + s.Signals[FileSkipped.Name()]
}

// Images is how many files have a row: every image, and every file that could not be read and may be one.
func (s Summary) Images() uint64 {
	return s.Signals[SignalFileSaved] + s.Signals[FileFailed.Name()]
}

// Print writes the summary as tables. Names that contain control characters are quoted.
func (s Summary) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	s.printTotals(t)
	s.printStages(t)
	s.printSignals(t)
	s.printFailures(t)
	return t.Flush()
}

func (s Summary) printTotals(w io.Writer) {
	if s.Interrupted {
		fmt.Fprint(w, "interrupted: what was running is finished and written, the rest was not read\n\n")
	}
	fmt.Fprintf(w, "files\t%d\t%d images, %d skipped%s\n", s.Files(), s.Images(), s.Signals[FileSkipped.Name()], s.reasons())
	fmt.Fprintf(w, "bytes\t%d\tin images\n", s.Bytes)
	fmt.Fprintf(w, "thumbnails\t%d\n", s.Signals[ThumbnailComplete.Name()])
	fmt.Fprintf(w, "duplicates\t%d\n", s.Signals[DuplicateFound.Name()])
	fmt.Fprintf(w, "failed\t%d\n", s.Failed)
	fmt.Fprintf(w, "elapsed\t%v\n", brief(s.Elapsed))
}

func (s Summary) reasons() string {
	if len(s.Skipped) == 0 {
		return ""
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(s.Skipped)) {
		parts = append(parts, fmt.Sprintf("%s %d", why, s.Skipped[why]))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (s Summary) printStages(w io.Writer) {
	fmt.Fprint(w, "\nSTAGE\tCOUNT\tP50\tP95\tP99\tMAX\n")
	for _, st := range s.Stages {
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%v\t%v\n", st.Name, st.Count, brief(st.P50), brief(st.P95), brief(st.P99), brief(st.Max))
	}
}

func (s Summary) printSignals(w io.Writer) {
	fmt.Fprint(w, "\nSIGNAL\tCOUNT\n")
	for _, name := range slices.Sorted(maps.Keys(s.Signals)) {
		fmt.Fprintf(w, "%s\t%d\n", name, s.Signals[name])
	}
}

func (s Summary) printFailures(w io.Writer) {
	if s.Failed == 0 {
		return
	}
	fmt.Fprint(w, "\nFAILED\tCAUSE\n")
	for _, f := range s.Failures {
		fmt.Fprintf(w, "%s\t%s\n", Printable(f.File.Path), Printable(f.Cause))
	}
	if more := s.Failed - uint64(len(s.Failures)); more > 0 {
		fmt.Fprintf(w, "and %d more\tsee field error in %s\n", more, tableName)
	}
}

// Printable returns s unchanged if all its characters are printable, and quoted otherwise: names of files may contain
// newlines, escape sequences and bytes that are no text.
func Printable(s string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }
	if s == "" || s[0] == '"' || strings.TrimSpace(s) != s || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// brief rounds to what the eye can compare.
func brief(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
