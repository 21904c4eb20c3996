package main

import (
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/bench"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

const row = "detect absent"

// The test program is also the two programs that -beside runs.
func TestMain(m *testing.M) {
	if os.Getenv("ORIGINAL_PRINTS") != "" {
		os.Stdout.WriteString(os.Getenv("ORIGINAL_PRINTS"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestRunPrintsARow(t *testing.T) {
	var out strings.Builder
	err := run([]string{"=" + row}, &out, io.Discard)
	r, none := parse(out.String(), row)
	coretest.Check(t, err == nil && none == nil && r.ns > 0 && r.ns <= r.middle, "got error %v and %s", err, &out)
}

func TestRunListsRows(t *testing.T) {
	var out strings.Builder
	err := run([]string{"-list", "detect "}, &out, io.Discard)
	want := "detect present|200000\ndetect absent|10000\n"
	coretest.Check(t, err == nil && out.String() == want, "got error %v and %s", err, &out)
}

// The minimum of all turns, the median of the ratios; lines of other values are no times.
func TestCompare(t *testing.T) {
	self, err := os.Executable()
	coretest.Check(t, err == nil, "%v", err)
	t.Setenv("ORIGINAL_PRINTS", "cs|detect absent|value p50 ns|7.0|0\ncs|other|1|1|1\ncs|detect absent|50.0|60.0|3\n")
	rows := selected(bench.Originals(), "="+row)
	l, err := compare(rows[0], 2, program{self}, program{self})
	want := line{row: row, theirs: 50, ours: 50, ratio: 1, note: rows[0].Note}
	coretest.Check(t, err == nil && l == want, "got %+v and error %v", l, err)

}

// A program that fails, or prints no time, has no result.
func TestParse(t *testing.T) {
	for out, want := range map[string]string{
		"cs|detect absent|failed|TimeoutException|0\n": "TimeoutException",
		"cs|detect present|1|1|1\n":                    "no time of " + row,
	} {
		_, err := parse(out, row)
		coretest.Check(t, err != nil && err.Error() == want, "%q: %v", out, err)
	}
}

// The document has the lines of earlier runs, and only of rows that exist.
func TestSaveKeepsLines(t *testing.T) {
	doc := filepath.Join(t.TempDir(), "original.md")
	old := map[string]string{row: line{row: row, note: "old"}.String(), "match simple": line{row: "match simple"}.String(), "gone": "| gone | |\n"}
	next := map[string]string{row: line{row: row, theirs: 3, ours: 2, ratio: 1.5, note: "new"}.String()}
	for _, lines := range []map[string]string{old, next} {
		err := save(doc, "Machine: this.", maps.Clone(lines))
		coretest.Check(t, err == nil, "%v", err)
	}
	text, err := os.ReadFile(doc)
	want := head + "Machine: this.\n\n" + columns + old["match simple"] + next[row]
	coretest.Check(t, err == nil && string(text) == want, "got error %v and\n%s\nwant\n%s", err, text, want)
}

func TestRunRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{{"=nothing"}, {"a", "b"}, {"-rounds=0"}, {"-doc=x.md"}, {"-what"}, {"-beside=/nowhere", "=" + row}} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	if err := run([]string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}
