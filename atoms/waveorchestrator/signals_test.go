package waveorchestrator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The test checks the exact signals and their order.
func TestSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		seen := coretest.Watch(t, sink, "wave.*,worker.*,circuit.*")
		works := false
		o := orchestrator(t, opts{Sink: sink, Name: "checks", BreakerThreshold: 1, BreakerReset: 10 * time.Second, WorkerTimeout: time.Second,
			TotalTimeout: 3 * time.Second, MaxPerWave: 1, EarlyExit: func(v int) bool { return v == 9 }},
			worker{Name: "fast", Do: gives(1, 12*ms)},
			worker{Name: "down", Priority: 1, Do: func(context.Context, int) (int, error) {
				if !works {
					return 0, errOnPurpose
				}
				return 2, nil
			}},
			worker{Name: "hangs", Wave: 3, Do: hangs},
			worker{Name: "last", Wave: 4, Do: func(_ context.Context, in int) (int, error) { return in, nil }})
		_, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		got := seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=2",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"worker.started:down",
			"worker.failed:down:error=failed on purpose",
			"circuit.opened:down:failures=1",
			"wave.started:wave=3:workers=1",
			"worker.started:hangs",
			"worker.timeout:hangs:duration=1000",
			"circuit.opened:hangs:failures=1",
			"wave.started:wave=4:workers=1",
			"worker.started:last",
			"worker.completed:last:duration=0",
			"wave.orchestrator.completed:duration=1112:results=2",
		)
		execution := got[0].Operation
		want := []wave.Event{
			{}, {Wave: 0, Workers: 2}, {Worker: "fast"}, {Worker: "fast", Duration: 12 * ms},
			{Worker: "down"}, {Worker: "down", Err: errOnPurpose}, {Worker: "down"},
			{Wave: 3, Workers: 1}, {Worker: "hangs", Wave: 3}, {Worker: "hangs", Wave: 3, Duration: time.Second, Err: wave.ErrWorkerTimeout},
			{Worker: "hangs"}, {Wave: 4, Workers: 1}, {Worker: "last", Wave: 4}, {Worker: "last", Wave: 4},
			{Workers: 2, Duration: 1112 * ms, Outcome: wave.OutcomeCompleted},
		}
		keys := []string{"", "0", "fast", "fast", "down", "down", "down", "3", "hangs", "hangs", "hangs", "4", "last", "last", ""}
		for i, s := range got {
			assert.Equal(t, keys[i], s.Key, s.Name)
			if s.Held {
				assert.Nil(t, s.Payload())
				continue
			}
			want[i].Execution = execution
			assert.Equal(t, want[i], s.Payload(), s.Name)
			source := "checks"
			if strings.HasPrefix(s.Name, "worker.") || s.Name == "circuit.closed" {
				source = "checks.workers"
			}
			assert.Equal(t, source, s.Source)
		}

		// Workers with an open breaker are not counted. A wave without other workers does not
		// start.
		_, err = o.Execute(t.Context(), 9)
		require.NoError(t, err)
		got = seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=1",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"wave.started:wave=4:workers=1",
			"worker.started:last",
			"worker.completed:last:duration=0",
			"wave.early_exit:wave=4",
			"wave.orchestrator.completed:duration=62:results=2",
		)
		assert.Equal(t, "4", got[7].Key)
		assert.Equal(t, "last", got[7].Payload().(wave.Event).Worker)

		// The probe closes it.
		time.Sleep(10 * time.Second)
		synctest.Wait()
		works = true
		_, err = o.Execute(t.Context(), 9)
		require.NoError(t, err)
		got = seen.Expect("worker.completed:down:duration=0", "circuit.closed", "circuit.opened:hangs:failures=2")
		closed, ok := wave.Events.From(got[1])
		assert.True(t, ok)
		assert.Equal(t, "down", closed.Worker)
		assert.Equal(t, "down", got[1].Key)

		// An execution without a value has failed, even if its workers were skipped.
		o = orchestrator(t, opts{Sink: sink, BreakerThreshold: 1}, worker{Name: "fails", Do: fails(10 * ms)})
		for _, want := range []string{"failed | failed fails:0", "failed | skipped fails:0"} {
			r, err := o.Execute(t.Context(), 0)
			assert.Equal(t, []any{wave.ErrFailed, want}, []any{err, brief(r)})
			event, ok := wave.Events.From(seen.Expect("wave.failed")[0])
			assert.Equal(t, []any{true, r.Duration, wave.ErrFailed}, []any{ok, event.Duration, event.Err})
		}
	})
}

// A handler of the signal sees an abandoned run in the counters.
func TestSignalsOfTheTotalTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: 150 * ms}, worker{Name: "LLM", Wave: -3, Do: ignores(1, time.Second)})
		seen := coretest.Watch(t, o.Sink(), "wave.*,worker.*,circuit.*")
		wave.Events.Named(wave.SignalWorkerAbandoned).Subscribe(o.Sink(), func(s signals.Signal, e wave.Event) {
			assert.Equal(t, []string{"LLM", "LLM"}, []string{s.Key, e.Worker})
			assert.Equal(t, 1, o.Runs().Stats().Running)
		})
		_, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=-3:workers=1",
			"worker.started:LLM",
			"wave.timeout:elapsed=150",
			"worker.abandoned",
			"wave.orchestrator.completed:duration=250:results=0",
		)
		require.NoError(t, o.Close())
	})
}

// A handler that blocks holds up the run that calls it, and nothing else.
func TestHandlerBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: 100 * ms, Grace: ms},
			worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: ignores(2, time.Hour)})
		o.Sink().Subscribe("worker.completed:a:*", func(signals.Signal) { time.Sleep(time.Minute) })
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | completed a:0=1 | failed b:0 | abandoned b:0", brief(r))
		assert.Equal(t, time.Minute+ms, r.Duration)
		assert.Equal(t, ms, r.Completed[0].Duration)
		require.NoError(t, o.Close())
	})
}

type broken struct{}

func (broken) Error() string { panic("no text") }

// Fault avoided: the text of an error goes unbounded into the name, colons and all.
func TestErrorTextInNamesIsBounded(t *testing.T) {
	for want, err := range map[string]error{
		"a; b_ _: " + strings.Repeat("é", 59) + "_": errors.New("a, b? *: " + strings.Repeat("é", 4000) + "\n"),
		"one_two _":                        errors.New("one\ntwo \n"),
		"dial tcp: refused":                errors.New("dial tcp: refused"),
		"%!v(PANIC=Error method: no text)": broken{},
		"_":                                errors.New("\xff\xfe"),
	} {
		bubble(t, func(t *testing.T) {
			o := orchestrator(t, opts{}, worker{Name: "w", Do: func(context.Context, int) (int, error) { return 0, err }})
			seen := coretest.Watch(t, o.Sink(), "worker.failed:*")
			_, _ = o.Execute(t.Context(), 0)
			s := seen.ExpectExactly("worker.failed:w:error=" + want)[0]
			assert.LessOrEqual(t, len(want), 128)
			assert.Equal(t, err, s.Payload().(wave.Event).Err, "all of it")
		})
	}
}
