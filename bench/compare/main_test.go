package main

import (
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ephemeralgo/ephemeral/bench"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// quick measures only the rows of one group that match.
func quick(t *testing.T, only string, more ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(append([]string{"-rounds=2", "-cell=1ms", "-run=" + only}, more...), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRunPrintsALineForEachPeer(t *testing.T) {
	out := quick(t, "^run/producers=1$")
	for _, peer := range []string{"conc", "ants", "errgroup", "pond-Submit", "pond-Go"} {
		if n := strings.Count(out, "| "+peer+" |"); n != 1 {
			t.Errorf("%d lines for %s, not 1:\n%s", n, peer, out)
		}
	}
}

// -doc writes the rows with a goal beside other libraries into a document, with the command.
func TestRunWritesADocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "numbers.md")
	out := quick(t, "^(retry/op=success|match/op=match/pattern=exact)$", "-doc", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"go run ./bench/compare -rounds=2", "Machine: ", "| retry/op=success | "} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %q in the document:\n%s", part, text)
		}
	}
	const noGoal = "| match/op=match/pattern=exact |"
	if !strings.Contains(out, noGoal) || strings.Contains(string(text), noGoal) {
		t.Errorf("a row without a goal is in the document, or not in the output:\n%s", out)
	}
}

// Without a server, the group durable is left out, and says so; with one, every side commits.
func TestRunOfDurable(t *testing.T) {
	if os.Getenv(bench.PostgresDSN) == "" {
		var notes strings.Builder
		if err := run([]string{"-run=^durable/"}, io.Discard, &notes); err == nil || !strings.Contains(notes.String(), "leaving out durable: it needs "+bench.PostgresDSN) {
			t.Errorf("got error %v and notes %q", err, &notes)
		}
		for _, flag := range []string{"-wal=10", "-starts=1s"} {
			if err := run([]string{flag}, io.Discard, io.Discard); err == nil {
				t.Error(flag, "is accepted")
			}
		}
		return
	}
	var out strings.Builder
	if err := run([]string{"-wal=100"}, &out, io.Discard); err != nil || strings.Count(out.String(), "| durable/") != 25 {
		t.Errorf("got error %v and\n%s", err, &out)
	}
	if testing.Short() {
		return
	}
	out.Reset()
	if err := run([]string{"-starts=10ms"}, &out, io.Discard); err != nil || strings.Count(out.String(), "| p99 |") != 2 {
		t.Errorf("got error %v and\n%s", err, &out)
	}
}

// -cpu selects the rows for that number of cores. GOMAXPROCS is restored after the run.
func TestRunSelectsByCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	const both = "^(onecore/op=lanes|match/op=match/pattern=exact)$"
	for _, c := range []struct {
		cpu            string
		header         string
		onecore, other bool
	}{
		{"0", "GOMAXPROCS 3,", true, true},
		{"1", "GOMAXPROCS 1,", true, false},
		{"2", "GOMAXPROCS 2,", false, true},
	} {
		out := quick(t, both, "-cpu="+c.cpu)
		onecore, other := strings.Contains(out, "| onecore/"), strings.Contains(out, "| match/")
		coretest.Check(t, strings.Contains(out, c.header) && onecore == c.onecore && other == c.other, "-cpu %s:\n%s", c.cpu, out)
		if n := runtime.GOMAXPROCS(0); n != 3 {
			t.Fatalf("-cpu %s leaves GOMAXPROCS at %d", c.cpu, n)
		}
	}
}

// -list prints each row once, and calls none of its sides.
func TestRunListsRows(t *testing.T) {
	var out strings.Builder
	err := run([]string{"-list", "-run=^(match/op=match/pattern=exact|run/producers=1)$"}, &out, io.Discard)
	want := `# match: matching a name with a pattern, and parsing a command
match/op=match/pattern=exact	beside equality, path.Match
# run: enqueueing and running an operation that does nothing
run/producers=1	beside conc, ants, errgroup, pond-Submit, pond-Go
`
	coretest.Check(t, err == nil && out.String() == want, "got error %v and\n%s\nwant\n%s", err, &out, want)
}

