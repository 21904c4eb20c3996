package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/demo/scenario/metrics"
)

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := scenario.New(&out)
		// A handler delays the work, so that the latencies are known: 1 ms, 2 ms and so on.
		var delay time.Duration
		stop := s.Sink.Subscribe("document.opened", func(signals.Signal) {
			delay += time.Millisecond
			time.Sleep(delay)
		})
		defer stop()
		coretest.NothingLeft(t, s.Sink, func() {
			if err := metrics.Scenario.Run(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
		for _, line := range []string{
			`document 5: gzip: invalid checksum`,
			`    6   83%    5       1       3ms       6ms       6ms`,
			`=> 17 of 20 ok, 3 failed; measured: p50 10ms, p95 19ms, p99 20ms`,
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("no line with %q in\n%s", line, out.String())
			}
		}

		ctx, end := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		time.AfterFunc(333*time.Millisecond, func() { end(enough) })
		begin := time.Now()
		if err := metrics.Scenario.Run(ctx, scenario.New(&out)); err != enough || time.Since(begin) != 333*time.Millisecond {
			t.Errorf("ended with %v after %v", err, time.Since(begin))
		}
	})
}
