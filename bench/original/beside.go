package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/ephemeralgo/ephemeral/bench"
)

// program is a command that prints lines of results.
type program []string

// run returns the result of a row. The program fails, or says that the row has failed, or
// prints no time of it: each is an error.
func (p program) run(row string) (result, error) {
	out, err := exec.Command(p[0], append(p[1:len(p):len(p)], "="+row)...).Output()
	if err != nil {
		return result{}, fmt.Errorf("%s, %q: %w", p[0], row, err)
	}
	return parse(string(out), row)
}

// failure is why a row has failed, as the program says.
type failure string

func (f failure) Error() string { return string(f) }

// parse finds the line of a row, among lines with other values than times.
func parse(out, row string) (result, error) {
	err := errors.New("no time of " + row)
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 5 || f[1] != row {
			continue
		}
		if f[2] == "failed" {
			return result{}, failure(f[3])
		}
		ns, err1 := strconv.ParseFloat(f[2], 64)
		middle, err2 := strconv.ParseFloat(f[3], 64)
		size, err3 := strconv.ParseFloat(f[4], 64)
		if cmp.Or(err1, err2, err3) == nil {
			return result{row, ns, middle, size}, nil
		}
	}
	return result{}, err
}

// compare runs a row of both programs in turns. It returns the least times, and the median
// of the ratios of each turn: their time by ours. If their program fails, there is no ratio.
func compare(o bench.Original, rounds int, ours, theirs program) (line, error) {
	l := line{row: o.Name, note: o.Note}
	if o.New == nil {
		l.note = "not here: " + o.Note
		return l, nil
	}
	var ratios []float64
	for range rounds {
		their, failed := theirs.run(o.Name)
		if _, ok := errors.AsType[failure](failed); failed != nil && !ok {
			return l, failed
		}
		our, err := ours.run(o.Name)
		if err != nil {
			return l, err
		}
		l.ours = least(l.ours, our.ns)
		if failed != nil {
			l.theirs, l.note = 0, "the original fails: "+failed.Error()
			return l, nil
		}
		l.theirs = least(l.theirs, their.ns)
		ratios = append(ratios, their.ns/our.ns)
	}
	l.ratio = median(ratios)
	return l, nil
}

// least is the lesser of two times, of which the first may not be there yet.
func least(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// besides compares the rows, prints their lines, and saves all lines after each row.
func besides(rows []bench.Original, rounds int, ours, theirs program, w io.Writer, save func(map[string]string) error) error {
	io.WriteString(w, columns)
	lines := map[string]string{}
	for _, row := range rows {
		l, err := compare(row, rounds, ours, theirs)
		if err != nil {
			return err
		}
		lines[row.Name] = l.String()
		io.WriteString(w, l.String())
		if err := save(lines); err != nil {
			return err
		}
	}
	return nil
}

// line is a row of the table. A number that does not exist is 0.
type line struct {
	row                 string
	theirs, ours, ratio float64
	note                string
}

const columns = "| row | original ns | ours ns | ratio | what one does that the other does not |\n| --- | --: | --: | --: | --- |\n"

func (l line) String() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", l.row, shown("%.1f", l.theirs), shown("%.1f", l.ours), shown("%.2f", l.ratio), l.note)
}

// shown is empty for a number that does not exist.
func shown(format string, x float64) string {
	if x == 0 {
		return ""
	}
	return fmt.Sprintf(format, x)
}

const head = `# Beside the original

The original is the C# library that this one follows, as a program with these rows. Both programs take turns, each time in a new process. Times
are the least of all turns. The ratio is the original's time by ours, the median of the turns: above 1 we are faster. A program writes this file,
and keeps lines of rows that it does not measure:

` + "```sh\ngo run ./bench/original -beside ORIGINAL -doc docs/original.md\n```\n\n"

// save writes the document: the lines that are new, and those it has of other rows.
func save(doc, machine string, lines map[string]string) error {
	old, _ := os.ReadFile(doc) // there may be none
	for text := range strings.Lines(string(old)) {
		if name, ok := rowOf(text); ok && lines[name] == "" {
			lines[name] = text
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%s\n\n%s", head, machine, columns)
	for _, o := range bench.Originals() {
		if o.New != nil { // those that do not exist here are in the output only
			out.WriteString(lines[o.Name])
		}
	}
	return os.WriteFile(doc, out.Bytes(), 0o666)
}

// rowOf returns the name of the row in a line of the table.
func rowOf(text string) (name string, ok bool) {
	cells := strings.Split(text, " | ")
	name, ok = strings.CutPrefix(cells[0], "| ")
	return name, ok
}
