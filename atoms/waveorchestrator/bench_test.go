package waveorchestrator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	wave "github.com/ephemeralgo/ephemeral/atoms/waveorchestrator"
)

// Executions of workers that do nothing: of one worker, of a wave of four, and of a hundred
// waves; and of a hundred workers whose breakers are open. Module bench compares them with
// others.
func BenchmarkExecute(b *testing.B) {
	for name, c := range map[string]struct {
		workers, perWave int
		err              error
	}{
		"one worker": {1, 1, nil}, "one wave": {4, 4, nil}, "a hundred waves": {100, 1, nil}, "breakers open": {100, 1, errOnPurpose},
	} {
		b.Run(name, func(b *testing.B) {
			list := make([]worker, c.workers)
			for i := range list {
				do := func(context.Context, int) (int, error) { return 0, c.err }
				list[i] = worker{Name: fmt.Sprint("worker-", i), Wave: i / c.perWave, Do: do}
			}
			o, err := wave.New(list, opts{WaveInterval: -1, BreakerThreshold: 1, BreakerReset: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.Execute(b.Context(), 0); (err == nil) != (c.err == nil) {
					b.Fatal(err)
				}
			}
		})
	}
}
