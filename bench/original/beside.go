package main

import (
	"bytes"
	"cmp"
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

// run returns the result of a row; ok is false if the program does not print it.
func (p program) run(row string) (r result, ok bool, err error) {
	out, err := exec.Command(p[0], append(p[1:len(p):len(p)], "="+row)...).Output()
	if err != nil {
		return result{}, false, fmt.Errorf("%s, %q: %w", p[0], row, err)
	}
	r, ok = parse(string(out), row)
	return r, ok, nil
}

// parse finds the line of a row. Lines with other values than times are left out.
func parse(out, row string) (result, bool) {
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 5 || f[1] != row {
			continue
		}
		ns, err1 := strconv.ParseFloat(f[2], 64)
		middle, err2 := strconv.ParseFloat(f[3], 64)
		size, err3 := strconv.ParseFloat(f[4], 64)
		if cmp.Or(err1, err2, err3) == nil {
			return result{row, ns, middle, size}, true
		}
	}
	return result{}, false
}

// compare runs a row of both programs in turns. It returns the least times, and the median
// of the ratios of each turn: their time by ours.
func compare(o bench.Original, rounds int, ours, theirs program) (line, error) {
	l := line{row: o.Name, note: o.Note}
	if o.New == nil {
		return l, nil
	}
	var ratios []float64
	for range rounds {
		their, ok, err := theirs.run(o.Name)
		if err != nil || !ok {
			return l, cmp.Or(err, fmt.Errorf("%s prints no time of %q", theirs[0], o.Name))
		}
		our, ok, err := ours.run(o.Name)
		if err != nil || !ok {
			return l, cmp.Or(err, fmt.Errorf("%s prints no time of %q", ours[0], o.Name))
		}
		ratios = append(ratios, their.ns/our.ns)
		if l.ours == 0 || our.ns < l.ours {
			l.ours = our.ns
		}
		if l.theirs == 0 || their.ns < l.theirs {
			l.theirs = their.ns
		}
	}
	l.ratio = median(ratios)
	return l, nil
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

// line is a row of the table. Without times, the row exists in one program only.
type line struct {
	row                 string
	theirs, ours, ratio float64
	note                string
}

const columns = "| row | original ns | ours ns | ratio | what one does that the other does not |\n| --- | --: | --: | --: | --- |\n"

func (l line) String() string {
	if l.ratio == 0 {
		return fmt.Sprintf("| %s | | | | not here: %s |\n", l.row, l.note)
	}
	return fmt.Sprintf("| %s | %.1f | %.1f | %.2f | %s |\n", l.row, l.theirs, l.ours, l.ratio, l.note)
}

const head = `# Beside the original

The original is the C# library that this one follows, as a program. These are its rows: both programs do the same number of the same
operations, one row at a time and in turns, each in a process of its own. Times are the least of all turns. The ratio is the
original's time by ours, the median of the turns: above 1 we are faster. [bench/README.md](../bench/README.md) says what is fair,
and [numbers.md](numbers.md) compares with other libraries. A program writes this file, and keeps lines of rows that it does
not measure:

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
		out.WriteString(lines[o.Name])
	}
	return os.WriteFile(doc, out.Bytes(), 0o666)
}

// rowOf returns the name of the row in a line of the table.
func rowOf(text string) (name string, ok bool) {
	cells := strings.Split(text, " | ")
	name, ok = strings.CutPrefix(cells[0], "| ")
	return name, ok
}
