package waveorchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const ms = time.Millisecond

var errOnPurpose = errors.New("failed on purpose")

type (
	worker = wave.Worker[int, int]
	work   = core.ResultWork[int, int]
	opts   = wave.Options[int]
)

// gives returns v after d, unless its context ends before.
func gives(v int, d time.Duration) work {
	return func(ctx context.Context, _ int) (int, error) { return v, wait(ctx, d) }
}

// fails is like gives, but returns an error.
func fails(d time.Duration) work {
	return func(ctx context.Context, _ int) (int, error) {
		if err := wait(ctx, d); err != nil {
			return 0, err
		}
		return 0, errOnPurpose
	}
}

// ignores returns v after d, even if its context ends before.
func ignores(v int, d time.Duration) work {
	return func(context.Context, int) (int, error) { time.Sleep(d); return v, nil }
}

// hangs returns when its context ends.
func hangs(ctx context.Context, _ int) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	alarm := time.NewTimer(d)
	defer alarm.Stop()
	select {
	case <-alarm.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func orchestrator(t testing.TB, o opts, workers ...worker) *wave.Orchestrator[int, int] {
	t.Helper()
	x, err := wave.New(workers, o)
	require.NoError(t, err)
	return x
}

// bubble runs a test in a bubble. Goroutines that are left running fail it.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// each runs a test in a bubble for each case.
func each[C any](t *testing.T, cases map[string]C, test func(t *testing.T, c C)) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { bubble(t, func(t *testing.T) { test(t, c) }) })
	}
}

// brief returns a result as one line: "completed a:1=3 b:1=5 | failed c:2 | skipped d:3".
func brief(r wave.Result[int]) string {
	return text(r, " |", func(w wave.WorkerResult[int]) string {
		if w.Err == nil {
			return fmt.Sprintf("%s:%d=%d", w.Worker, w.Wave, w.Value)
		}
		return fmt.Sprintf("%s:%d", w.Worker, w.Wave)
	})
}

// text returns a result as text, without empty lists.
func text(r wave.Result[int], before string, show func(wave.WorkerResult[int]) string) string {
	text := string(r.Outcome)
	if r.Decisive != nil {
		text += " by " + r.Decisive.Worker
	}
	for i, list := range [][]wave.WorkerResult[int]{r.Completed, r.Failed, r.Cancelled, r.Skipped, r.Abandoned} {
		if len(list) > 0 {
			text += before + " " + []string{"completed", "failed", "cancelled", "skipped", "abandoned"}[i]
		}
		for _, w := range list {
			text += " " + show(w)
		}
	}
	return text
}

// run calls Execute, and returns the result as one line.
func run(t testing.TB, o *wave.Orchestrator[int, int]) string {
	t.Helper()
	r, err := o.Execute(t.Context(), 0)
	if r.Outcome == wave.OutcomeFailed {
		require.Equal(t, wave.ErrFailed, err)
	} else {
		require.NoError(t, err)
	}
	return brief(r)
}

// signals lists the names of the signals on the sink that match.
func raised(sink *signals.Sink, pattern string) (names []string) {
	for s := range sink.Sense(signals.Query{Pattern: pattern}) {
		names = append(names, s.Name)
	}
	return names
}

func breakers(o *wave.Orchestrator[int, int]) string {
	var list []string
	for _, w := range o.Workers() {
		list = append(list, fmt.Sprintf("%s:%s:%d", w.Name, w.Breaker, w.Failures))
	}
	return strings.Join(list, " ")
}
