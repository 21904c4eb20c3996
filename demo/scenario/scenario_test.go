package scenario_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
	"github.com/ephemeralgo/ephemeral/demo/scenario/backpressure"
	"github.com/ephemeralgo/ephemeral/demo/scenario/breaker"
	"github.com/ephemeralgo/ephemeral/demo/scenario/chain"
	"github.com/ephemeralgo/ephemeral/demo/scenario/command"
	"github.com/ephemeralgo/ephemeral/demo/scenario/hint"
	"github.com/ephemeralgo/ephemeral/demo/scenario/metrics"
	"github.com/ephemeralgo/ephemeral/demo/scenario/notification"
	"github.com/ephemeralgo/ephemeral/demo/scenario/pipeline"
	"github.com/ephemeralgo/ephemeral/demo/scenario/preload"
	"github.com/ephemeralgo/ephemeral/demo/scenario/rate"
	"github.com/ephemeralgo/ephemeral/demo/scenario/reputation"
	"github.com/ephemeralgo/ephemeral/demo/scenario/resize"
	"github.com/ephemeralgo/ephemeral/demo/scenario/tiers"
	"github.com/ephemeralgo/ephemeral/demo/scenario/viewer"
)

// Each scenario shows what it promises under a fake clock, within four seconds. When its context ends, it returns the
// cause at that instant. It leaves nothing on its sink.
func TestScenarios(t *testing.T) {
	for _, test := range []struct {
		scenario scenario.Scenario
		stop     time.Duration // when the context of the second run ends
		// prepare is called before the first run, and returns what is checked after it.
		prepare func(t *testing.T, s *scenario.Screen) (check func(out string))
		shows   []string
	}{
		{backpressure.Scenario, 601 * time.Millisecond, nil, []string{
			"pressure begins: 5 items wait for the consumer",
			"item 10 waits: backpressure.consumer",
			"pressure ends: 2 items wait for the consumer",
			"the producer waited 124ms to enqueue item 11",
			"=> 15 produced, 15 consumed; at most 5 waited; the producer was held up ",
		}},
		{breaker.Scenario, 333 * time.Millisecond, breakerSignals, []string{
			"call  4 failed: no answer",
			"open: calls are refused for 760ms",
			"half-open: the next call is a probe; 18 refused so far",
			"closed: the probe succeeded",
			"=> 8 succeeded, 4 failed, 18 refused without a call; opened 2 times, closed 1",
		}},
		// Signals have their causes, and a circle ends.
		{chain.Scenario, 60 * time.Millisecond, nil, []string{
			"  0.10s  input-1  input > stepA.complete > stepB.complete > stepC.complete",
			"  0.10s  input-1  input is refused: it is one of its own causes",
			"  0.44s  input-3  chain complete, so far  stepA 3  stepB 3  stepC 3",
			"=> 3 inputs, 3 complete chains; 3 circles ended at the first repetition\n",
		}},
		// The window obeys commands, and refuses one that makes no sense.
		{command.Scenario, 50 * time.Millisecond, nil, []string{
			"window holds 100 for 5m0s",
			"applied:  capacity 500, before 100",
			"window holds 500 for 5m0s",
			"applied:  capacity 700, before 500",
			"rejected: window.size.set:many",
			"window holds 700 for 30s",
			"=> it held 500, then 700 signals, for 30s: 3 commands obeyed, 1 refused\n",
		}},
		// A listener starts from the hint, and acts on the answer of the atom.
		{hint.Scenario, 120 * time.Millisecond, nil, []string{
			"  0.14s  mail:   hint ORD-124, writing the mail",
			"  0.15s  mail:   ORD-124 is not sent, the atom says: card declined",
			"  0.23s  mail:   ORD-125 is sent, the atom has 2 paid",
			"=> 3 hints, 2 mails: the atom knew that ORD-124 was not paid\n",
		}},
		{metrics.Scenario, 333 * time.Millisecond, knownLatencies, []string{
			"document 5: gzip: invalid checksum",
			"    6   83%    5       1       3ms       6ms       6ms",
			"=> 17 of 20 ok, 3 failed; measured: p50 10ms, p95 19ms, p99 20ms",
		}},
		// Listeners read the state from the atom, after a signal that has none.
		{notification.Scenario, 120 * time.Millisecond, nil, []string{
			"  0.07s  notify: 1 saved so far",
			"  0.07s  audit:  report.txt was saved at ",
			"  0.27s  audit:  budget.csv was saved at ",
			"=> the signals said that, the atom knew what: 3 saved, 3 audited\n",
		}},
		// Requests that pass the limiter pass all atoms.
		{pipeline.Scenario, 100 * time.Millisecond, nil, []string{
			"request-02  complete after 75ms",
			"  0.21s  request-04  LIMITED",
			"  0.28s  request-05  allowed",
			"limiter    5 allowed, 5 limited",
			"validator  5 done",
			"processor  5 done",
			"storage    5 done",
			"=> 5 of 10 requests were limited, all others passed 3 atoms\n",
		}},
		{preload.Scenario, 333 * time.Millisecond, nil, []string{
			"1000 jobs are queued",
			"170ms later 0 have started",
			"waits because of batch.loading",
			"1000 of 1000 jobs are done",
			"=> 1000 waited 170ms, 0 started; after batch.ready 975 ok, 25 failed in 1.",
		}},
		{rate.Scenario, 333 * time.Millisecond, nil, []string{
			"load 54 % (middle): 4 allowed, 0 limited at 15/s",
			"the limiter obeys: now 6 per second",
			"load 86 % (high): 1 allowed, 3 limited at 6/s",
			"=> 5 adjustments by signal; 43 of 60 requests allowed, 17 limited",
		}},
		// Scores decay without further updates.
		{reputation.Scenario, 700 * time.Millisecond, nil, []string{
			"  0.50s  +8.2 trusted     +4.1 good        -4.1 suspicious  -8.2 blocked",
			"  2.00s  +2.9 good        +1.4 neutral     -1.4 neutral     -2.9 suspicious",
			"  3.00s  +1.4 neutral     +0.7 neutral     -0.7 neutral     -1.4 neutral",
			"=> 192.0.2.99 was blocked and is neutral: 20 updates, and then only time\n",
		}},
		{tiers.Scenario, time.Second, shortLines, []string{
			`free: core: refused because of signal "system.high_load"`,
			`standard: core: coordinator "requests" has a full queue`,
			"critical     5              0     0         5      0     5",
			"premium     20              0     0        20      0    20",
			"standard    35              4     0        31      0    31",
			"free        40              0    16        24      3    21",
			"under high load started: 2 critical, 8 premium, nothing else",
			"=> 100 sent: 77 done, 23 refused with a reason, 0 lost; critical: 5 of 5",
		}},
		// The tail is filtered, and no signal is lost.
		{viewer.Scenario, 1500 * time.Millisecond, nil, []string{
			"  1.48s          ALARM, errors within a second: 3",
			"  2.48s          alarm ends, errors within a second: 1",
			"  1.62s  000017  error.database",
			"  3.03s    debug.cache.hit        4",
			"by family:  error 4  warn 5  info 7  debug 9  trace 4",
			"=> 29 signals received, 16 shown, 13 filtered out, none lost\n",
		}},
	} {
		t.Run(test.scenario.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				screen, check, start := scenario.New(&out), func(string) {}, time.Now()
				if test.prepare != nil {
					check = test.prepare(t, screen)
				}
				coretest.NothingLeft(t, screen.Sink, func() {
					if err := test.scenario.Run(t.Context(), screen); err != nil {
						t.Errorf("it returned %v", err)
					}
				})
				if took := time.Since(start); took > 4*time.Second {
					t.Errorf("it took %v", took)
				}
				for _, want := range test.shows {
					if !strings.Contains(out.String(), want) {
						t.Errorf("it does not print %q", want)
					}
				}
				if check(out.String()); t.Failed() {
					t.Logf("\n%s", &out)
				}

				stop, screen, start := errors.New("stop"), scenario.New(&out), time.Now()
				ctx, cancel := context.WithTimeoutCause(t.Context(), test.stop, stop)
				defer cancel()
				coretest.NothingLeft(t, screen.Sink, func() {
					err := test.scenario.Run(ctx, screen)
					if took := time.Since(start); !errors.Is(err, stop) || took != test.stop {
						t.Errorf("stopped after %v: it returned %v after %v", test.stop, err, took)
					}
				})
			})
		})
	}
}

