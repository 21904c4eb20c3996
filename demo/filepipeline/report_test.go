package filepipeline

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestSummaryPrint(t *testing.T) {
	for name, s := range map[string]Summary{
		"report": {
			Bytes:   6_347_581,
			Elapsed: 1234567 * time.Microsecond,
			Signals: map[string]uint64{
				"file.saved": 84, "file.failed": 2, "file.skipped": 86, "metadata.written": 86,
				"thumbnail.complete": 81, "thumbnail.failed": 3, "duplicate.found": 4, "directory.failed": 1,
			},
			Skipped: map[Reason]uint64{ReasonNoImage: 80, ReasonLink: 5, ReasonSpecial: 1},
			Failed:  6,
			Failures: []Failure{
				{File{Path: "albums/locked"}, "permission denied"},
				{File{Path: "ünïcødé/画像.png"}, "decode: unexpected EOF"},
				{File{Path: "new\nline \x1b[31m.png"}, "declares 60000x60000 = 3600000000 pixels, the limit is 50000000"},
				{File{Path: "-rf"}, "a cause\nof two lines"},
			},
			Stages: []StageSummary{
				{"read", 172, 139264, 4_190_000, 7_860_000, 8_360_000},
				{"thumbnail", 84, 3_010_000, 13_110_000, 28_120_000, 2_281_200_000},
				{"duplicate", 85, 0, 999, 1_000, 65_000_000_000},
			},
		},
		"interrupted": {
			Interrupted: true,
			Signals:     map[string]uint64{"pipeline.interrupted": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := s.Print(&b); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
			}
		})
	}
}

func TestSummaryPrintError(t *testing.T) {
	if err := (Summary{}).Print(brokenWriter{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Print: %v, want the writer's error", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain.png": "plain.png",
		"a b":       "a b",
		"画像":        "画像",
		`it's "x"`:  `it's "x"`,
		`"x"`:       `"\"x\""`,
		"":          `""`,
		" x":        `" x"`,
		"a\nb":      `"a\nb"`,
		"\x1b[2J":   `"\x1b[2J"`,
		"\xff":      `"\xff"`,
		"\u202eexe": `"\u202eexe"`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %s, want %s", in, got, want)
		}
	}
}

// The list of failures must not depend on their order.
func TestTallyKeepsTheLowestFailures(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	tally := newTally()
	cancel := tally.subscribe(sink)
	const n = 3 * maxFailures
	for i := range n {
		path := fmt.Sprintf("%03d", i*37%n)
		FileFailed.Raise(sink, path, Failure{File{Path: path}, "cause"})
	}
	cancel()
	FileFailed.Raise(sink, "late", Failure{})

	s := tally.summary()
	if s.Failed != n || s.Signals["file.failed"] != n || len(s.Failures) != maxFailures {
		t.Errorf("%d failed, %d signals, %d listed", s.Failed, s.Signals["file.failed"], len(s.Failures))
	}
	for i, f := range s.Failures {
		if want := fmt.Sprintf("%03d", i); f.File.Path != want {
			t.Errorf("failure %d is %s, want %s", i, f.File.Path, want)
		}
	}
	var b strings.Builder
	if err := s.Print(&b); err != nil || !strings.Contains(b.String(), "and 100 more   see field error in metadata.jsonl") {
		t.Errorf("the report hides that there are more:\n%s", b.String())
	}
}