func TestRunShowsHitRatios(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-hits=2000"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, trace := range bench.Traces() {
		if n := strings.Count(out.String(), "| "+trace.Name+" |"); n != 2 {
			t.Errorf("%d lines for %s, not 2:\n%s", n, trace.Name, &out)
		}
	}
}

func TestRunRefusesNonsense(t *testing.T) {
	for _, args := range [][]string{
		{"-rounds=0"}, {"-cell=-1s"}, {"-hits=-1"}, {"-wal=-1"}, {"-cpu=-1"}, {"-what"},
		{"-run=("}, {"-run=^nothing$"}, {"-cpu=1", "-run=^match/"},
		{"-against=HEAD", "-list"}, {"-against=HEAD", "-hits=1"}, {"-against=HEAD", "-doc=numbers.md"}, {"-slower=0.9"},
		{"-list", "-run=^nothing$"}, {"-list", "-hits=1"}, {"-list", "-wal=1"}, {"-list", "-doc=numbers.md"},
	} {
		if err := run(args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	if err := run([]string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

// -against compares the least times of rows that both programs print.
func TestAgainstPrintsWhatIsSlower(t *testing.T) {
	print := func(tables ...map[string]float64) func() (string, error) {
		return func() (string, error) {
			var out strings.Builder
			next := tables[0]
			tables = tables[1:]
			table := table{all: &out, doc: io.Discard}
			table.head()
			for row, ns := range next {
				line(&out, row, number(ns), "peer", "7.0 (7.0–7.0)")
			}
			return out.String(), nil
		}
	}
	then, now, err := inTurns(2,
		print(map[string]float64{"a": 100, "b": 50, "gone": 1}, map[string]float64{"a": 90, "b": 60, "gone": 1}),
		print(map[string]float64{"a": 99, "b": 51, "new": 1}, map[string]float64{"a": 93, "b": 80, "new": 1}),
	)
	var out strings.Builder
	writeSlower(&out, "HEAD", then, now, 1.03)
	want := `| row | ns at HEAD | ns now | ratio |
| --- | --: | --: | --: |
| a | 90.0 | 93.0 | 1.03 |
1 of 2 rows are slower than at HEAD by more than a factor of 1.03; 2 rows are not in both
`
	coretest.Check(t, err == nil && out.String() == want, "got error %v and\n%s\nwant\n%s", err, &out, want)
}

// The ratio is the median of the ratios of all rounds. So a round in which the machine was
// slow for both sides changes nothing.
func TestTableRelatesRoundByRound(t *testing.T) {
	side := func(name string, goal float64, ns ...float64) *cell {
		return &cell{Side: bench.Side{Name: name, Goal: goal}, ns: ns, allocs: []float64{2, 2, 2}}
	}
	m := measured{bench.Row{Name: "r", MaxAllocs: 1}, []*cell{
		side("ours", 0, 10, 1000, 30), side("good", 0.5, 20, 2000, 60), side("bad", 0.4, 20, 2000, 60), side("shown", 0, 10, 1000, 30),
	}}
	var out strings.Builder
	(&table{all: &out, doc: io.Discard}).row("g", m)
	want := `| g/r | 30.0 | good | 60.0 | 0.50 (0.50–0.50) | 0.5 | **2.00 > 1** | 2.00 |
| g/r | 30.0 | bad | 60.0 | 0.50 (0.50–0.50) | 0.4 **missed** | **2.00 > 1** | 2.00 |
| g/r | 30.0 | shown | 30.0 | 1.00 (1.00–1.00) |  | **2.00 > 1** | 2.00 |
`
	coretest.Check(t, out.String() == want, "got\n%s\nwant\n%s", &out, want)
}

func TestQuantile(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 1: 4} {
		if got := quantile([]float64{4, 2, 1, 3}, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %g is %g, not %g", q, got, want)
		}
	}
}
