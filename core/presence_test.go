package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// The table of the package documentation: how long a signal is on its sink, refuses items
// and defers one.
func TestHowLongASignalBlocks(t *testing.T) {
	const age = 5 * time.Minute
	for by, want := range map[string]struct{ has, refuses, defers time.Duration }{
		"sink":  {age, age, 5 * time.Second},
		"own":   {age, 3 * age, 5 * time.Second}, // the operation runs for twice the age, and then is shown for once
		"other": {age, age, 5 * time.Second},
		"held":  {4 * age, 4 * age, 4 * age},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, ctx, sink := time.Now(), t.Context(), core.NewSink(core.SinkOptions{})
			body := func(ctx context.Context, raises bool) error {
				if raises {
					core.OperationFrom(ctx).Raise("stop")
					time.Sleep(2 * age)
				}
				return nil
			}
			own := core.Must(core.NewCoordinator(body, core.Options{Sink: sink, CancelOn: "stop"}))
			other := core.Must(core.NewCoordinator(body, core.Options{Sink: sink}))
			var ran time.Duration
			deferring := core.Must(core.NewCoordinator(func(context.Context, bool) error {
				ran = time.Since(began)
				return nil
			}, core.Options{Sink: sink, DeferOn: "stop"}))
			switch by {
			case "sink":
				sink.Raise("stop")
			case "held":
				sink.Hold("stop", "", 4*age)
			default:
				core.Must(map[string]*core.Coordinator[bool]{"own": own, "other": other}[by].Enqueue(ctx, true))
			}
			synctest.Wait()
			core.Must(deferring.Enqueue(ctx, false))
			for time.Sleep(30 * time.Second); time.Since(began) < 5*age; time.Sleep(time.Minute) {
				at := time.Since(began)
				_, err := own.TryEnqueue(ctx, false)
				if has := sink.Has("stop"); has != (at < want.has) || (err != nil) != (at < want.refuses) {
					t.Errorf("%s: after %v, Has is %v and TryEnqueue returns %v", by, at, has, err)
				}
			}
			own.Close()
			other.Close()
			deferring.Close()
			if ran != want.defers {
				t.Errorf("%s: the deferred item ran after %v, want %v", by, ran, want.defers)
			}
		})
	}
}
