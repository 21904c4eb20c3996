package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// The table of the package documentation: how long a signal is on its sink, refuses items
// and defers one.
func TestHowLongASignalBlocks(t *testing.T) {
	const age = 5 * time.Minute
	for by, want := range map[string]struct {
		opts                 *core.SinkOptions // nil: the sink is the coordinator's own
		has, refuses, defers time.Duration
	}{
		"sink":          {&core.SinkOptions{}, age, age, 5 * time.Second},
		"own sink":      {nil, age, age, 5 * time.Second},
		"without limit": {&core.SinkOptions{MaxAge: -1}, 9 * age, 9 * age, 5 * time.Second},
		"own":           {nil, age, 3 * age, 5 * time.Second}, // the operation runs for twice the age, and then is shown for once
		"other":         {nil, age, age, 5 * time.Second},
		"held":          {nil, 4 * age, 4 * age, 4 * age},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, ctx := time.Now(), t.Context()
			body := func(ctx context.Context, raises bool) error {
				if raises {
					core.OperationFrom(ctx).Raise("stop")
					time.Sleep(2 * age)
				}
				return nil
			}
			opts := core.Options{CancelOn: "stop"}
			if want.opts != nil {
				opts.Sink = core.NewSink(*want.opts)
			}
			own := core.Must(core.NewCoordinator(body, opts))
			sink := own.Sink()
			other := core.Must(core.NewCoordinator(body, core.Options{Sink: sink}))
			var ran time.Duration
			deferring := core.Must(core.NewCoordinator(func(context.Context, bool) error {
				ran = time.Since(began)
				return nil
			}, core.Options{Sink: sink, DeferOn: "stop"}))
			switch by {
			case "own":
				core.Must(own.Enqueue(ctx, true))
			case "other":
				core.Must(other.Enqueue(ctx, true))
			case "held":
				sink.Hold("stop", "", 4*age)
			default:
				sink.Raise("stop")
			}
			synctest.Wait()
			core.Must(deferring.Enqueue(ctx, false))
			for wait := age - 1; time.Since(began) < 5*age; wait = age - wait { // just before an end, and at it
				time.Sleep(wait)
				at := time.Since(began)
				_, err := own.TryEnqueue(ctx, false)
				if has := sink.Has("stop"); has != (at < want.has) || (err != nil) != (at < want.refuses) {
					t.Errorf("%s: after %v, Has is %v and TryEnqueue returns %v", by, at, has, err)
				}
			}
			own.Close()
			other.Close()
			deferring.Close()
			coretest.Check(t, ran == want.defers, "%s: the deferred item ran after %v, want %v", by, ran, want.defers)
		})
	}
}
