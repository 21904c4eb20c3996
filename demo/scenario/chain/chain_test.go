package chain

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

// It shows that signals show their causes, and a circle ends.
func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := Scenario.Run(t.Context(), scenario.New(&out)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"  0.10s  input-1  input > stepA.complete > stepB.complete > stepC.complete",
			"  0.10s  input-1  input is refused: it is one of its own causes",
			"  0.44s  input-3  chain complete, so far  stepA 3  stepB 3  stepC 3",
			"=> 3 inputs, 3 complete chains; 3 circles ended at the first repetition\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, &out)
			}
		}
	})
}

func TestStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 60 * time.Millisecond
		stop, start := errors.New("stop"), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
		defer cancel()
		err := Scenario.Run(ctx, scenario.New(io.Discard))
		if took := time.Since(start); !errors.Is(err, stop) || took != after {
			t.Errorf("it returned %v after %v", err, took)
		}
	})
}
