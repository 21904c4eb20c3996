package notification

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// It shows that listeners read the state from the atom, after a signal that has none.
func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := Scenario.Run(t.Context(), scenario.New(&out)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"  0.07s  notify: 1 saved so far",
			"  0.07s  audit:  report.txt was saved at ",
			"  0.27s  audit:  budget.csv was saved at ",
			"=> the signals said that, the atom knew what: 3 saved, 3 audited\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, &out)
			}
		}
	})
}

func TestStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 120 * time.Millisecond
		stop, start := errors.New("stop"), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
		defer cancel()
		err := Scenario.Run(ctx, scenario.New(io.Discard))
		if took := time.Since(start); !errors.Is(err, stop) || took != after {
			t.Errorf("it returned %v after %v", err, took)
		}
	})
}
