// Package scenariotest has the common code of the tests of scenarios.
package scenariotest

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

// Shows runs a scenario under a fake clock, and checks that it prints these texts.
func Shows(t *testing.T, s scenario.Scenario, texts ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := s.Run(t.Context(), scenario.New(&out)); err != nil {
			t.Fatal(err)
		}
		for _, want := range texts {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, &out)
			}
		}
	})
}

// Stops ends the context of a scenario after some time, and checks that it returns the cause
// at that instant.
func Stops(t *testing.T, s scenario.Scenario, after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stop, start := errors.New("stop"), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
		defer cancel()
		err := s.Run(ctx, scenario.New(io.Discard))
		if took := time.Since(start); !errors.Is(err, stop) || took != after {
			t.Errorf("it returned %v after %v", err, took)
		}
	})
}
