package resize_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/demo/scenario/resize"
)

func TestScenario(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := scenario.New(&out)
		coretest.NothingLeft(t, s.Sink, func() {
			if err := resize.Scenario.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
		// Of the stopped image, one size is done, and a second one may have run.
		if !regexp.MustCompile(`(25 files for 25 sizes; resize.stop refused 5|26 files for 26 sizes; resize.stop refused 4)\n`).Match(out.Bytes()) {
			t.Error(out.String())
		}
		if linked := regexp.MustCompile(`operation \d+: children \[(\d+ ){5}\d+\], \d+ kB\n`).FindAll(out.Bytes(), -1); len(linked) != 4 {
			t.Errorf("%d parents with six children in\n%s", len(linked), out.String())
		}
		for _, line := range []string{
			`4 images, 6 sizes each`,
			`=> 24 children of 4 parents; `,
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no line with %q in\n%s", line, out.String())
			}
		}

		ctx, end := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		s = scenario.New(&out)
		s.Sink.Subscribe("file.saved", func(signals.Signal) { end(enough) })
		if err := resize.Scenario.Run(ctx, s); err != enough {
			t.Errorf("ended with %v", err)
		}
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary directory: %v, %v", left, err)
		}
	})
}