func breakerSignals(t *testing.T, s *scenario.Screen) func(string) {
	seen := coretest.Watch(t, s.Sink, "circuit.*, breaker.*")
	return func(string) {
		seen.ExpectExactly("circuit.open.service", "breaker.opened.service", "circuit.half_open.service",
			"circuit.open.service", "breaker.opened.service", "circuit.half_open.service", "breaker.closed.service")
	}
}

// knownLatencies delays the work by a handler: 1 ms, 2 ms and so on.
func knownLatencies(_ *testing.T, s *scenario.Screen) func(string) {
	var delay time.Duration
	stop := s.Sink.Subscribe("document.opened", func(signals.Signal) {
		delay += time.Millisecond
		time.Sleep(delay)
	})
	return func(string) { stop() }
}

func shortLines(t *testing.T, s *scenario.Screen) func(string) {
	completed := 0
	monitor := s.Sink.Monitor("request.completed", time.Hour)
	return func(out string) {
		if completed = int(monitor.Count()); completed != 77 {
			t.Errorf("%d requests have raised their completion, want 77", completed)
		}
		for line := range strings.Lines(out) {
			coretest.Check(t, len(line) <= 79, "too long: %s", line)
		}
	}
}

// The work of this scenario is real: images and files.
func TestResize(t *testing.T) {
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
		for want, times := range map[string]int{
			`(25 files for 25 sizes; resize.stop refused 5|26 files for 26 sizes; resize.stop refused 4)\n`: 1,
			`operation \d+: children \[(\d+ ){5}\d+\], \d+ kB\n`:                                            4,
			`4 images, 6 sizes each`:        1,
			`=> 24 children of 4 parents; `: 1,
		} {
			if n := len(regexp.MustCompile(want).FindAll(out.Bytes(), -1)); n != times {
				t.Errorf("%d times %q, want %d, in\n%s", n, want, times, &out)
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
