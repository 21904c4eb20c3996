package tiers

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var completed atomic.Int32
		screen, begin := scenario.New(&out), time.Now()
		screen.Sink.Subscribe("request.completed", func(signals.Signal) { completed.Add(1) })
		if err := Scenario.Run(t.Context(), screen); err != nil {
			t.Fatalf("%v after\n%s", err, &out)
		}
		if took := time.Since(begin); took > 3500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		for _, want := range []string{
			`free: core: refused because of signal "system.high_load"`,
			`standard: core: coordinator "requests" has a full queue`,
			"critical     5              0     0         5      0     5",
			"premium     20              0     0        20      0    20",
			"standard    35              4     0        31      0    31",
			"free        40              0    16        24      3    21",
			"under high load started: 2 critical, 8 premium, nothing else",
			"=> 100 sent: 77 done, 23 refused with a reason, 0 lost; critical: 5 of 5",
		} {
			coretest.Check(t, strings.Contains(out.String(), want), "no line has %q", want)
		}
		if n := completed.Load(); n != 77 {
			t.Errorf("%d requests have raised their completion, want 77", n)
		}
		coretest.Check(t, !screen.Sink.Has(highLoad), "the load is still high")
		for line := range strings.Lines(out.String()) {
			coretest.Check(t, len(line) <= 79, "too long: %s", line)
		}
		if t.Failed() {
			t.Log("\n" + out.String())
		}
	})
}

// The end of the context ends the scenario at once, whatever waits, and ends the high load.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop, screen := errors.New("stop"), scenario.New(new(bytes.Buffer))
		time.AfterFunc(time.Second, func() { cancel(stop) })
		begin := time.Now()
		if err := Scenario.Run(ctx, screen); err != stop || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		coretest.Check(t, !screen.Sink.Has(highLoad), "the load is still high")
	})
}
