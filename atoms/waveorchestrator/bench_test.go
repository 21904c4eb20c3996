package waveorchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
)

func noop(context.Context, int) (int, error) { return 0, nil }

// What it costs to go from one wave to the next: the waves have one worker each,
// which does nothing, and there is no interval. Beside it the least that could do the
// same without limits, breakers, signals and results: a goroutine for each wave, with
// a context that ends, and a channel to wait at.
func BenchmarkTransition(b *testing.B) {
	const waves = 100
	b.Run("orchestrator", func(b *testing.B) {
		o := inWaves(b, waves)
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if n++; n%waves == 0 {
				if _, err := o.Execute(b.Context(), 0); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("goroutines", func(b *testing.B) {
		done := make(chan struct{})
		b.ReportAllocs()
		for b.Loop() {
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			go func() {
				_, _ = noop(ctx, 0)
				done <- struct{}{}
			}()
			<-done
			cancel()
		}
	})
}

// An execution of a single worker, from Execute to its return.
func BenchmarkExecute(b *testing.B) {
	o := inWaves(b, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Execute(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// The same with a wave of four.
func BenchmarkWave(b *testing.B) {
	list := make([]wave.Worker[int, int], 4)
	for i := range list {
		list[i] = wave.Worker[int, int]{Name: fmt.Sprint("worker-", i), Do: noop}
	}
	o, err := wave.New(list, wave.Options[int]{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Execute(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
}

// A worker whose breaker is open: what it costs to see that, and to say so in the
// result.
func BenchmarkBreakerOpen(b *testing.B) {
	const workers = 100
	list := make([]wave.Worker[int, int], workers)
	for i := range list {
		list[i] = wave.Worker[int, int]{Name: fmt.Sprint("worker-", i), Do: func(context.Context, int) (int, error) { return 0, errors.ErrUnsupported }}
	}
	o, err := wave.New(list, wave.Options[int]{BreakerThreshold: 1, BreakerReset: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := o.Execute(b.Context(), 0); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%workers == 0 {
			if _, err := o.Execute(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func inWaves(b *testing.B, waves int) *wave.Orchestrator[int, int] {
	list := make([]wave.Worker[int, int], waves)
	for i := range list {
		list[i] = wave.Worker[int, int]{Name: fmt.Sprint("worker-", i), Wave: i, Do: noop}
	}
	o, err := wave.New(list, wave.Options[int]{WaveInterval: -1})
	if err != nil {
		b.Fatal(err)
	}
	return o
}
