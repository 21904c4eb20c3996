package pipeline

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

// It shows that what the limiter lets through passes all atoms.
func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := Scenario.Run(t.Context(), scenario.New(&out)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"request-02  complete after 75ms",
			"  0.21s  request-04  LIMITED",
			"  0.28s  request-05  allowed",
			"limiter    5 allowed, 5 limited",
			"validator  5 done",
			"processor  5 done",
			"storage    5 done",
			"=> 5 of 10 requests were limited, all others passed 3 atoms\n",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("it does not print %q:\n%s", want, &out)
			}
		}
	})
}

func TestStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 100 * time.Millisecond
		stop, start := errors.New("stop"), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), after, stop)
		defer cancel()
		err := Scenario.Run(ctx, scenario.New(io.Discard))
		if took := time.Since(start); !errors.Is(err, stop) || took != after {
			t.Errorf("it returned %v after %v", err, took)
		}
	})
}
