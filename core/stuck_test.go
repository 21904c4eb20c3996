package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ignores returns after a span, whatever happens to its context.
func ignores(_ context.Context, span time.Duration) error {
	time.Sleep(span)
	return nil
}

// A body is stuck when it has run for StuckAfter since its start or its last Suspend, or for
// StuckAfterCancel since the end of its context. Each operation says so once, with its stack.
func TestStuck(t *testing.T) {
	suspends := func(ctx context.Context, span time.Duration) error {
		return core.OperationFrom(ctx).Suspend(ctx, "a friend", func(ctx context.Context) error { return ignores(ctx, span) })
	}
	type coordinator = core.Coordinator[time.Duration]
	for name, c := range map[string]struct {
		opts   core.Options
		body   core.Work[time.Duration]
		during func(*coordinator, core.OperationID)
		want   time.Duration // from the start; 0: never
		text   string
	}{
		"long":      {opts: core.Options{StuckAfter: time.Minute}, body: ignores, want: time.Minute, text: "its body has not returned"},
		"suspended": {opts: core.Options{StuckAfter: time.Minute}, body: suspends},
		"long after a Suspend": {opts: core.Options{StuckAfter: time.Minute}, body: func(ctx context.Context, span time.Duration) error {
			return errors.Join(suspends(ctx, time.Hour), ignores(ctx, span))
		}, want: time.Hour + time.Minute, text: "its body has not returned"},
		"cancelled": {opts: core.Options{StuckAfterCancel: time.Minute}, body: ignores,
			during: func(c *coordinator, id core.OperationID) { c.Cancel(id, errors.New("nobody waits")) },
			want:   61 * time.Second, text: "its body has not returned after the end of its context (nobody waits)"},
		"cancelled in a Suspend": {opts: core.Options{StuckAfterCancel: time.Minute}, body: suspends,
			during: func(c *coordinator, id core.OperationID) { c.Cancel(id, nil) },
			want:   61 * time.Second, text: "after the end of its context (core: operation was cancelled)"},
		"closed": {opts: core.Options{StuckAfterCancel: time.Minute}, body: ignores,
			during: func(c *coordinator, _ core.OperationID) { go c.Close() },
			want:   61 * time.Second, text: "is closed)"},
		"too late":   {opts: core.Options{StuckAfterCancel: time.Minute, Timeout: 10 * time.Second}, body: ignores, want: 70 * time.Second, text: "after the end of its context (core: "},
		"both":       {opts: core.Options{StuckAfterCancel: time.Hour, StuckAfter: time.Minute, Timeout: 10 * time.Second}, body: ignores, want: time.Minute, text: "has not returned"},
		"not cancel": {opts: core.Options{StuckAfterCancel: time.Minute, StuckAfter: -1}, body: ignores},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				found := []signals.Signal{}
				c.opts.Sink = signals.NewSink(signals.SinkOptions{MaxAge: -1})
				defer c.opts.Sink.Subscribe(core.SignalStuck, func(s signals.Signal) { found = append(found, s) })()
				jobs := core.Must(core.NewCoordinator(c.body, c.opts))
				start := time.Now()
				id := core.Must(jobs.Enqueue(t.Context(), 3*time.Hour))
				time.Sleep(time.Second)
				if c.during != nil {
					c.during(jobs, id)
				}
				time.Sleep(2*time.Hour - time.Second)
				synctest.Wait()
				defer func() {
					jobs.Drain(t.Context())
					checkEqual(t, "stuck at the end", jobs.Stats().Stuck, 0)
				}()
				what := ""
				if x, ok := jobs.Explain(id); ok {
					what = x.String()
				}
				if c.want == 0 {
					checkEqual(t, "found", len(found), 0)
					checkEqual(t, "stuck", jobs.Stats().Stuck, 0)
					return
				}
				coretest.Check(t, len(found) == 1, "found %v", found)
				checkEqual(t, "operation", found[0].Operation, id)
				checkEqual(t, "found after", found[0].Time.Sub(start), c.want)
				got, _ := core.Stuck.From(found[0])
				checkSays(t, "reason", got.Reason, c.text)
				checkSays(t, "stack", got.Stack, "core_test.ignores(")
				coretest.Check(t, !strings.Contains(got.Stack, "engineFrame"), "the stack is\n%s", got.Stack)
				checkEqual(t, "stuck", jobs.Stats().Stuck, 1)
				checkSays(t, "Explain", what, "stuck: ", c.text)
			})
		})
	}
}
