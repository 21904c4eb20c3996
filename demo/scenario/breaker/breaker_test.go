package breaker_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/demo/scenario/breaker"
)

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := scenario.New(&out)
		signals := coretest.Watch(t, s.Sink, "circuit.*, breaker.*")
		coretest.NothingLeft(t, s.Sink, func() {
			if err := breaker.Scenario.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
		signals.ExpectExactly("circuit.open.service", "breaker.opened.service", "circuit.half_open.service",
			"circuit.open.service", "breaker.opened.service", "circuit.half_open.service", "breaker.closed.service")
		for _, line := range []string{
			`call  4 failed: no answer`,
			`open: calls are refused for 760ms`,
			`half-open: the next call is a probe; 18 refused so far`,
			`closed: the probe succeeded`,
			`=> 8 succeeded, 4 failed, 18 refused without a call; opened 2 times, closed 1`,
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no line with %q in\n%s", line, out.String())
			}
		}

		ctx, end := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(333*time.Millisecond, func() { end(enough) })
		begin := time.Now()
		if err := breaker.Scenario.Run(ctx, scenario.New(&out)); err != enough || time.Since(begin) != 333*time.Millisecond {
			t.Errorf("ended with %v after %v", err, time.Since(begin))
		}
	})
}
