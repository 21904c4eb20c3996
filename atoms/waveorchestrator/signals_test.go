package waveorchestrator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// The signals, to the letter and in order.
func TestSignals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		seen := coretest.Watch(t, sink, "wave.*,worker.*,circuit.*")
		sick := true
		o := orchestrator(t, opts{Sink: sink, Name: "checks", BreakerThreshold: 1, BreakerReset: 10 * time.Second, WorkerTimeout: time.Second, TotalTimeout: 3 * time.Second, MaxPerWave: 1,
			EarlyExit: func(v int) bool { return v == 9 }},
			worker{Name: "fast", Do: gives(1, 12*ms)},
			worker{Name: "sick", Priority: 1, Do: func(context.Context, int) (int, error) {
				if sick {
					return 0, errOnPurpose
				}
				return 2, nil
			}},
			worker{Name: "hangs", Wave: 3, Do: hangs},
			worker{Name: "ends", Wave: 4, Do: func(ctx context.Context, in int) (int, error) {
				if in < 0 {
					return hangs(ctx, in)
				}
				return in, nil
			}})
		_, err := o.Execute(t.Context(), 0)
		require.NoError(t, err)
		got := seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=2",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"worker.started:sick",
			"worker.failed:sick:error=failed on purpose",
			"circuit.opened:sick:failures=1",
			"wave.started:wave=3:workers=1",
			"worker.started:hangs",
			"worker.timeout:hangs:duration=1000",
			"circuit.opened:hangs:failures=1",
			"wave.started:wave=4:workers=1",
			"worker.started:ends",
			"worker.completed:ends:duration=0",
			"wave.orchestrator.completed:duration=1112:results=2",
		)
		keys := []string{"", "0", "fast", "fast", "sick", "sick", "sick", "3", "hangs", "hangs", "hangs", "4", "ends", "ends", ""}
		execution := got[0].Operation
		for i, s := range got {
			assert.Equal(t, keys[i], s.Key, s.Name)
			e, ok := s.Payload().(wave.Event)
			if s.Held {
				assert.False(t, ok)
				continue
			}
			require.True(t, ok, s.Name)
			assert.Equal(t, execution, e.Execution)
			assert.Equal(t, "checks", s.Source)
		}
		payload := func(i int) wave.Event { return got[i].Payload().(wave.Event) }
		assert.Equal(t, wave.Event{Execution: execution, Wave: 0, Workers: 2}, payload(1))
		assert.Equal(t, wave.Event{Execution: execution, Worker: "fast", Duration: 12 * ms}, payload(3))
		assert.Equal(t, wave.Event{Execution: execution, Worker: "sick", Err: errOnPurpose}, payload(5))
		assert.Equal(t, wave.Event{Execution: execution, Worker: "hangs", Wave: 3, Duration: time.Second, Err: wave.ErrWorkerTimeout}, payload(9))
		assert.Equal(t, wave.Event{Execution: execution, Workers: 2, Duration: 1112 * ms, Outcome: wave.OutcomeCompleted}, payload(14))

		// Those whose breaker is open are not counted; a wave without others does not start.
		r, err := o.Execute(t.Context(), 9)
		require.NoError(t, err)
		got = seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=1",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"wave.started:wave=4:workers=1",
			"worker.started:ends",
			"worker.completed:ends:duration=0",
			"wave.early_exit:wave=4",
			"wave.orchestrator.completed:duration=62:results=2",
		)
		assert.Equal(t, "4", got[7].Key)
		assert.Equal(t, "ends", got[7].Payload().(wave.Event).Worker)
		assert.Equal(t, wave.OutcomeEarlyExit, got[8].Payload().(wave.Event).Outcome)
		assert.Equal(t, "ends", r.Decisive.Worker)

		// The probe closes it.
		time.Sleep(10 * time.Second)
		synctest.Wait()
		sick = false
		_, err = o.Execute(t.Context(), -1)
		require.NoError(t, err)
		got = seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=0:workers=2",
			"worker.started:fast",
			"worker.completed:fast:duration=12",
			"worker.started:sick",
			"worker.completed:sick:duration=0",
			"circuit.closed:sick",
			"wave.started:wave=3:workers=1",
			"worker.started:hangs",
			"worker.timeout:hangs:duration=1000",
			"circuit.opened:hangs:failures=2",
			"wave.started:wave=4:workers=1",
			"worker.started:ends",
			"worker.timeout:ends:duration=1000",
			"circuit.opened:ends:failures=1",
			"wave.orchestrator.completed:duration=2112:results=2",
		)
		assert.Len(t, got, 16)
	})
}

func TestSignalOfTheTotalTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{TotalTimeout: 150 * ms}, worker{Name: "LLM", Wave: -3, Do: deaf(1, time.Second)})
		seen := coretest.Watch(t, o.Sink(), "wave.*,worker.*,circuit.*")
		_, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		seen.ExpectExactly(
			"wave.orchestrator.started",
			"wave.started:wave=-3:workers=1",
			"worker.started:LLM",
			"wave.timeout:elapsed=150",
			"worker.abandoned:LLM",
			"wave.orchestrator.completed:duration=250:results=0",
		)
		require.NoError(t, o.Close())
		seen.None()
	})
}

// A handler that blocks holds up whom it is called by, and no more.
func TestHandlerBlocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := orchestrator(t, opts{WorkerTimeout: 100 * ms, Grace: ms}, worker{Name: "a", Do: gives(1, ms)}, worker{Name: "b", Do: deaf(2, time.Hour)})
		o.Sink().Subscribe("worker.completed:a:*", func(core.Signal) { time.Sleep(time.Minute) })
		r, err := o.Execute(t.Context(), 0)
		assert.Equal(t, wave.ErrTimeout, err)
		assert.Equal(t, "timed-out | completed a:0=1 | failed b:0 | abandoned b:0", brief(r))
		assert.Equal(t, time.Minute+ms, r.Duration)
		assert.Equal(t, ms, r.Completed[0].Duration)
		require.NoError(t, o.Close())
	})
}
