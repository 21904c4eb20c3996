package reputation

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

// It shows that scores decay without further updates.
func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := Scenario.Run(t.Context(), scenario.New(&out)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"  0.50s  +8.2 trusted     +4.1 good        -4.1 suspicious  -8.2 blocked",
			"  2.00s  +2.9 good        +1.4 neutral     -1.4 neutral     -2.9 suspicious",
			"  3.00s  +1.4 neutral     +0.7 neutral     -0.7 neutral     -1.4 neutral",
			"=> 192.0.2.99 was blocked and is neutral: 20 updates, and then only time\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, &out)
			}
		}
	})
}

func TestStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 700 * time.Millisecond
		stop, start := errors.New("stop"), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
		defer cancel()
		err := Scenario.Run(ctx, scenario.New(io.Discard))
		if took := time.Since(start); !errors.Is(err, stop) || took != after {
			t.Errorf("it returned %v after %v", err, took)
		}
	})
}
