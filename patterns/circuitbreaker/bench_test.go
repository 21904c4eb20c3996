package circuitbreaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/circuitbreaker"
)

// BenchmarkNow is for comparison: what a clock reading costs here.
func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		time.Now()
	}
}

func BenchmarkCheck(b *testing.B) {
	circuit := core.Must(circuitbreaker.New(core.NewSink(core.SinkOptions{}), circuitbreaker.Options{}))
	defer circuit.Close()
	b.ReportAllocs()
	for b.Loop() {
		if circuit.Check() != nil {
			b.Fatal("open")
		}
	}
}

func BenchmarkWrap(b *testing.B) {
	for name, opts := range map[string]circuitbreaker.Options{"threshold": {}, "rate": {Rate: 0.5}} {
		b.Run(name, func(b *testing.B) {
			circuit := core.Must(circuitbreaker.New(core.NewSink(core.SinkOptions{}), opts))
			defer circuit.Close()
			work := circuitbreaker.Wrap(circuit, func(context.Context, int) error { return nil })
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if work(ctx, 0) != nil {
					b.Fatal("open")
				}
			}
		})
	}
}
