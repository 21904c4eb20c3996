package rate_test

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
	"github.com/ephemeralgo/ephemeral/demo/scenario/rate"
)

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := scenario.New(&out)
		coretest.NothingLeft(t, s.Sink, func() {
			if err := rate.Scenario.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
		for _, line := range []string{
			`load 54 % (middle): 4 allowed, 0 limited at 15/s`,
			`the limiter obeys: now 6 per second`,
			`load 86 % (high): 1 allowed, 3 limited at 6/s`,
			`=> 5 adjustments by signal; 43 of 60 requests allowed, 17 limited`,
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no line with %q in\n%s", line, out.String())
			}
		}

		ctx, end := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(333*time.Millisecond, func() { end(enough) })
		begin := time.Now()
		if err := rate.Scenario.Run(ctx, scenario.New(&out)); err != enough || time.Since(begin) != 333*time.Millisecond {
			t.Errorf("ended with %v after %v", err, time.Since(begin))
		}
	})
}
